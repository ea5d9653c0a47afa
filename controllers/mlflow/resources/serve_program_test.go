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

// fakeServer is a server that reports its start and ends at a signal.
type fakeServer struct {
	t       *testing.T
	process *exec.Cmd
	said    *bufio.Scanner
}

func startServer(t *testing.T, lock, store string) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, process: exec.CommandContext(t.Context(), python(t), "-c", serveProgram, lock, "/bin/sh", "-c", "echo started; exec sleep 600")}
	s.process.Env = append(os.Environ(), envBackendStore+"="+store)
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it signals its group, as process 1 of a container does
	s.process.Cancel = func() error { return syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) }
	read, write := io.Pipe()
	s.process.Stdout, s.process.Stderr, s.said = write, write, bufio.NewScanner(read)
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

// expect waits for the next line, which has to hold a text.
func (s *fakeServer) expect(text string) {
	s.t.Helper()
	if !s.said.Scan() || !strings.Contains(s.said.Text(), text) {
		s.t.Fatalf("got line %q (error %v), want %q", s.said.Text(), s.said.Err(), text)
	}
}

// stop ends it as a kubelet does, and returns its exit code.
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

// Two pods on one volume, as there are while a deleted one ends: the second server starts when the first has stopped.
func TestOneServerOnAVolume(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	first := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	first.expect("started")
	second := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	second.expect("Another server still uses this volume; waiting until it has stopped.")
	if code := first.stop(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("the first ends with %d", code)
	}
	second.expect("The other server has stopped.")
	second.expect("started")
	third := startServer(t, lock, "sqlite:////mlflow/mlflow.db")
	third.expect("waiting")
	if code := third.stop(); code != 0 {
		t.Errorf("one that waits ends with %d", code)
	}
	if second.process.ProcessState != nil {
		t.Error("the second server process stopped, although another was terminated")
	}
}

func TestServerWithoutALock(t *testing.T) {
	t.Run("remote store", func(t *testing.T) {
		lock := filepath.Join(t.TempDir(), "lock")
		startServer(t, lock, "postgresql://db/tracking").expect("started")
		if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a lock: %v", err)
		}
	})
	t.Run("a volume that cannot be locked", func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "missing", "lock"), "sqlite:////mlflow/mlflow.db")
		s.expect("This volume cannot be locked (No such file or directory); the server starts without a lock.")
		s.expect("started")
	})
}

func TestServeLocksSQLiteFile(t *testing.T) {
	volume := func(s *mlflowv1.MLflowSpec) { s.Storage = &corev1.PersistentVolumeClaimSpec{} }
	file := func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite:////mlflow/mlflow.db" }
	for name, c := range map[string]struct {
		changes []func(*mlflowv1.MLflowSpec)
		alone   bool
	}{
		"remote store":         {[]func(*mlflowv1.MLflowSpec){volume}, false},
		"file":                 {[]func(*mlflowv1.MLflowSpec){volume, file}, true},
		"file of the registry": {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = "sqlite:////mlflow/registry.db" }}, true},
		"file of the replica":  {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "sqlite:////mlflow/copy.db" }}, false},
		"Secret":               {[]func(*mlflowv1.MLflowSpec){volume, func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri") }}, true},
		"Secret, no volume":    {[]func(*mlflowv1.MLflowSpec){func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri") }}, false},
		"several replicas":     {[]func(*mlflowv1.MLflowSpec){volume, file, func(s *mlflowv1.MLflowSpec) { s.Replicas = new(int32(2)) }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, mlflowtest.MLflow(c.changes...), platformInputs["plain"])
			command := pod.Containers[0].Command
			if alone := len(command) == 5 && command[2] == serveProgram; alone != c.alone || command[len(command)-1] != "mlflow" {
				t.Errorf("command %q", command)
			}
			if grace := pod.TerminationGracePeriodSeconds; (grace != nil) != c.alone {
				t.Errorf("grace period %v", grace)
			}
		})
	}
}
