package cluster

import (
	"context"
	"path/filepath"

	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// lock acquires the named lock of this user, see [filelock.Take].
func lock(ctx context.Context, name string, waiting func()) (func(), error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return filelock.Take(ctx, filepath.Join(cache, name+".lock"), waiting)
}
