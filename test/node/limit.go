package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// LimitMemory moves a running process into a cgroup of its own that allows the given number of bytes above its current usage, like a
// container with a limit. It needs root. The group can be removed when the process has ended.
func LimitMemory(pid int, name string, bytes int64) (remove func() error, err error) {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	found, err := hierarchies(string(cgroups), string(mounts))
	if err != nil {
		return nil, err
	}
	own, err := ownGroups(slices.DeleteFunc(found, func(h hierarchy) bool {
		return h.controllers != "" && !slices.Contains(strings.Split(h.controllers, ","), "memory")
	}), name)
	if err != nil {
		return nil, err
	}
	group, limit := own[0].group, "memory.max"
	if own[0].controllers != "" {
		limit = "memory.limit_in_bytes"
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, fmt.Errorf("making a cgroup: %w", err)
	}
	remove = func() error { return removeGroups(group) }
	for file, value := range map[string]int64{limit: bytes, "cgroup.procs": int64(pid)} {
		if err := os.WriteFile(filepath.Join(group, file), strconv.AppendInt(nil, value, 10), 0o600); err != nil {
			_ = remove() // the first error is the relevant one
			return nil, fmt.Errorf("limiting the memory of process %d: %w", pid, err)
		}
	}
	return remove, nil
}
