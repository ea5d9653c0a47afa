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

// replacement replaces a part of an argument by its value on this machine.
type replacement struct{ rendered, here, why string }

// movedRegistry maps the paths and ports of a registry's pod to those of this machine.
var movedRegistry = []replacement{
	{"--hostname=0.0.0.0", "--hostname=127.0.0.1", "all interfaces: here the local one only"},
	{"--port=8080", "--port={rest}", "the port of the server: here one that is free"},
	movedVolumes,
}

// movedVolumes is necessary even if the process has its own network.
var movedVolumes = replacement{"=/etc/", "={dir}/etc/", "volumes"}

// registryPod runs the server of a registry as a process.
type registryPod struct {
	t    *testing.T
	dir  string
	rest int
	spec corev1.PodSpec
	// content has the data of the Secrets and ConfigMaps that volumes and variables refer to.
	content map[string]map[string]string
	// moved is movedRegistry, or a part of it.
	moved []replacement
}

func newRegistryPod(t *testing.T, spec corev1.PodSpec, content map[string]map[string]string) *registryPod {
	t.Helper()
	p := &registryPod{t: t, dir: t.TempDir(), spec: spec, content: content, moved: movedRegistry}
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
	at := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if at < 0 {
		p.t.Fatalf("there is no volume %s", mount.Name)
	}
	volume, source, mode := p.spec.Volumes[at], "", os.FileMode(0o644)
	switch {
	case volume.Secret != nil:
		source, mode = "Secret/"+volume.Secret.SecretName, os.FileMode(*volume.Secret.DefaultMode)
	case volume.ConfigMap != nil:
		source = "ConfigMap/" + volume.ConfigMap.Name
	}
	content, found := p.content[source]
	if !found {
		p.t.Fatalf("volume %s is %q, which this test does not have", mount.Name, source)
	}
	dir := filepath.Join(p.dir, mount.MountPath)
	p.must(os.MkdirAll(dir, 0o755))
	for name, text := range content {
		p.must(os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
}

// here replaces the paths and ports in the arguments of a container by those of this machine.
func (p *registryPod) here(text string) string {
	var pairs []string
	for _, place := range p.moved {
		pairs = append(pairs, place.rendered, p.fill(place.here))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (p *registryPod) fill(text string) string {
	return strings.NewReplacer("{dir}", p.dir, "{rest}", strconv.Itoa(p.rest)).Replace(text)
}

// running is the process of a container.
type running struct {
	log  string
	stop func()
}

// start starts a container like a kubelet, without the given variables.
func (p *registryPod) start(container *corev1.Container, leftOut ...string) *running {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), buildExpiry)
	defer cancel()
	program, words := p.program(ctx, container)
	env := p.environment(container, leftOut)
	for _, word := range container.Args {
		words = append(slices.Clip(words), p.here(machine.Expand(word, env)))
	}
	r := &running{log: filepath.Join(p.dir, container.Name+".log")}
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
		ended := make(chan struct{})
		go func() { _ = command.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = command.Process.Kill()
			<-ended
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
func (p *registryPod) environment(container *corev1.Container, leftOut []string) []corev1.EnvVar {
	p.t.Helper()
	var env []corev1.EnvVar
	for _, entry := range container.Env {
		if slices.Contains(leftOut, entry.Name) {
			continue
		}
		if entry.ValueFrom == nil {
			entry.Value = p.here(machine.Expand(entry.Value, env))
		} else {
			ref := entry.ValueFrom.SecretKeyRef
			value, found := p.content["Secret/"+ref.Name][ref.Key]
			if !found {
				p.t.Fatalf("%s refers to key %s of Secret %s, which this test does not have", entry.Name, ref.Key, ref.Name)
			}
			entry.Value = value
		}
		env = append(env, entry)
	}
	return env
}

func (r *running) read() string {
	text, err := os.ReadFile(r.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// ready waits until all probes of a container succeed.
func (p *registryPod) ready(container *corev1.Container, process *running) {
	p.t.Helper()
	for name, probe := range map[string]*corev1.Probe{
		"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
	} {
		if probe == nil {
			continue
		}
		url := p.probed(container, probe.HTTPGet)
		NewWithT(p.t).Eventually(func(g Gomega) {
			status, text, err := p.ask(http.MethodGet, url, "")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK), text)
		}, startExpiry, poll).Should(Succeed(), func() string { return name + " " + url + "\n" + process.read() })
	}
}

// probed returns the URL of a probe.
func (p *registryPod) probed(container *corev1.Container, get *corev1.HTTPGetAction) string {
	named := slices.ContainsFunc(container.Ports, func(c corev1.ContainerPort) bool { return c.Name == get.Port.StrVal })
	if get.Port != intstr.FromString("http-api") || !named {
		p.t.Fatalf("the probe of %s uses %s, which it does not have", container.Name, get.Port.String())
	}
	return fmt.Sprintf("http://localhost:%d%s", p.rest, get.Path)
}

// ask sends a request, with a JSON body if any.
func (p *registryPod) ask(method, url, body string) (status int, reply string, err error) {
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
