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

// Clean removes the folder of [CacheDir] with all files, such as binaries, images and installed operands. It first removes instances whose
// owner has exited, and returns an error if other instances exist. Otherwise, it returns the number of freed bytes. The next run rebuilds
// its dependencies.
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
