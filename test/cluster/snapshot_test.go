package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRemoveOldest(t *testing.T) {
	dir := t.TempDir()
	for age, name := range []string{"newest", "middle", "oldest"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		modTime := time.Unix(1700000000, 0).Add(-time.Duration(age) * time.Hour)
		if err := os.Chtimes(path, modTime, modTime); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOldest(dir, 2); err != nil {
		t.Fatal(err)
	}
	remaining, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(remaining) != 2 || filepath.Base(remaining[0]) != "middle" || filepath.Base(remaining[1]) != "newest" {
		t.Errorf("got files %v, error %v, want the newest two", remaining, err)
	}
	if err := removeOldest(dir, 5); err != nil {
		t.Error(err)
	}
}
