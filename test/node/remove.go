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
	groupsFile    = "cgroups"
	removalPoll   = 50 * time.Millisecond
	removalExpiry = 20 * time.Second
)

// Remove removes the cgroups of an ended node, so that it can be started again or its folder
// removed. Mounts and network are gone with its processes.
func Remove(ctx context.Context, dir string) error {
	if err := os.Remove(filepath.Join(dir, networkFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what announces the network: %w", err)
	}
	record, err := os.ReadFile(filepath.Join(dir, groupsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading which cgroups the node has: %w", err)
	}
	for _, group := range strings.Fields(string(record)) {
		var last error
		// The kernel counts an ended process for a moment.
		err := wait.PollUntilContextTimeout(ctx, removalPoll, removalExpiry, true, func(context.Context) (bool, error) {
			last = removeGroups(group)
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}
