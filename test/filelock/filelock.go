// Package filelock provides locks between processes.
package filelock

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

const pollInterval = 100 * time.Millisecond

// Take locks a file and returns the function that unlocks it. It creates missing folders. If the lock is held, Take calls waiting, if
// set, and waits for the lock until ctx ends. The kernel unlocks the file when a process exits, even after a crash.
func Take(ctx context.Context, path string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of a lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	first := true
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
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
		return nil, fmt.Errorf("acquiring lock %s: %w", path, errors.Join(err, file.Close()))
	}
	// Closing the descriptor unlocks the file, even if it returns an error.
	return func() { _ = file.Close() }, nil
}
