//go:build operands

package operands

import (
	"bytes"
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

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// omittedOptions are rendered arguments and variables that the public MLflow rejects, see TestPublicMLflowRejectsOmittedOptions.
var omittedOptions = []struct{ rendered, why string }{
	{"--app-name=kubernetes-auth", "only the image contains the application for Kubernetes authorization"},
	{"--workspace-store-uri=kubernetes://", "only the image contains the workspace provider for namespaces"},
	{"MLFLOW_WORKSPACE_STORE_URI=kubernetes://", "as above; without it, workspaces are in the database"},
}

// replacedPaths replaces the paths, ports and addresses of a pod with those of this machine. {dir} is the folder of the pod, {port} the
// port of its server.
var replacedPaths = []struct{ rendered, local, why string }{
	{"/etc/tls/private", "{dir}/tls", "the Secret with the serving certificate"},
	{"/etc/pki/tls/certs", "{dir}/pki", "the CA certificates of the image, the platform and the user"},
	{"sqlite:////mlflow/", "sqlite:///{dir}/mlflow/", "a database on the volume"},
	{"file:///mlflow/", "file://{dir}/mlflow/", "artifacts on the volume"},
	{"--expose-prometheus=/prometheus", "--expose-prometheus={dir}/prometheus", "the metrics of the server"},
	{"/etc/mlflow/", "{dir}/config/", "the ConfigMap with the settings of trace archival"},
	{"/dev/termination-log", "{dir}/termination-log", "the termination message of a container"},
	{"--host=0.0.0.0", "--host=127.0.0.1", "all interfaces: on this machine only loopback"},
	{"--port=8443", "--port={port}", "the port of the server: a free one"},
	{"https://mlflow.opendatahub.svc:8443", "https://localhost:{port}", "the Service"},
}

// addedVariables are the variables that the image and the kubelet set. {bin} is the folder of the commands of MLflow.
var addedVariables = []struct{ name, value, why string }{
	{"PATH", "{bin}:/usr/local/bin:/usr/bin:/bin", "the commands of the image, before those of the system"},
	{"HOME", "{dir}", "the home directory"},
	{"TMPDIR", "{dir}/tmp", "the volume at /tmp"},
	{"KUBECONFIG", "{dir}/kubeconfig", "the token of the ServiceAccount, which clients of the server send"},
}

// pod runs the containers of one pod, or of pods with the same volumes, as processes.
type pod struct {
	t    *testing.T
	dir  string
	port string
	// secrets maps name/key of a secretKeyRef to its value.
	secrets map[string]string
	// extraEnv contains variables of other images.
	extraEnv []string
	// image replaces the image of MLflow.
	image *image
}

// newPod returns a pod with the oldest supported MLflow.
func newPod(t *testing.T) *pod {
	p := &pod{t: t, image: mlflowImages[oldest], dir: t.TempDir(), secrets: map[string]string{}}
	for _, dir := range []string{"tls", "pki/custom", "pki/combined", "mlflow", "prometheus", "config", "tmp"} {
		p.must(os.MkdirAll(p.path(dir), 0o755))
	}
	for _, file := range []struct{ name, source string }{{"tls/tls.crt", authority.Certificate}, {"tls/tls.key", authority.Key}} {
		content, err := os.ReadFile(file.source)
		p.must(err)
		p.write(file.name, string(content))
	}
	p.write("pki/custom/ca.crt", string(authority.CA))
	p.write("kubeconfig", "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "+
		"clusters: [{name: a, cluster: {server: https://localhost:1}}], users: [{name: a, user: {token: none}}]}")
	return p
}

func (p *pod) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pod) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pod) write(name, text string) {
	p.t.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	p.must(os.WriteFile(p.path(name), []byte(text), 0o600))
}

// read returns the content of a file of the pod, or "".
func (p *pod) read(name string) string {
	p.t.Helper()
	content, err := os.ReadFile(p.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(content)
}

// toLocal replaces the paths, ports and addresses of the pod with those of this machine.
func (p *pod) toLocal(text string) string {
	var pairs []string
	for _, replacement := range replacedPaths {
		pairs = append(pairs, replacement.rendered, p.substitute(replacement.local))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (p *pod) substitute(text string) string {
	return strings.NewReplacer("{dir}", p.dir, "{port}", p.port, "{bin}", p.image.Bin).Replace(text)
}

// address returns the URL of the pod's server.
func (p *pod) address() string { return "https://localhost:" + p.port }

// command returns the command of a container as a kubelet would start it.
func (p *pod) command(ctx context.Context, c *corev1.Container) *exec.Cmd {
	p.t.Helper()
	env := p.environment(c)
	var words []string
	for _, word := range slices.Concat(c.Command, c.Args) {
		if !isOmitted(word) {
			words = append(words, p.toLocal(machine.Expand(word, env)))
		}
	}
	command := exec.CommandContext(ctx, p.image.Path(words[0]), words[1:]...)
	if filepath.IsAbs(words[0]) {
		command = exec.CommandContext(ctx, words[0], words[1:]...)
	}
	command.Dir = p.path("tmp")
	for _, variable := range addedVariables {
		command.Env = append(command.Env, variable.name+"="+p.substitute(variable.value))
	}
	command.Env = append(command.Env, p.extraEnv...)
	for _, entry := range env {
		command.Env = append(command.Env, entry.Name+"="+p.toLocal(entry.Value))
	}
	// Kill the child processes of the server too.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	return command
}

// environment returns the variables of a container in order, with expanded references.
func (p *pod) environment(c *corev1.Container) []corev1.EnvVar {
	p.t.Helper()
	var env []corev1.EnvVar
	for _, entry := range c.Env {
		switch {
		case entry.ValueFrom == nil:
			entry.Value = machine.Expand(entry.Value, env)
		case entry.ValueFrom.SecretKeyRef != nil:
			ref := entry.ValueFrom.SecretKeyRef
			value, found := p.secrets[ref.Name+"/"+ref.Key]
			if !found {
				p.t.Fatalf("%s refers to key %s of Secret %s, which this test does not create", entry.Name, ref.Key, ref.Name)
			}
			entry.Value = value
		default:
			p.t.Fatalf("this test does not support the source of variable %s", entry.Name)
		}
		if !isOmitted(entry.Name + "=" + entry.Value) {
			env = append(env, entry)
		}
	}
	return env
}

func isOmitted(word string) bool {
	for _, omitted := range omittedOptions {
		if omitted.rendered == word {
			return true
		}
	}
	return false
}

// containerResult is the result of a container.
type containerResult struct {
	code                        int
	stdout, stderr, termination string
	// imageReport is the report of the migration program.
	imageReport resources.ImageReport
}

// run runs a container until it exits.
func (p *pod) run(ctx context.Context, c *corev1.Container) containerResult {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	command := p.command(ctx, c)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		p.t.Fatalf("running %s: %v\n%s%s", c.Name, errors.Join(err, ctx.Err()), &stdout, &stderr)
	}
	return containerResult{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), termination: p.read("termination-log")}
}
