package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const lockPoll = 100 * time.Millisecond

// lock takes the named lock of this user among all processes and returns the function that gives it back. The kernel
// frees it when a process dies, so a crash leaves nothing to clean. It waits until ctx ends; waiting is called once if
// another client holds it.
func lock(ctx context.Context, name string, waiting func()) (func(), error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(cache, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", name, err)
	}
	first := true
	err = wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err == nil, err
		}
		if first && waiting != nil {
			waiting()
		}
		first = false
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("taking lock %s: %w", name, errors.Join(err, file.Close()))
	}
	// Closing the descriptor gives the lock back; an error of it leaves nothing to do.
	return func() { _ = file.Close() }, nil
}
