package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mountsOfVersion1 = `31 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
32 31 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
33 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:29 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
35 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`

func TestOwnCgroups(t *testing.T) {
	for name, c := range map[string]struct{ cgroups, mounts, want string }{
		"version 1": {
			"9:name=systemd:/\n4:memory:/docker/abc/session\n1:cpu,cpuacct:/\n0::/\n", mountsOfVersion1,
			"name=systemd=/sys/fs/cgroup/systemd memory=/sys/fs/cgroup/memory/session cpu,cpuacct=/sys/fs/cgroup/cpu,cpuacct",
		},
		"version 2": {
			"0::/user.slice/one\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "=/sys/fs/cgroup/user.slice/one",
		},
		"not mounted": {"4:memory:/\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := ownCgroups(c.cgroups, c.mounts)
			if (err != nil) != (c.want == "") {
				t.Fatalf("error %v, want cgroups %q", err, c.want)
			}
			var got []string
			for _, h := range found {
				got = append(got, h.controllers+"="+h.group)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("cgroups %q, want %q", got, c.want)
			}
		})
	}
}

func TestClusterGroupIsBelowDelegatingAncestor(t *testing.T) {
	root := t.TempDir()
	leaf := filepath.Join(root, "user.slice", "session")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, content := range map[string]string{root: "cpuset cpu io memory pids\n", filepath.Dir(leaf): "memory pids\n", leaf: "\n"} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := clusterGroups([]cgroup{{group: leaf}}, "a")
	if err != nil || groups[0].group != filepath.Join(root, "testcluster-a") {
		t.Errorf("got groups %v and error %v, want testcluster-a in %s", groups, err, root)
	}
	if err := os.Remove(filepath.Join(root, "cgroup.subtree_control")); err != nil {
		t.Fatal(err)
	}
	if _, err := clusterGroups([]cgroup{{group: leaf}}, "a"); err == nil || !strings.Contains(err.Error(), "delegates cpu, memory, pids") {
		t.Errorf("got error %v without a delegating group, want one with the controllers", err)
	}
}

func TestRemoveGroups(t *testing.T) {
	group := filepath.Join(t.TempDir(), "group")
	if err := os.MkdirAll(filepath.Join(group, "kubepods", "pod"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds no group
		if err := removeGroups(group); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(group); err == nil {
			t.Error("the cgroup was not removed")
		}
	}
}
