//go:build operands

package operands

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/runtimepb"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

// adapterPackages maps the command of a container to its program in github.com/kserve/modelmesh-runtime-adapter v0.12.0.
var adapterPackages = map[string]string{
	"/opt/app/mlserver-adapter":   "model-mesh-mlserver-adapter",
	"/opt/app/ovms-adapter":       "model-mesh-ovms-adapter",
	"/opt/app/torchserve-adapter": "model-mesh-torchserve-adapter",
	"/opt/app/triton-adapter":     "model-mesh-triton-adapter",
	"/opt/app/puller":             "model-serving-puller",
}

// adapterPrograms builds the programs that are not in the cache.
var adapterPrograms = sync.OnceValues(func() (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildExpiry)
	defer cancel()
	out := map[string]string{}
	for command, pkg := range adapterPackages {
		program, err := programs.RuntimeAdapter(ctx, pkg)
		if err != nil {
			return nil, err
		}
		out[command] = program
	}
	return out, nil
})

// adapterOverrides are environment variables that replace the volume mounts with directories of the test.
var adapterOverrides = []struct{ name, value, why string }{
	{"ROOT_MODEL_DIR", "{dir}/models", "the volume models-dir at /models"},
	{"STORAGE_CONFIG_DIR", "{dir}/storage-config", "the volume storage-config at /storage-config"},
}

// adapterPod runs the sidecars of a runtime as processes.
type adapterPod struct {
	t    *testing.T
	dir  string
	spec corev1.PodSpec
	// ports maps ports of the pod to free ports of this machine.
	ports map[string]string
}

// builtInRuntime reads a built-in ClusterServingRuntime.
func builtInRuntime(t *testing.T, name string) *v1alpha1.ClusterServingRuntime {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "runtimes", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.ClusterServingRuntime{}
	if err := yaml.UnmarshalStrict(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// modelPath is the only model of the storage. PersistentVolumeClaims are not tested: puller and adapters of v0.12.0 always read them
// at /pvc_mounts.
const modelPath = "digits/model.onnx"

// newAdapterPod renders the pod of a runtime, maps ports to free ports, and starts the HTTP storage with the model.
func newAdapterPod(t *testing.T, name string, annotations map[string]string, spec *v1alpha1.ServingRuntimeSpec, ports ...string) *adapterPod {
	t.Helper()
	d, err := resources.BuildDeployment(resources.RuntimeInputs{
		NamespaceInputs: resources.NamespaceInputs{Namespace: "vision", Settings: meshsettings.Default()}, Name: name, Annotations: annotations, Spec: spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.Config.Spec.Template.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p := &adapterPod{t: t, dir: t.TempDir(), ports: map[string]string{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &p.spec); err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		free, err := machine.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		p.ports[port] = strconv.Itoa(free)
	}
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, modelPath) {
			fmt.Fprint(w, "a model")
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(storage.Close)
	for file, text := range map[string]string{"models/.keep": "", "storage-config/over-http": `{"type": "http", "url": "` + storage.URL + `"}`} {
		path := filepath.Join(p.dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *adapterPod) container(name string) *corev1.Container {
	p.t.Helper()
	index := slices.IndexFunc(p.spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if index < 0 {
		p.t.Fatalf("the pod has no container %s", name)
	}
	return &p.spec.Containers[index]
}

// environment returns the environment of a container, with expanded references and mapped ports.
func (p *adapterPod) environment(c *corev1.Container) []string {
	p.t.Helper()
	var out []string
	for _, v := range c.Env {
		value := v.Value
		if ref := v.ValueFrom; ref != nil {
			if ref.ResourceFieldRef == nil || ref.ResourceFieldRef.Resource != "requests.memory" {
				p.t.Fatalf("variable %s refers to %v, which this test does not resolve", v.Name, ref)
			}
			memory := p.container(ref.ResourceFieldRef.ContainerName).Resources.Requests[corev1.ResourceMemory]
			value = strconv.FormatInt(memory.Value(), 10)
		}
		if number := strings.TrimPrefix(value, "port:"); p.ports[number] != "" {
			value = strings.TrimSuffix(value, number) + p.ports[number]
		}
		out = append(out, v.Name+"="+value)
	}
	for _, v := range adapterOverrides {
		out = append(out, v.name+"="+strings.ReplaceAll(v.value, "{dir}", p.dir))
	}
	return out
}

// start starts a sidecar and returns a client of its gRPC port.
func (p *adapterPod) start(name, port string) runtimepb.ModelRuntimeClient {
	p.t.Helper()
	c := p.container(name)
	programs, err := adapterPrograms()
	if err != nil {
		p.t.Fatal(err)
	}
	program := programs[strings.Join(c.Command, " ")]
	if program == "" {
		p.t.Fatalf("%s runs %v, want one of %v", name, c.Command, adapterPackages)
	}
	log, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	command := exec.Command(program, c.Args...)
	command.Dir, command.Stdout, command.Stderr = p.dir, log, log
	command.Env = append(p.environment(c), "HOME="+p.dir)
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // killed
		_ = log.Close()
		if p.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			p.t.Logf("log of %s:\n%s", name, text)
		}
	})
	return p.dial(p.ports[port])
}

func (p *adapterPod) dial(port string) runtimepb.ModelRuntimeClient {
	p.t.Helper()
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return runtimepb.NewModelRuntimeClient(conn)
}

// waitReady waits until a sidecar reports that its model server is ready.
func (p *adapterPod) waitReady(client runtimepb.ModelRuntimeClient) *runtimepb.RuntimeStatusResponse {
	p.t.Helper()
	var last string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		response, err := client.RuntimeStatus(p.t.Context(), &runtimepb.RuntimeStatusRequest{}, grpc.WaitForReady(false))
		if err == nil && response.GetStatus() == runtimepb.RuntimeStatusResponse_READY {
			return response
		}
		last = fmt.Sprint(response, err)
	}
	p.t.Fatalf("the sidecar is not READY after a minute: %s", last)
	return nil
}
