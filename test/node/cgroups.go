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

// hierarchy is a tree of cgroups with the group of a process in it, a line of /proc/self/cgroup.
type hierarchy struct {
	controllers string // as in the kernel: `cpu,cpuacct`, `name=systemd`, empty for version 2
	group       string // the folder of the group
}

// handedDown are the controllers that a kubelet requires.
var handedDown = []string{"cpu", "memory", "pids"}

// hierarchies returns the groups of this process, in the version of cgroups that has the memory controller.
func hierarchies(cgroups, mounts string) ([]hierarchy, error) {
	var first, second []hierarchy
	memory := false
	for line := range strings.Lines(cgroups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		group, ok := groupFolder(mounts, parts[1], parts[2])
		switch {
		case !ok:
		case parts[1] == "":
			second = append(second, hierarchy{group: group})
		default:
			first = append(first, hierarchy{controllers: parts[1], group: group})
			memory = memory || slices.Contains(strings.Split(parts[1], ","), "memory")
		}
	}
	if memory {
		return first, nil
	}
	if len(second) == 0 {
		return nil, errors.New("a real node needs cgroups, and none are mounted")
	}
	return second, nil
}

// groupFolder returns the folder of a group below the mount of its hierarchy in mountinfo, see proc(5).
func groupFolder(mounts, controllers, group string) (string, bool) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(kind) < 3 {
			continue
		}
		fits := kind[0] == "cgroup2" && controllers == ""
		if kind[0] == "cgroup" && controllers != "" {
			fits = containsAll(strings.Split(kind[2], ","), strings.Split(controllers, ","))
		}
		below, err := filepath.Rel(mount[3], group)
		if fits && err == nil && !strings.HasPrefix(below, "..") {
			return filepath.Join(mount[4], below), true
		}
	}
	return "", false
}

func containsAll(all, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(one string) bool { return !slices.Contains(all, one) })
}

// ownGroups returns the groups of the cluster of that name: below those of this process, so that its limits apply to the cluster
// too. In version 2 a group with processes cannot delegate controllers; its nearest ancestor that delegates them is used.
func ownGroups(found []hierarchy, name string) ([]hierarchy, error) {
	var own []hierarchy
	for _, h := range found {
		if h.controllers == "" {
			parent, err := handingDown(h.group)
			if err != nil {
				return nil, err
			}
			h.group = parent
		}
		h.group = filepath.Join(h.group, "testcluster-"+name)
		own = append(own, h)
	}
	return own, nil
}

func handingDown(group string) (string, error) {
	for dir := group; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return "", fmt.Errorf("a real node needs a cgroup that hands down %s, and none above %s does", strings.Join(handedDown, ", "), group)
		}
		if containsAll(strings.Fields(string(content)), handedDown) {
			return dir, nil
		}
	}
}

// enter creates the groups, removes leftovers of an earlier node from them, and moves this process into them.
func enter(groups []hierarchy) error {
	for _, h := range groups {
		if err := removeGroups(h.group); err != nil {
			return err
		}
		if err := os.Mkdir(h.group, 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		for _, file := range inheritedValues(h) {
			if err := copyFile(filepath.Join(filepath.Dir(h.group), file), filepath.Join(h.group, file)); err != nil {
				return fmt.Errorf("preparing cgroup %s: %w", h.group, err)
			}
		}
		if slices.Contains(strings.Split(h.controllers, ","), "cpu") {
			// Otherwise the whole cluster has the weight of one task of its parent and starves under load.
			if err := os.WriteFile(filepath.Join(h.group, "cpu.shares"), []byte(cpuShares), 0o600); err != nil {
				return fmt.Errorf("preparing cgroup %s: %w", h.group, err)
			}
		}
		if err := os.WriteFile(filepath.Join(h.group, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return fmt.Errorf("entering cgroup %s: %w", h.group, err)
		}
	}
	return nil
}

// cpuShares is the weight of three ordinary tasks.
const cpuShares = "3072"

// inheritedValues returns the files that must be set before a new group of version 1 accepts a process.
func inheritedValues(h hierarchy) []string {
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
	var folders []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for cgroups: %w", err)
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return nil
}
