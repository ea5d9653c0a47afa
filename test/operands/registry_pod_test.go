//go:build operands

package operands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

// replacement replaces a part of an argument or of a variable with its value on this machine.
type replacement struct{ rendered, local, why string }

// registryReplacements replaces the paths and ports of a registry's pod with those of this machine.
var registryReplacements = []replacement{
	{"--hostname=0.0.0.0", "--hostname=127.0.0.1", "all interfaces: on this machine only loopback"},
	{"--port=8080", "--port={rest}", "the port of the server: a free one"},
	volumeReplacement,
}

// volumeReplacement is also required for processes with their own network.
var volumeReplacement = replacement{"=/etc/", "={dir}/etc/", "volumes"}

// registryPod runs the containers of a registry as processes.
type registryPod struct {
	t    *testing.T
	dir  string
	rest int
	spec corev1.PodSpec
	// content contains the data of the Secrets and ConfigMaps to which volumes and variables refer.
	content map[string]map[string]string
	// replacements is registryReplacements or a part of it.
	replacements []replacement
}

func newRegistryPod(t *testing.T, spec corev1.PodSpec, content map[string]map[string]string) *registryPod {
	t.Helper()
	p := &registryPod{t: t, dir: t.TempDir(), spec: spec, content: content, replacements: registryReplacements}
	var err error
	p.rest, err = machine.FreePort()
	p.must(err)
	for i := range spec.Containers {
		for _, mount := range spec.Containers[i].VolumeMounts {
			p.mount(mount)
		}
	}
	return p
}

func (p *registryPod) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// mount writes the files of a volume with its mode.
func (p *registryPod) mount(mount corev1.VolumeMount) {
	p.t.Helper()
	index := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if index < 0 {
		p.t.Fatalf("the pod has no volume %s", mount.Name)
	}
	volume, source, mode := p.spec.Volumes[index], "", os.FileMode(0o644)
	switch {
	case volume.Secret != nil:
		source, mode = "Secret/"+volume.Secret.SecretName, os.FileMode(*volume.Secret.DefaultMode)
	case volume.ConfigMap != nil:
		source = "ConfigMap/" + volume.ConfigMap.Name
	}
	content, found := p.content[source]
	if !found {
		p.t.Fatalf("volume %s refers to %q, which this test does not create", mount.Name, source)
	}
	dir := filepath.Join(p.dir, mount.MountPath)
	p.must(os.MkdirAll(dir, 0o755))
	for name, text := range content {
		p.must(os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
}

// toLocal replaces the paths and ports in an argument or a variable of a container with those of this machine.
func (p *registryPod) toLocal(text string) string {
	var pairs []string
	for _, replacement := range p.replacements {
		pairs = append(pairs, replacement.rendered, p.substitute(replacement.local))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (p *registryPod) substitute(text string) string {
	return strings.NewReplacer("{dir}", p.dir, "{rest}", strconv.Itoa(p.rest)).Replace(text)
}

// containerProcess is the process of a container.
type containerProcess struct {
	log  string
	stop func()
}

// start starts a container as a kubelet does, without the omitted variables.
func (p *registryPod) start(container *corev1.Container, omitted ...string) *containerProcess {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), buildExpiry)
	defer cancel()
	program, words := p.program(ctx, container)
	env := p.environment(container, omitted)
	for _, word := range container.Args {
		words = append(slices.Clip(words), p.toLocal(machine.Expand(word, env)))
	}
	r := &containerProcess{log: filepath.Join(p.dir, container.Name+".log")}
	log, err := os.Create(r.log)
	p.must(err)
	defer log.Close()
	command := exec.Command(program, words...)
	command.Dir, command.Stdout, command.Stderr = p.dir, log, log
	command.Env = []string{"HOME=" + p.dir, "PATH=/usr/bin:/bin"}
	for _, entry := range env {
		command.Env = append(command.Env, entry.Name+"="+entry.Value)
	}
	p.must(command.Start())
	r.stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have exited
		exited := make(chan struct{})
		go func() { _ = command.Wait(); close(exited) }()
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = command.Process.Kill()
			<-exited
		}
	})
	p.t.Cleanup(r.stop)
	return r
}

// program returns the program of a container and its first arguments.
func (p *registryPod) program(ctx context.Context, container *corev1.Container) (path string, words []string) {
	p.t.Helper()
	var err error
	switch {
	case slices.Equal(container.Command, []string{"/model-registry", "proxy"}):
		path, err = programs.ModelRegistry(ctx)
		words = container.Command[1:]
	case container.Name == rbacproxy.ContainerName && len(container.Command) == 0: // the image starts it
		path, err = cluster.BuildPeer(ctx, cluster.KubeRBACProxy, os.Stdout)
	default:
		p.t.Fatalf("%s runs %v", container.Name, container.Command)
	}
	p.must(err)
	return path, words
}

// environment returns the variables of a container with expanded references.
func (p *registryPod) environment(container *corev1.Container, omitted []string) []corev1.EnvVar {
	p.t.Helper()
	var env []corev1.EnvVar
	for _, entry := range container.Env {
		if slices.Contains(omitted, entry.Name) {
			continue
		}
		if entry.ValueFrom == nil {
			entry.Value = p.toLocal(machine.Expand(entry.Value, env))
		} else {
			ref := entry.ValueFrom.SecretKeyRef
			value, found := p.content["Secret/"+ref.Name][ref.Key]
			if !found {
				p.t.Fatalf("%s refers to key %s of Secret %s, which this test does not create", entry.Name, ref.Key, ref.Name)
			}
			entry.Value = value
		}
		env = append(env, entry)
	}
	return env
}

func (r *containerProcess) read() string {
	text, err := os.ReadFile(r.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// waitReady waits until all probes of a container succeed.
func (p *registryPod) waitReady(container *corev1.Container, process *containerProcess) {
	p.t.Helper()
	for name, probe := range map[string]*corev1.Probe{
		"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
	} {
		if probe == nil {
			continue
		}
		url := p.probeURL(container, probe.HTTPGet)
		NewWithT(p.t).Eventually(func(g Gomega) {
			status, text, err := p.request(http.MethodGet, url, "")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK), text)
		}, startExpiry, pollInterval).Should(Succeed(), func() string { return name + " " + url + "\n" + process.read() })
	}
}

// probeURL returns the URL of a probe.
func (p *registryPod) probeURL(container *corev1.Container, get *corev1.HTTPGetAction) string {
	named := slices.ContainsFunc(container.Ports, func(c corev1.ContainerPort) bool { return c.Name == get.Port.StrVal })
	if get.Port != intstr.FromString("http-api") || !named {
		p.t.Fatalf("the probe of %s uses port %s, which the container does not have", container.Name, get.Port.String())
	}
	return fmt.Sprintf("http://localhost:%d%s", p.rest, get.Path)
}

// request sends a request, with a JSON body unless body is empty.
func (p *registryPod) request(method, url, body string) (status int, responseBody string, err error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
