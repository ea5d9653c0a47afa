package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	stopTimeout  = 20 * time.Second
	exitInterval = 50 * time.Millisecond
	tailLines    = 40
	statFields   = 20 // fields of /proc/<pid>/stat after the command up to the start time, see proc(5)
)

// Process is the record of a started process. The state file of its instance contains it, so another program
// can stop and restart the process.
type Process struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start string   `json:"start"` // start time from the kernel, which together with the pid identifies the process
	Path  string   `json:"path"`
	Args  []string `json:"args,omitempty"`
	Env   []string `json:"env,omitempty"`
	Log   string   `json:"log"`
	Port  int      `json:"port,omitempty"`
	// Isolated starts the process as the first one of new namespaces.
	Isolated bool `json:"isolated,omitempty"`
	// Network is the pid of the process whose network namespace this process joins; 0 means the network of the machine.
	Network int `json:"network,omitempty"`

	exited chan struct{}
	code   *int
}

// inheritedVariables are the only environment variables of the caller that a started process inherits. Results must not depend on others.
var inheritedVariables = []string{"HOME", "PATH", "TMPDIR", "USER", "GOCOVERDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}

func baseEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(inheritedVariables, name)
	})
}

// launch starts the process in its own session, so neither the exit of the caller nor Ctrl-C in its terminal ends the process. It
// appends the output to the log.
func (p *Process) launch() error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	command := exec.Command(p.Path, p.Args...)
	command.Dir = filepath.Dir(p.Log)
	command.Env = append(baseEnvironment(), p.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.startIn(command); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.PID = command.Process.Pid
	p.Start, _ = startTime(p.PID)
	p.exited, p.code = make(chan struct{}), new(-1)
	go func(exited chan struct{}, code *int) {
		_ = command.Wait() // the exit code has the result
		*code = command.ProcessState.ExitCode()
		close(exited)
	}(p.exited, p.code)
	return nil
}

// Running reports whether the process is running; another process with the same pid does not count. A process of this program counts as
// running until [Process.ExitCode] is known.
func (p *Process) Running() bool {
	if p.exited == nil {
		return p.alive()
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// alive reports whether the process exists and is not a zombie.
func (p *Process) alive() bool {
	if p.PID <= 0 || p.Start == "" {
		return false
	}
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// ExitCode returns the exit code of an exited process that this program has started. ok is false if it is running, and for processes of
// other programs. The code of a process that a signal has ended is -1.
func (p *Process) ExitCode() (code int, ok bool) {
	if p.exited == nil {
		return 0, false
	}
	select {
	case <-p.exited:
		return *p.code, true
	default:
		return 0, false
	}
}

// Signal sends a signal to the process, unless it has exited or its pid belongs to another process.
func (p *Process) Signal(signal syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// Terminate sends SIGTERM, as a kubelet does, and returns immediately.
func (p *Process) Terminate() error { return p.Signal(syscall.SIGTERM) }

// Stop terminates the process, kills it if it has not exited after 20 s, and waits for its exit.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Terminate(); err != nil {
		return err
	}
	if p.Wait(ctx, stopTimeout) == nil {
		return nil
	}
	return p.Kill(ctx)
}

// Kill kills the process, like a crash, and waits for its exit.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.Wait(ctx, stopTimeout)
}

// Wait waits for the exit of the process, and returns an error after the timeout.
func (p *Process) Wait(ctx context.Context, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, exitInterval, timeout, true, func(context.Context) (bool, error) {
		return !p.Running(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s (pid %d) to exit: %w", p.Name, p.PID, err)
	}
	return nil
}

// LogTail returns the last lines of the log.
func (p *Process) LogTail() string {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return tail(string(content), tailLines)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// startTime returns the start time of the process with a pid. It returns an error for a zombie. Without /proc, it runs ps.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err == nil {
		return parseStat(string(stat))
	}
	if _, procErr := os.Stat("/proc/self/stat"); procErr == nil {
		return "", fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	output, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d has exited", pid)
	}
	return strings.TrimSpace(start), nil
}

// parseStat returns the start time in a stat line, whose second field may contain spaces and parentheses, see proc(5).
func parseStat(stat string) (string, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < statFields {
		return "", fmt.Errorf("process state %q is not in the format of proc(5)", stat)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", errors.New("the process has exited")
	}
	return fields[statFields-1], nil
}
