package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cgroup is the group of a process in one hierarchy: a line of /proc/self/cgroup.
type cgroup struct {
	controllers string // in the format of the kernel: `cpu,cpuacct`, `name=systemd`, empty for version 2
	group       string // the directory of the group
}

// requiredControllers are the controllers that a kubelet requires.
var requiredControllers = []string{"cpu", "memory", "pids"}

// ownCgroups returns the groups of this process: those of version 1 if version 1 has the memory controller, otherwise that of version 2.
func ownCgroups(cgroups, mounts string) ([]cgroup, error) {
	var v1, v2 []cgroup
	memory := false
	for line := range strings.Lines(cgroups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		group, ok := groupDir(mounts, parts[1], parts[2])
		switch {
		case !ok:
		case parts[1] == "":
			v2 = append(v2, cgroup{group: group})
		default:
			v1 = append(v1, cgroup{controllers: parts[1], group: group})
			memory = memory || slices.Contains(strings.Split(parts[1], ","), "memory")
		}
	}
	if memory {
		return v1, nil
	}
	if len(v2) == 0 {
		return nil, errors.New("a real node requires cgroups with the memory controller, but none are mounted")
	}
	return v2, nil
}

// groupDir returns the directory of a group under the mount of its hierarchy in mountinfo, see proc(5).
func groupDir(mounts, controllers, group string) (string, bool) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		mount, filesystem := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(filesystem) < 3 {
			continue
		}
		matches := filesystem[0] == "cgroup2" && controllers == ""
		if filesystem[0] == "cgroup" && controllers != "" {
			matches = containsAll(strings.Split(filesystem[2], ","), strings.Split(controllers, ","))
		}
		relative, err := filepath.Rel(mount[3], group)
		if matches && err == nil && !strings.HasPrefix(relative, "..") {
			return filepath.Join(mount[4], relative), true
		}
	}
	return "", false
}

func containsAll(values, required []string) bool {
	return !slices.ContainsFunc(required, func(value string) bool { return !slices.Contains(values, value) })
}

// clusterGroups returns the groups of the cluster with the name. In version 1 they are below the groups of this process, whose limits
// apply to the cluster. In version 2, where groups with processes cannot delegate controllers, they are below an ancestor that does.
func clusterGroups(found []cgroup, name string) ([]cgroup, error) {
	var groups []cgroup
	for _, h := range found {
		if h.controllers == "" {
			parent, err := delegatingAncestor(h.group)
			if err != nil {
				return nil, err
			}
			h.group = parent
		}
		h.group = filepath.Join(h.group, "testcluster-"+name)
		groups = append(groups, h)
	}
	return groups, nil
}

func delegatingAncestor(group string) (string, error) {
	for dir := group; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return "", fmt.Errorf("a real node requires a cgroup that delegates %s, but no ancestor of %s does", strings.Join(requiredControllers, ", "), group)
		}
		if containsAll(strings.Fields(string(content)), requiredControllers) {
			return dir, nil
		}
	}
}

// joinGroups creates the groups, after it has removed those of an earlier run, and moves this process into them.
func joinGroups(groups []cgroup) error {
	for _, h := range groups {
		if err := removeGroups(h.group); err != nil {
			return err
		}
		if err := os.Mkdir(h.group, 0o755); err != nil {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
		for _, file := range inheritedFiles(h) {
			if err := copyFile(filepath.Join(filepath.Dir(h.group), file), filepath.Join(h.group, file)); err != nil {
				return fmt.Errorf("preparing cgroup %s: %w", h.group, err)
			}
		}
		if slices.Contains(strings.Split(h.controllers, ","), "cpu") {
			// By default the whole cluster has the weight of one task of its parent group.
			if err := os.WriteFile(filepath.Join(h.group, "cpu.shares"), []byte(cpuShares), 0o600); err != nil {
				return fmt.Errorf("preparing cgroup %s: %w", h.group, err)
			}
		}
		if err := os.WriteFile(filepath.Join(h.group, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return fmt.Errorf("joining cgroup %s: %w", h.group, err)
		}
	}
	return nil
}

// cpuShares is the weight of three tasks.
const cpuShares = "3072"

// inheritedFiles returns the files of the parent that a new group of version 1 needs before it accepts a process.
func inheritedFiles(h cgroup) []string {
	if slices.Contains(strings.Split(h.controllers, ","), "cpuset") {
		return []string{"cpuset.cpus", "cpuset.mems"}
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// removeGroups removes a group and its children; it returns an error if they contain processes.
func removeGroups(group string) error {
	var dirs []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("finding cgroups: %w", err)
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return nil
}
