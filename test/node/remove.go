package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	groupsFile      = "cgroups"
	removalInterval = 50 * time.Millisecond
	removalTimeout  = 20 * time.Second
)

// Remove removes the cgroups of a node that has exited. Then the node can be restarted, or its directory deleted. The kernel removes
// mounts and network with the last process.
func Remove(ctx context.Context, dir string) error {
	if err := os.Remove(filepath.Join(dir, networkFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the file of the network: %w", err)
	}
	record, err := os.ReadFile(filepath.Join(dir, groupsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the cgroups of the node: %w", err)
	}
	for _, group := range strings.Fields(string(record)) {
		var removeErr error
		// The kernel removes an exited process from its cgroup after a delay.
		err := wait.PollUntilContextTimeout(ctx, removalInterval, removalTimeout, true, func(context.Context) (bool, error) {
			removeErr = removeGroups(group)
			return removeErr == nil, nil
		})
		if err != nil {
			return errors.Join(err, removeErr)
		}
	}
	return nil
}
