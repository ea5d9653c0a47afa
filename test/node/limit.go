package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// LimitMemory moves a running process into a new cgroup with a memory limit in bytes. Memory that the process has allocated before
// does not count. LimitMemory requires root. The group can be removed when the process has exited.
func LimitMemory(pid int, name string, bytes int64) (remove func() error, err error) {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	found, err := ownCgroups(string(cgroups), string(mounts))
	if err != nil {
		return nil, err
	}
	groups, err := clusterGroups(slices.DeleteFunc(found, func(h cgroup) bool {
		return h.controllers != "" && !slices.Contains(strings.Split(h.controllers, ","), "memory")
	}), name)
	if err != nil {
		return nil, err
	}
	group, limit := groups[0].group, "memory.max"
	if groups[0].controllers != "" {
		limit = "memory.limit_in_bytes"
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, fmt.Errorf("creating a cgroup: %w", err)
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
