package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Isolate sets up a node in this process, which must be the first of a PID namespace with its own mount, UTS and IPC namespaces. It
// creates the cgroups and the network, and runs `<this program> run <dir>` in them until that exits. The caller must have locked
// its goroutine to the main thread, because the network namespace is per thread.
func Isolate(s Settings) error {
	if err := s.joinClusterGroups(); err != nil {
		return err
	}
	// These sockets listen in the network of the machine; sockets that are created after Unshare are in the new network.
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("leaving the network of the machine: %w", err)
	}
	if err := s.mount(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("setting the name of the node: %w", err)
	}
	if err := s.createNetwork(); err != nil {
		return err
	}
	return s.supervise(listeners)
}

func (s Settings) joinClusterGroups() error {
	cgroups, groupErr := os.ReadFile("/proc/self/cgroup")
	mounts, mountErr := os.ReadFile("/proc/self/mountinfo")
	if err := errors.Join(groupErr, mountErr); err != nil {
		return fmt.Errorf("finding cgroups: %w", err)
	}
	found, err := ownCgroups(string(cgroups), string(mounts))
	if err != nil {
		return err
	}
	groups, err := clusterGroups(found, filepath.Base(s.Dir))
	if err != nil {
		return err
	}
	var record strings.Builder
	for _, h := range groups {
		fmt.Fprintln(&record, h.group)
	}
	// The file is written before the groups, so Remove deletes them also after a failure.
	if err := os.WriteFile(s.file(groupsFile), []byte(record.String()), 0o600); err != nil {
		return fmt.Errorf("recording the cgroups: %w", err)
	}
	return joinGroups(groups)
}

func (s Settings) listen() ([]*os.File, error) {
	var files []*os.File
	for _, port := range s.Ports {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("listening on the machine: %w", err)
		}
		file, err := listener.(*net.TCPListener).File()
		if err := errors.Join(err, listener.Close()); err != nil {
			return nil, fmt.Errorf("listening on the machine: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

// createNetwork creates a bridge with the address of the node, and a default route to a gateway that does not exist.
func (s Settings) createNetwork() error {
	command := exec.Command("ip", "-batch", "-")
	command.Stdin = strings.NewReader(strings.Join([]string{
		"link set lo up", "link add node0 type bridge", "addr add " + Address + "/24 dev node0", "link set node0 up",
		"route add default via " + gateway + " dev node0", "",
	}, "\n"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the network of the node: %w\n%s", err, output)
	}
	for _, file := range []string{"net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables", "net/ipv4/conf/all/route_localnet"} {
		if err := os.WriteFile(filepath.Join("/proc/sys", file), []byte("1"), 0o600); err != nil {
			return fmt.Errorf("setting up the network of the node: %w", err)
		}
	}
	if err := os.WriteFile(s.file(networkFile), nil, 0o600); err != nil {
		return fmt.Errorf("creating the file of the network: %w", err)
	}
	return nil
}

// supervise runs the node and reaps orphaned processes. When this process exits, the kernel ends all processes of the namespace.
func (s Settings) supervise(listeners []*os.File) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	attributes := &os.ProcAttr{Env: os.Environ(), Files: append([]*os.File{nil, os.Stdout, os.Stderr}, listeners...)}
	child, err := os.StartProcess(self, []string{self, "run", s.Dir}, attributes)
	if err != nil {
		return fmt.Errorf("starting the node: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("waiting for the node: %w", err)
		}
		if pid == child.Pid {
			return fmt.Errorf("the node exited with code %d", status.ExitStatus())
		}
	}
}
