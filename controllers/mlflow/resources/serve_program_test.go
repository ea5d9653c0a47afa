package resources

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// fakeServer is a run of serveProgram with a command that prints its start and exits on a signal.
type fakeServer struct {
	t       *testing.T
	process *exec.Cmd
	output  *bufio.Scanner
}

func startServer(t *testing.T, lock, store string) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, process: exec.CommandContext(t.Context(), python(t), "-c", serveProgram, lock, "/bin/sh", "-c", "echo started; exec sleep 600")}
	s.process.Env = append(os.Environ(), envBackendStore+"="+store)
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the program signals its process group
	s.process.Cancel = func() error { return syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) }
	read, write := io.Pipe()
	s.process.Stdout, s.process.Stderr, s.output = write, write, bufio.NewScanner(read)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		if s.process.ProcessState == nil {
			_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
			_ = s.process.Wait()
		}
	})
	return s
}

// expect reads the next line, which must contain text.
func (s *fakeServer) expect(text string) {
	s.t.Helper()
	if !s.output.Scan() || !strings.Contains(s.output.Text(), text) {
		s.t.Fatalf("got line %q (error %v), want %q", s.output.Text(), s.output.Err(), text)
	}
}

// stop sends SIGTERM, as the kubelet does, and returns the exit code.
func (s *fakeServer) stop() int {
	s.t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	err := s.process.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		s.t.Fatal(err)
	}
	return s.process.ProcessState.ExitCode()
}

// If two pods mount the volume because one is terminating, the second server starts only when the first has stopped.
func TestOneServerOnAVolume(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	first := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	first.expect("started")
	second := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	second.expect("Another server still uses this volume; waiting until it has stopped.")
	if code := first.stop(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code of the first server: %d", code)
	}
	second.expect("The other server has stopped.")
	second.expect("started")
	third := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	third.expect("waiting")
	if code := third.stop(); code != 0 {
		t.Errorf("exit code of a waiting server: %d", code)
	}
	fourth := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	fourth.expect("waiting") // the second server still holds the lock
}

func TestServerWithoutLock(t *testing.T) {
	t.Run("remote store", func(t *testing.T) {
		lock := filepath.Join(t.TempDir(), "lock")
		startServer(t, lock, "postgresql://db/tracking").expect("started")
		if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a lock file exists, or its state is unknown: %v", err)
		}
	})
	t.Run("lock file cannot be created", func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "missing", "lock"), "sqlite:////mlflow/mlflow.db")
		s.expect("This volume cannot be locked (No such file or directory); the server starts without a lock.")
		s.expect("started")
	})
}

func TestServerLocksVolumeWithSQLite(t *testing.T) {
	volume := func(s *mlflowv1.MLflowSpec) { s.Storage = &corev1.PersistentVolumeClaimSpec{} }
	file := func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite:////mlflow/mlflow.db" }
	for name, c := range map[string]struct {
		changes []func(*mlflowv1.MLflowSpec)
		locked  bool
	}{
		"remote store":      {[]func(*mlflowv1.MLflowSpec){volume}, false},
		"SQLite file":       {[]func(*mlflowv1.MLflowSpec){volume, file}, true},
		"SQLite registry":   {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = "sqlite:////mlflow/registry.db" }}, true},
		"SQLite replica":    {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "sqlite:////mlflow/copy.db" }}, false},
		"Secret":            {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri") }}, true},
		"Secret, no volume": {[]func(*mlflowv1.MLflowSpec){func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri") }}, false},
		"several replicas":  {[]func(*mlflowv1.MLflowSpec){volume, file, func(s *mlflowv1.MLflowSpec) { s.Replicas = new(int32(2)) }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, mlflowtest.MLflow(c.changes...), platformInputs["plain"])
			command := pod.Containers[0].Command
			if locked := len(command) == 5 && command[2] == serveProgram; locked != c.locked || command[len(command)-1] != "mlflow" {
				t.Errorf("got command %q", command)
			}
			if grace := pod.TerminationGracePeriodSeconds; (grace != nil) != c.locked {
				t.Errorf("got grace period %v", grace)
			}
		})
	}
}
