package node

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// mount mounts proc, sysfs, cgroups and directories for the programs of the node.
func (s Settings) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	for _, step := range []func() error{mountKernel, s.mountProcessors, s.mountSysctls, s.mountOverlays, s.writeNames} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type mountPoint struct{ source, target, fsType, data string }

func mountAll(points ...mountPoint) error {
	for _, p := range points {
		if err := os.MkdirAll(p.target, 0o755); err != nil {
			return fmt.Errorf("mounting %s: %w", p.target, err)
		}
		if err := unix.Mount(p.source, p.target, p.fsType, 0, p.data); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", p.fsType, p.target, err)
		}
	}
	return nil
}

// mountKernel mounts proc, sysfs, and the cgroups of the new cgroup namespace, whose roots are the cgroups of the cluster.
func mountKernel() error {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return fmt.Errorf("reading the cgroups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts: %w", err)
	}
	found, err := ownCgroups(string(cgroups), string(mounts))
	if err != nil {
		return err
	}
	if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting /sys: %w", err)
	}
	if err := mountAll(mountPoint{"proc", "/proc", "proc", ""}, mountPoint{"sysfs", "/sys", "sysfs", ""}); err != nil {
		return err
	}
	if found[0].controllers == "" {
		return mountCgroup2()
	}
	points := []mountPoint{{"tmpfs", "/sys/fs/cgroup", "tmpfs", "mode=755"}}
	for _, h := range found {
		name, isNamed := strings.CutPrefix(h.controllers, "name=")
		options := h.controllers
		if isNamed {
			options = "none," + h.controllers
		}
		points = append(points, mountPoint{"cgroup", "/sys/fs/cgroup/" + name, "cgroup", options})
	}
	return mountAll(points...)
}

// mountCgroup2 mounts cgroup v2 and moves this process out of the root, because a cgroup with processes cannot enable controllers for its
// children.
func mountCgroup2() error {
	if err := mountAll(mountPoint{"cgroup2", "/sys/fs/cgroup", "cgroup2", ""}); err != nil {
		return err
	}
	if err := os.Mkdir("/sys/fs/cgroup/node", 0o755); err != nil {
		return fmt.Errorf("creating a cgroup: %w", err)
	}
	if err := os.WriteFile("/sys/fs/cgroup/node/cgroup.procs", []byte("0"), 0o600); err != nil {
		return fmt.Errorf("joining a cgroup: %w", err)
	}
	controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return fmt.Errorf("reading the controllers: %w", err)
	}
	for _, controller := range strings.Fields(string(controllers)) {
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+controller), 0o600); err != nil {
			return fmt.Errorf("enabling controller %s: %w", controller, err)
		}
	}
	return nil
}

// minProcessors is enough for the CPU requests of all samples together.
const minProcessors = 16

// numaNodes returns how many NUMA nodes, each with the given number of processors, have at least minProcessors in total.
func numaNodes(processors int) int { return (minProcessors + processors - 1) / processors }

// mountProcessors mounts NUMA nodes that repeat the processors of the machine, so the kubelet reports enough CPUs for the requests of
// pods. The processors keep their numbers, because the kubelet writes them into cpusets. Containers mount their own sysfs.
func (s Settings) mountProcessors() error {
	const nodes = "/sys/devices/system/node"
	if _, err := os.Stat(nodes + "/node0"); err != nil {
		return nil // without NUMA, the kubelet does not read this directory
	}
	processors, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	if err != nil {
		return fmt.Errorf("counting processors: %w", err)
	}
	dir := s.file("processors")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("mounting processors: %w", err)
	}
	for number := range numaNodes(runtime.NumCPU()) {
		folder := filepath.Join(dir, fmt.Sprintf("node%d", number))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("mounting processors: %w", err)
		}
		for _, file := range []string{"meminfo", "distance"} {
			if err := copyFile(filepath.Join(nodes, "node0", file), filepath.Join(folder, file)); err != nil {
				return fmt.Errorf("mounting processors: %w", err)
			}
		}
		for _, processor := range processors {
			if err := os.Symlink(processor, filepath.Join(folder, filepath.Base(processor))); err != nil {
				return fmt.Errorf("mounting processors: %w", err)
			}
		}
	}
	return bind(dir, nodes)
}

// kubeletSysctls are the sysctls of the whole machine that a kubelet sets if they have other values.
var kubeletSysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// mountSysctls mounts files with the values of kubeletSysctls, so the kubelet does not change the machine.
func (s Settings) mountSysctls() error {
	if err := os.MkdirAll(s.file("sysctls"), 0o755); err != nil {
		return fmt.Errorf("mounting sysctls: %w", err)
	}
	for key, value := range kubeletSysctls {
		file := s.file("sysctls", strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return fmt.Errorf("mounting sysctls: %w", err)
		}
		if err := bind(file, filepath.Join("/proc/sys", key)); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

// mountOverlays mounts overlays on the directories of the machine to which the programs write. The directory of the cluster has the
// persistent data.
func (s Settings) mountOverlays() error {
	if err := mountAll(mountPoint{"tmpfs", "/run", "tmpfs", "mode=755"}); err != nil {
		return err
	}
	for _, folder := range []string{"/etc", "/var/lib", "/var/log"} {
		upper, work := filepath.Join("/run/node", folder, "upper"), filepath.Join("/run/node", folder, "work")
		for _, dir := range []string{upper, work} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("mounting an overlay on %s: %w", folder, err)
			}
		}
		options := "lowerdir=" + folder + ",upperdir=" + upper + ",workdir=" + work
		if err := mountAll(mountPoint{"overlay", folder, "overlay", options}); err != nil {
			return err
		}
	}
	// The kubelet uses its default directory, because the paths of sockets have a length limit. The content is persistent.
	for _, dir := range []string{s.file("kubelet"), kubeletDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("creating the directory of the kubelet: %w", err)
		}
	}
	return bind(s.file("kubelet"), kubeletDir)
}

const kubeletDir = "/var/lib/kubelet"

// writeNames replaces the name resolution of the machine: the node resolves only localhost and its own name.
func (s Settings) writeNames() error {
	for file, content := range map[string]string{
		"/etc/hosts":       "127.0.0.1 localhost\n" + Address + " " + s.Name + "\n",
		"/etc/resolv.conf": "nameserver " + gateway + "\noptions timeout:1 attempts:1\n",
	} {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("replacing %s: %w", file, err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return fmt.Errorf("replacing %s: %w", file, err)
		}
	}
	return nil
}
