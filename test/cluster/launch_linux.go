package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// startIn starts the command of p in the namespaces that p selects.
func (p *Process) startIn(command *exec.Cmd) error {
	if p.Isolated {
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	}
	if p.Network == 0 {
		return command.Start()
	}
	target, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.Network))
	if err != nil {
		return fmt.Errorf("joining the network of process %d: %w", p.Network, err)
	}
	defer func() { _ = target.Close() }() // read only
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("joining the network of process %d: %w", p.Network, err)
	}
	defer func() { _ = own.Close() }() // read only
	// A child process inherits the network namespace of the thread that starts it.
	runtime.LockOSThread()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("joining the network of process %d: %w", p.Network, err)
	}
	startErr := command.Start()
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		return errors.Join(startErr, err) // the thread remains locked and exits with its goroutine
	}
	runtime.UnlockOSThread()
	return startErr
}
