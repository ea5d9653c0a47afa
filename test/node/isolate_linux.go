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

// Isolate turns this process, the first of a pid namespace with its own mounts, names and IPC, into a node: it
// creates the cgroups and the network, and runs `<this program> run <dir>` in them until that ends. The caller must have locked its
// goroutine to the main thread, because the network namespace is per thread.
func Isolate(s Settings) error {
	if err := s.enterGroups(); err != nil {
		return err
	}
	// These sockets listen in the network of the machine; sockets created after Unshare are in the new network.
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
	if err := s.makeNetwork(); err != nil {
		return err
	}
	return s.supervise(listeners)
}

func (s Settings) enterGroups() error {
	cgroups, groupErr := os.ReadFile("/proc/self/cgroup")
	mounts, mountErr := os.ReadFile("/proc/self/mountinfo")
	if err := errors.Join(groupErr, mountErr); err != nil {
		return fmt.Errorf("looking for cgroups: %w", err)
	}
	found, err := hierarchies(string(cgroups), string(mounts))
	if err != nil {
		return err
	}
	groups, err := ownGroups(found, filepath.Base(s.Dir))
	if err != nil {
		return err
	}
	var record strings.Builder
	for _, h := range groups {
		fmt.Fprintln(&record, h.group)
	}
	// Written first: Remove must find groups that a failure leaves.
	if err := os.WriteFile(s.file(groupsFile), []byte(record.String()), 0o600); err != nil {
		return fmt.Errorf("recording the cgroups: %w", err)
	}
	return enter(groups)
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

// makeNetwork gives the node a bridge with its address and a default route without a gateway behind it.
func (s Settings) makeNetwork() error {
	command := exec.Command("ip", "-batch", "-")
	command.Stdin = strings.NewReader(strings.Join([]string{
		"link set lo up", "link add node0 type bridge", "addr add " + Address + "/24 dev node0", "link set node0 up",
		"route add default via " + gateway + " dev node0", "",
	}, "\n"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("making the network of the node: %w\n%s", err, output)
	}
	for _, file := range []string{"net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables", "net/ipv4/conf/all/route_localnet"} {
		if err := os.WriteFile(filepath.Join("/proc/sys", file), []byte("1"), 0o600); err != nil {
			return fmt.Errorf("setting up the network of the node: %w", err)
		}
	}
	if err := os.WriteFile(s.file(networkFile), nil, 0o600); err != nil {
		return fmt.Errorf("announcing the network of the node: %w", err)
	}
	return nil
}

// supervise runs the node and reaps orphans; when this process ends, all processes of the namespace end.
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
			return fmt.Errorf("the node has ended with code %d", status.ExitStatus())
		}
	}
}
