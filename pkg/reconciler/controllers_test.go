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
	built  = regexp.MustCompile(`NewControllerManagedBy\(|\bcontroller\.New\(|\breconciler\.NewController\(`)
	shared = regexp.MustCompile(`WithOptions\(ControllerOptions\(|reconciler\.ControllerOptionsOf\(|\breconciler\.NewController\(`)
)

// Every controller has the fair queue and the limited back-off.
func TestEveryControllerHasTheSharedOptions(t *testing.T) {
	controllers := 0
	for _, folder := range []string{"controllers", "pkg", "cmd", "webhooks"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			made := len(built.FindAll(text, -1))
			controllers += made
			if with := len(shared.FindAll(text, -1)); with < made {
				t.Errorf("%s builds %d controllers, and %d with reconciler.ControllerOptions", path, made, with)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if controllers < 10 {
		t.Errorf("only %d controllers found", controllers)
	}
}
