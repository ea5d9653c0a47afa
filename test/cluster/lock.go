package cluster

import (
	"context"
	"path/filepath"

	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// lock takes the named lock of this user, as [filelock.Take] does.
func lock(ctx context.Context, name string, waiting func()) (func(), error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return filelock.Take(ctx, filepath.Join(cache, name+".lock"), waiting)
}
