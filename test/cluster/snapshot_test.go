package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDropOldest(t *testing.T) {
	dir := t.TempDir()
	for age, name := range []string{"newest", "middle", "oldest"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		changed := time.Unix(1700000000, 0).Add(-time.Duration(age) * time.Hour)
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropOldest(dir, 2); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "middle" || filepath.Base(left[1]) != "newest" {
		t.Errorf("left %v, %v", left, err)
	}
	if err := dropOldest(dir, 5); err != nil {
		t.Error(err)
	}
}
