package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Clean removes all files of this package and the suites from the user's cache directory: binaries, images, installed operands. It
// returns the number of freed bytes, or an error if an instance exists. The next run rebuilds its dependencies.
func Clean(ctx context.Context) (freed int64, err error) {
	if err := removeUnused(ctx, ""); err != nil {
		return 0, err
	}
	unlock, err := lock(ctx, "instances", nil)
	if err != nil {
		return 0, err
	}
	defer unlock()
	instances, err := List()
	if err != nil {
		return 0, err
	}
	var names []string
	for _, instance := range instances {
		names = append(names, instance.Name)
	}
	if len(names) > 0 {
		return 0, fmt.Errorf("the cache is in use by %s; first stop them with `testcluster down --all`", strings.Join(names, ", "))
	}
	dir, err := CacheDir()
	if err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			freed += info.Size()
		}
		return err
	})
	return freed, errors.Join(err, os.RemoveAll(dir))
}
