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

// lookPath returns the path of a program of the operating system.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("finding %s, which is part of POSIX: %v", name, err)
	}
	return path
}

func startSleep(t *testing.T) *Process {
	t.Helper()
	p := &Process{Name: "sleeper", Path: lookPath(t, "sleep"), Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log")}
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill(context.WithoutCancel(t.Context())) })
	return p
}

func TestProcess(t *testing.T) {
	p := startSleep(t)
	if _, ok := p.ExitCode(); !p.Running() || ok {
		t.Fatal("want a started process to be running, without an exit code")
	}
	copied := &Process{Name: p.Name, PID: p.PID, Start: p.Start}
	if !copied.Running() {
		t.Error("want Running to return true for the record of a running process")
	}
	samePID := &Process{Name: p.Name, PID: p.PID, Start: "1"}
	if samePID.Running() {
		t.Error("want a process with another start time not to be running")
	}
	if err := samePID.Kill(t.Context()); err != nil || !p.Running() {
		t.Errorf("got error %v, want Kill not to signal another process with the same pid", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, ok := p.ExitCode(); p.Running() || copied.Running() || !ok || code != -1 {
		t.Errorf("got exit code %d, known %t after Stop, want -1", code, ok)
	}
	if _, ok := copied.ExitCode(); ok {
		t.Error("got an exit code of another program's process, want none")
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("got error %v for a signal to an exited process, want none", err)
	}
}

// A process disappears from the kernel a moment before its exit code is known. Until then it counts as running, so a caller that
// observes its exit also gets the exit code.
func TestExitedProcessHasExitCode(t *testing.T) {
	p := &Process{Name: "exited", PID: startSleep(t).PID, Start: "another time", exited: make(chan struct{}), code: new(3)}
	if _, known := p.ExitCode(); !p.Running() || known {
		t.Errorf("got running %t, exit code known %t before the exit, want true and false", p.Running(), known)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("got error %v for a signal, want none", err)
	}
	close(p.exited)
	if code, known := p.ExitCode(); p.Running() || !known || code != 3 {
		t.Errorf("got running %t, exit code %d, known %t after the exit, want 3", p.Running(), code, known)
	}
}

func TestProcessExitCodeAndLog(t *testing.T) {
	p := &Process{
		Name: "shell", Path: lookPath(t, "sh"), Log: filepath.Join(t.TempDir(), "log"),
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
		t.Errorf("got exit code %d, known %t, want 3", code, ok)
	}
	if got := p.LogTail(); got != "out\nhello\nunset" {
		t.Errorf("got log %q, want %q", got, "out\nhello\nunset")
	}
	missing := &Process{Name: "missing", Path: filepath.Join(t.TempDir(), "missing"), Log: p.Log}
	if err := missing.launch(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v for a missing program, want ErrNotExist", err)
	}
	if got := (&Process{Log: filepath.Join(t.TempDir(), "none")}).LogTail(); !strings.Contains(got, "no log") {
		t.Errorf("got %q for a missing log, want 'no log' in it", got)
	}
}

func TestWaitTimesOut(t *testing.T) {
	p := startSleep(t)
	if err := p.Wait(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "sleeper") {
		t.Errorf("got error %v for a running process, want its name in it", err)
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
		t.Error("want an error for a truncated file")
	}
}

func TestStateRecord(t *testing.T) {
	var s state
	s.record(&Process{Name: "a", PID: 1})
	s.record(&Process{Name: "b", PID: 2})
	s.record(&Process{Name: "a", PID: 3})
	if len(s.Processes) != 2 || s.process("a").PID != 3 || s.process("c") != nil {
		t.Errorf("got processes %v, want b and the second a", s.Processes)
	}
}

// createInstanceDir creates the folder of an instance.
func createInstanceDir(t *testing.T, s state) string {
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

func TestRemoveUnused(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ownStart, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	orphan, lasting, api := startSleep(t), startSleep(t), startSleep(t)
	api.Name = APIServer
	orphanedDir := createInstanceDir(t, state{Name: "orphaned", Owner: &Process{PID: os.Getpid(), Start: "1"}, Processes: []*Process{orphan}})
	ownedDir := createInstanceDir(t, state{Name: "owned", Owner: &Process{PID: os.Getpid(), Start: ownStart}, Processes: []*Process{lasting}})
	runningDir := createInstanceDir(t, state{Name: "running", Processes: []*Process{api}})
	exitedDir := createInstanceDir(t, state{Name: "exited", Processes: []*Process{{Name: APIServer, PID: 1, Start: "1"}}})
	otherDir := createInstanceDir(t, state{Name: "other", Processes: []*Process{{Name: APIServer, PID: 1, Start: "1"}}})
	for _, name := range []string{"running", "exited"} {
		if err := removeUnused(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for dir, exists := range map[string]bool{orphanedDir: false, ownedDir: true, runningDir: true, exitedDir: false, otherDir: true} {
		if _, err := os.Stat(dir); (err == nil) != exists {
			t.Errorf("%s: got error %v, want it to exist: %t", filepath.Base(dir), err, exists)
		}
	}
	if err := orphan.Wait(t.Context(), time.Minute); err != nil {
		t.Errorf("the process of the orphaned instance: %v", err)
	}
	if !lasting.Running() || !api.Running() {
		t.Errorf("got owned running %t, API server running %t, want both", lasting.Running(), api.Running())
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
		t.Errorf("got error %v for a second reservation of a name, want ErrInUse", err)
	}
	additional, err := second.ReservePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	ports := slices.Concat(first.state.Ports, second.state.Ports)
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 2*portCount+3 || !slices.Equal(second.state.Ports[portCount:], additional) {
		t.Errorf("ports %v and %v overlap or are not recorded", first.state.Ports, second.state.Ports)
	}
	if err := second.removeOwner(); err != nil {
		t.Fatal(err)
	}
	if again, err := Open("two"); err != nil || again.state.Owner != nil || first.state.Owner == nil || !first.state.Owner.Running() {
		t.Errorf("got error %v, want an owner of the first instance and none of the second", err)
	}
	instances, err := List()
	if err != nil || len(instances) != 2 || instances[0].Name != "one" || instances[1].Platform() != Bare {
		t.Errorf("got instances %v, error %v, want one and two", instances, err)
	}
	for _, instance := range instances {
		if err := instance.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open("one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got error %v for a stopped instance, want ErrNotFound", err)
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
		t.Error("want an instance without processes not to be running")
	}
	if err := instance.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want a deleted folder", err)
	}
}

func TestStartProcess(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	i, err := reserve(t.Context(), Options{Name: "extra", Platform: Bare})
	if err != nil {
		t.Fatal(err)
	}
	sleep := lookPath(t, "sleep")
	p, err := i.StartProcess("extra", sleep, []string{"600"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.StartProcess("extra", sleep, nil, nil); err == nil {
		t.Error("want an error for a second start of a running process")
	}
	if err := i.Halt(t.Context(), "unknown"); err == nil {
		t.Error("want an error for halting an unknown process")
	}
	if err := i.Resume(t.Context(), "unknown"); err == nil {
		t.Error("want an error for resuming an unknown process")
	}
	if err := i.Halt(t.Context(), "extra"); err != nil || p.Running() {
		t.Errorf("got error %v, running %t after Halt, want an exited process", err, p.Running())
	}
	again, err := i.StartProcess("extra", sleep, []string{"600"}, nil)
	if err != nil || len(i.Processes()) != 1 || i.Process("extra") != again {
		t.Errorf("got error %v, processes %v after a second start, want the new process", err, i.Processes())
	}
	if _, err := i.StartProcess("missing", filepath.Join(t.TempDir(), "missing"), nil, nil); err == nil || i.Process("missing") != nil {
		t.Errorf("got error %v, process %v for a missing program, want only an error", err, i.Process("missing"))
	}
	// Another client stops the instance, using its state file.
	other, err := Open("extra")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context()); err != nil || again.Running() {
		t.Errorf("got error %v, running %t after Stop, want an exited process", err, again.Running())
	}
}
