package reconciler

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	constructors  = regexp.MustCompile(`NewControllerManagedBy\(|\bcontroller\.New\(|\breconciler\.NewController\(`)
	sharedOptions = regexp.MustCompile(`WithOptions\(ControllerOptions\(|reconciler\.ControllerOptions\(|\breconciler\.NewController\(`)
)

// ControllerOptions sets the fair queue and the maximum backoff.
func TestEveryControllerUsesSharedOptions(t *testing.T) {
	controllers := 0
	for _, folder := range []string{"controllers", "pkg", "cmd", "webhooks"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			created := len(constructors.FindAll(text, -1))
			controllers += created
			if count := len(sharedOptions.FindAll(text, -1)); count < created {
				t.Errorf("%s creates %d controllers, but only %d of them with reconciler.ControllerOptions", path, created, count)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if controllers < 10 {
		t.Errorf("found only %d controllers: the regular expression may no longer match their constructors", controllers)
	}
}
