package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// program returns the path of a program of the operating system.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("finding %s, which every POSIX system has: %v", name, err)
	}
	return path
}

func sleeper(t *testing.T) *Process {
	t.Helper()
	p := &Process{Name: "sleeper", Path: program(t, "sleep"), Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log")}
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill(context.WithoutCancel(t.Context())) })
	return p
}

func TestProcessLife(t *testing.T) {
	p := sleeper(t)
	if _, ok := p.ExitCode(); !p.Running() || ok {
		t.Fatal("a started process does not count as running")
	}
	copied := &Process{Name: p.Name, PID: p.PID, Start: p.Start}
	if !copied.Running() {
		t.Error("a running process does not count as running by its record")
	}
	impostor := &Process{Name: p.Name, PID: p.PID, Start: "1"}
	if impostor.Running() {
		t.Error("another process with the same pid counts as ours")
	}
	if err := impostor.Kill(t.Context()); err != nil || !p.Running() {
		t.Errorf("killing a process that has ended hit another one (%v)", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, ok := p.ExitCode(); p.Running() || copied.Running() || !ok || code != -1 {
		t.Errorf("after the end: code %d, known %t", code, ok)
	}
	if _, ok := copied.ExitCode(); ok {
		t.Error("the exit code of another process is known")
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signalling an ended process: %v", err)
	}
}

// The process disappears from the kernel a moment before its exit code is known here: until then it counts as running, so that
// a caller that sees its end also gets the exit code.
func TestAnEndedProcessHasAnExitCode(t *testing.T) {
	p := &Process{Name: "gone", PID: sleeper(t).PID, Start: "not that one", exited: make(chan struct{}), code: new(3)}
	if _, ended := p.ExitCode(); !p.Running() || ended {
		t.Errorf("running %t, ended %t before the exit code is known", p.Running(), ended)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("signalling it: %v", err)
	}
	close(p.exited)
	if code, ended := p.ExitCode(); p.Running() || !ended || code != 3 {
		t.Errorf("running %t, ended %t with %d", p.Running(), ended, code)
	}
}

func TestProcessExitCodeAndLog(t *testing.T) {
	p := &Process{
		Name: "shell", Path: program(t, "sh"), Log: filepath.Join(t.TempDir(), "log"),
		Args: []string{"-c", "echo out; echo $GREETING >&2; echo ${UNRELATED:-unset}; exit 3"}, Env: []string{"GREETING=hello"},
	}
	t.Setenv("UNRELATED", "seen")
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if code, ok := p.ExitCode(); !ok || code != 3 {
		t.Errorf("exit code %d, %t", code, ok)
	}
	if got := p.LogTail(); got != "out\nhello\nunset" {
		t.Errorf("log %q, want %q", got, "out\nhello\nunset")
	}
	missing := &Process{Name: "missing", Path: filepath.Join(t.TempDir(), "missing"), Log: p.Log}
	if err := missing.launch(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("starting a missing program: %v", err)
	}
	if got := (&Process{Log: filepath.Join(t.TempDir(), "none")}).LogTail(); !strings.Contains(got, "no log") {
		t.Errorf("tail of a missing log %q", got)
	}
}

func TestWaitTimesOut(t *testing.T) {
	p := sleeper(t)
	if err := p.Wait(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "sleeper") {
		t.Errorf("waiting for a process that runs on: %v", err)
	}
}

func TestStateRoundTrip(t *testing.T) {
	dir := t.TempDir()
	want := state{Name: "a", Platform: Plain, Ports: []int{20000, 20001}, Processes: []*Process{{Name: "etcd", PID: 7, Start: "9", Env: []string{"A=b"}}}}
	if err := want.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(want, got, cmp.AllowUnexported(state{}), cmpopts.IgnoreUnexported(Process{})); difference != "" {
		t.Error(difference)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(dir); err == nil {
		t.Error("want an error for half a file")
	}
}

func TestStateRecord(t *testing.T) {
	var s state
	s.record(&Process{Name: "a", PID: 1})
	s.record(&Process{Name: "b", PID: 2})
	s.record(&Process{Name: "a", PID: 3})
	if len(s.Processes) != 2 || s.process("a").PID != 3 || s.process("c") != nil {
		t.Errorf("processes %v", s.Processes)
	}
}

// folder creates the folder of an instance.
func folder(t *testing.T, s state) string {
	t.Helper()
	dir, err := instanceDir(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSweepRemovesOrphans(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ownerStart, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	orphan, lasting, api := sleeper(t), sleeper(t), sleeper(t)
	api.Name = APIServer
	orphaned := folder(t, state{Name: "orphaned", Owner: &Process{PID: os.Getpid(), Start: "1"}, Processes: []*Process{orphan}})
	owned := folder(t, state{Name: "owned", Owner: &Process{PID: os.Getpid(), Start: ownerStart}, Processes: []*Process{lasting}})
	alive := folder(t, state{Name: "alive", Processes: []*Process{api}})
	dead := folder(t, state{Name: "dead", Processes: []*Process{{Name: APIServer, PID: 1, Start: "1"}}})
	other := folder(t, state{Name: "other", Processes: []*Process{{Name: APIServer, PID: 1, Start: "1"}}})
	for _, name := range []string{"alive", "dead"} {
		if err := sweep(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for dir, exists := range map[string]bool{orphaned: false, owned: true, alive: true, dead: false, other: true} {
		if _, err := os.Stat(dir); (err == nil) != exists {
			t.Errorf("%s: unexpected error: %v", filepath.Base(dir), err)
		}
	}
	if err := orphan.Wait(t.Context(), time.Minute); err != nil {
		t.Errorf("the orphan: %v", err)
	}
	if !lasting.Running() || !api.Running() {
		t.Errorf("owned runs %t, alive runs %t", lasting.Running(), api.Running())
	}
}

func TestReserve(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	first, err := reserve(t.Context(), Options{Name: "one", Platform: Bare})
	if err != nil {
		t.Fatal(err)
	}
	second, err := reserve(t.Context(), Options{Name: "two", Platform: Bare})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(t.Context(), Options{Name: "one", Platform: Bare}); !errors.Is(err, ErrInUse) {
		t.Errorf("reserving a name twice: %v", err)
	}
	more, err := second.ReservePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	ports := slices.Concat(first.state.Ports, second.state.Ports)
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 2*portCount+3 || !slices.Equal(second.state.Ports[portCount:], more) {
		t.Errorf("ports %v and %v overlap or are not recorded", first.state.Ports, second.state.Ports)
	}
	if err := second.disown(); err != nil {
		t.Fatal(err)
	}
	if again, err := Open("two"); err != nil || again.state.Owner != nil || first.state.Owner == nil || !first.state.Owner.Running() {
		t.Errorf("an instance belongs to who reserved it until it is disowned (%v)", err)
	}
	instances, err := List()
	if err != nil || len(instances) != 2 || instances[0].Name != "one" || instances[1].Platform() != Bare {
		t.Errorf("instances %v, %v", instances, err)
	}
	for _, instance := range instances {
		if err := instance.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open("one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("opening a stopped instance: %v", err)
	}
}

func TestOpenIncompleteInstance(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := instanceDir("half")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	instance, err := Open("half")
	if err != nil {
		t.Fatal(err)
	}
	if instance.Running() {
		t.Error("an instance without processes counts as running")
	}
	if err := instance.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestStartProcess(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	i, err := reserve(t.Context(), Options{Name: "extra", Platform: Bare})
	if err != nil {
		t.Fatal(err)
	}
	sleep := program(t, "sleep")
	p, err := i.StartProcess("extra", sleep, []string{"600"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.StartProcess("extra", sleep, nil, nil); err == nil {
		t.Error("a running process was started again")
	}
	if err := i.Halt(t.Context(), "unknown"); err == nil {
		t.Error("want an error for halting an unknown process")
	}
	if err := i.Resume(t.Context(), "unknown"); err == nil {
		t.Error("want an error for resuming an unknown process")
	}
	if err := i.Halt(t.Context(), "extra"); err != nil || p.Running() {
		t.Errorf("halting: %v", err)
	}
	again, err := i.StartProcess("extra", sleep, []string{"600"}, nil)
	if err != nil || len(i.Processes()) != 1 || i.Process("extra") != again {
		t.Errorf("starting again: %v, %v", err, i.Processes())
	}
	// Another client stops the instance by its state file.
	other, err := Open("extra")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context()); err != nil || again.Running() {
		t.Errorf("stopping: %v", err)
	}
	if _, err := i.StartProcess("missing", filepath.Join(t.TempDir(), "missing"), nil, nil); err == nil {
		t.Error("want an error for starting a missing program")
	}
}
