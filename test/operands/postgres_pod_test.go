//go:build operands

package operands

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
)

// databaseVolume is a folder of this machine in place of the volume claim of a generated database.
type databaseVolume struct {
	server *postgres
	dir    string
	pod    corev1.PodSpec
}

// databasePod is the server of a pod, process 1 of its own PID namespace as in a container.
type databasePod struct {
	command *exec.Cmd
	log     string
	port    int
	ended   chan struct{}
}

// generatedDatabase renders the Deployment of a generated database and makes a volume for it.
func generatedDatabase(t *testing.T) *databaseVolume {
	t.Helper()
	registry := &v1beta1.ModelRegistry{}
	registry.Name, registry.Namespace = "demo", "registries"
	registry.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true), Image: "quay.io/example/postgresql:16", Database: "models"}
	desired, err := resources.BuildDatabase(registry, resources.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	// Folders of tests are closed to the account of the server.
	dir, err := os.MkdirTemp("", "database-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	v := &databaseVolume{dir: filepath.Join(dir, "volume")}
	for _, object := range desired {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.Config)
		if err != nil {
			t.Fatal(err)
		}
		if content["kind"] == "Deployment" {
			deployment := appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &deployment); err != nil {
				t.Fatal(err)
			}
			v.pod = deployment.Spec.Template.Spec
		}
	}
	v.prepare(t)
	return v
}

// prepare makes the volume as the image of PostgreSQL does when it is new, and fakes for the two scripts of the image that
// start the server.
func (v *databaseVolume) prepare(t *testing.T) {
	t.Helper()
	server, err := startPostgres(t.Context(), filepath.Dir(v.dir))
	if err != nil {
		t.Fatal(err)
	}
	server.stop()
	v.server = server
	bin := filepath.Join(server.dir, "bin")
	scripts := map[string]string{
		"container-entrypoint": `exec "$@"`,
		"run-postgresql":       `exec postgres -D "` + v.dir + `/data" -p "$PGPORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories=`,
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(bin, 0o755))
	for name, script := range scripts {
		must(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	must(os.WriteFile(filepath.Join(server.dir, "data", "pg_hba.conf"), []byte("host all all 127.0.0.1/32 scram-sha-256\n"), 0o644))
	must(os.Rename(server.dir, v.dir))
	server.dir = v.dir
}

// start runs the container of the database as a kubelet would.
func (v *databaseVolume) start(t *testing.T, name string) *databasePod {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	container := v.pod.Containers[0]
	words := strings.NewReplacer(container.VolumeMounts[0].MountPath, v.dir)
	var args []string
	for _, word := range container.Command {
		args = append(args, words.Replace(word))
	}
	p := &databasePod{port: port, log: filepath.Join(t.TempDir(), name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.command = exec.Command(args[0], args[1:]...)
	p.command.Dir, p.command.Stdout, p.command.Stderr = v.dir, log, log
	p.command.Env = []string{
		"PATH=" + filepath.Join(v.dir, "bin") + ":" + v.server.bin + ":/usr/bin:/bin", "LC_ALL=C", "PGPORT=" + strconv.Itoa(port)}
	p.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	if v.server.as != nil {
		p.command.SysProcAttr.Credential = v.server.as.Credential
	}
	if err := p.command.Start(); err != nil {
		t.Fatalf("a PID namespace for %s: %v", name, err)
	}
	go func() { _ = p.command.Wait(); _ = log.Close(); close(p.ended) }()
	t.Cleanup(func() { _ = p.command.Process.Kill(); <-p.ended })
	return p
}

func (p *databasePod) read() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *databasePod) says(t *testing.T, text string) {
	t.Helper()
	NewWithT(t).Eventually(p.read, startExpiry, poll).Should(ContainSubstring(text))
}

// stop does what a kubelet does when the pod is deleted: the preStop hook, then SIGTERM, and it returns whether the server ended
// within the grace period.
func (v *databaseVolume) stop(t *testing.T, p *databasePod) {
	t.Helper()
	hook := v.pod.Containers[0].Lifecycle.PreStop.Exec.Command
	enter := append([]string{"--target", strconv.Itoa(p.command.Process.Pid), "--pid", "--"}, hook...)
	if output, err := exec.CommandContext(t.Context(), "nsenter", enter...).CombinedOutput(); err != nil {
		t.Fatalf("the preStop hook: %v\n%s", err, output)
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.ended:
	case <-time.After(time.Duration(*v.pod.TerminationGracePeriodSeconds) * time.Second):
		t.Fatalf("the server did not end within the grace period:\n%s", p.read())
	}
}

// sql runs statements in one session.
func (v *databaseVolume) sql(ctx context.Context, p *databasePod, statements string) *exec.Cmd {
	command := v.server.command(ctx, "psql", "--host=127.0.0.1", "--port="+strconv.Itoa(p.port), "--username=mlflow", "--dbname=postgres",
		"--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--command="+statements)
	command.Env = append(command.Env, "PGSSLMODE=disable")
	return command
}

func (v *databaseVolume) run(t *testing.T, p *databasePod, statements string) string {
	t.Helper()
	output, err := v.sql(t.Context(), p, statements).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", statements, err, output, p.read())
	}
	return strings.TrimSpace(string(output))
}

// connect is a client that never leaves, as a server with a connection pool.
func (v *databaseVolume) connect(t *testing.T, p *databasePod) {
	t.Helper()
	client := v.sql(t.Context(), p, "SELECT 1")
	client.Args = client.Args[:len(client.Args)-1] // statements come from standard input, which stays open
	input, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = client.Wait() })
	if _, err := io.WriteString(input, "SELECT 'here';\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(output, make([]byte, len("here\n"))); err != nil {
		t.Fatalf("the client: %v\n%s", err, p.read())
	}
}

const (
	databaseReady   = "ready to accept connections"
	databaseWaits   = "Another server still uses this volume"
	databaseRecover = "automatic recovery in progress"
)

// A Deployment replaces a pod that is being deleted while its server still runs. The server of the replacement waits until the
// first one has stopped, however it stops, and no acknowledged write is lost.
func TestSecondDatabaseServerWaits(t *testing.T) {
	for name, test := range map[string]struct {
		end     func(*testing.T, *databaseVolume, *databasePod)
		recover bool
	}{
		"the first is deleted": {end: func(t *testing.T, v *databaseVolume, p *databasePod) { v.stop(t, p) }},
		"the first is killed": {recover: true, end: func(t *testing.T, _ *databaseVolume, p *databasePod) {
			if err := p.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-p.ended
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := generatedDatabase(t)
			first := v.start(t, "first")
			first.says(t, databaseReady)
			v.connect(t, first)
			v.run(t, first, "CREATE TABLE models (name text); INSERT INTO models VALUES ('before')")

			second := v.start(t, "second")
			second.says(t, databaseWaits)
			v.run(t, first, "INSERT INTO models VALUES ('meanwhile')")
			_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", second.port))
			g.Expect(err).To(HaveOccurred(), "the second server listens while the first one runs")

			test.end(t, v, first)
			second.says(t, databaseReady)
			g.Expect(strings.Contains(second.read(), databaseRecover)).To(Equal(test.recover), second.read())
			g.Expect(v.run(t, second, "SELECT string_agg(name, ',' ORDER BY name) FROM models")).To(Equal("before,meanwhile"))
			v.stop(t, second)
		})
	}
}

// A pod that is deleted while it waits for the volume ends at once.
func TestWaitingDatabaseServerStops(t *testing.T) {
	v := generatedDatabase(t)
	first := v.start(t, "first")
	first.says(t, databaseReady)
	second := v.start(t, "second")
	second.says(t, databaseWaits)
	v.stop(t, second)
	if strings.Contains(second.read(), databaseReady) {
		t.Errorf("the second server started:\n%s", second.read())
	}
	v.stop(t, first)
}
