package peers

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

func newObject(kind, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	for key, value := range more {
		u.Object[key] = value
	}
	u.SetName(name)
	return u
}

const configuration = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nhealth: {healthProbeBindAddress: ':8081'}\n" +
	"leaderElection: {leaderElect: true, resourceName: x}\nintegrations: {frameworks: [workload.codeflare.dev/appwrapper]}\n"

func TestKueueConfig(t *testing.T) {
	text, err := kueueConfig(configuration, "127.0.0.1:1", "/certs", 2, map[string]any{"waitForPodsReady": map[string]any{"timeout": "1m"}})
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"health.healthProbeBindAddress": "127.0.0.1:1", "webhook.certDir": "/certs", "webhook.port": 2.0, "leaderElection.leaderElect": false,
		"metrics.bindAddress": "0", "kind": "Configuration", "waitForPodsReady.timeout": "1m",
	} {
		if got, _, _ := unstructured.NestedFieldNoCopy(config, strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	frameworks, _, _ := unstructured.NestedSlice(config, "integrations", "frameworks")
	if !slices.Contains(frameworks, any("workload.codeflare.dev/appwrapper")) {
		t.Errorf("got frameworks %v, want the shipped ones", frameworks)
	}
	if _, err := kueueConfig("[", "", "", 0); err == nil {
		t.Error("want an error for broken YAML")
	}
}

func TestShippedKueueConfig(t *testing.T) {
	objects := []*unstructured.Unstructured{
		newObject("ConfigMap", "other", nil),
		newObject("ConfigMap", kueueConfigMap, map[string]any{"data": map[string]any{kueueConfigKey: configuration}}),
	}
	if got, err := shippedKueueConfig(objects); err != nil || got != configuration {
		t.Errorf("got configuration %q, error %v, want %q", got, err, configuration)
	}
	if _, err := shippedKueueConfig(objects[:1]); err == nil {
		t.Error("want an error for a missing ConfigMap")
	}
}

// The arguments of Kueue contain the path of the written configuration file.
func TestKueueArgs(t *testing.T) {
	config := newObject("ConfigMap", kueueConfigMap, map[string]any{"data": map[string]any{kueueConfigKey: configuration}})
	l := &launch{
		dir: t.TempDir(), objects: []*unstructured.Unstructured{config}, health: "127.0.0.1:1", installed: &operator.Installed{WebhookPort: 2},
	}
	args, err := newKueueArgs(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, kueueConfigKey)
	if want := "--config=" + path; args[0] != want {
		t.Errorf("got %q, want %q", args, want)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "certDir: "+l.dir) {
		t.Errorf("got configuration %s, error %v, want the directory of the certificates", text, err)
	}
	l.objects = nil
	if _, err := newKueueArgs(l, nil); err == nil {
		t.Error("want an error for no configuration")
	}
	l.objects, l.dir = []*unstructured.Unstructured{config}, filepath.Join(l.dir, "none")
	if _, err := newKueueArgs(l, nil); err == nil {
		t.Error("want an error for a folder that does not exist")
	}
}

func TestKubeRayArgs(t *testing.T) {
	args, err := kubeRayArgs(&launch{health: "127.0.0.1:1", metrics: "127.0.0.1:2"})
	if err != nil || !slices.Contains(args, "--health-probe-bind-address=127.0.0.1:1") || !slices.Contains(args, "--metrics-addr=127.0.0.1:2") {
		t.Errorf("got args %q, error %v, want the listeners", args, err)
	}
}

// KServe reads its certificate below the folder for temporary files.
func TestKServeArgs(t *testing.T) {
	l := &launch{dir: t.TempDir(), health: "127.0.0.1:1", metrics: "127.0.0.1:2", installed: &operator.Installed{WebhookPort: 3}}
	args, err := kserveArgs(l)
	if err != nil || !slices.Contains(args, "--health-probe-addr=127.0.0.1:1") || !slices.Contains(args, "--metrics-addr=127.0.0.1:2") || !slices.Contains(args, "--webhook-port=3") {
		t.Errorf("got args %q, error %v, want the listeners", args, err)
	}
	folder := filepath.Join(l.dir, "k8s-webhook-server", "serving-certs")
	if _, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")); err != nil {
		t.Error(err)
	}
	if !needsCertManager(newObject("Certificate", "x", nil)) || needsCertManager(newObject("ClusterRole", "x", nil)) {
		t.Error("want to omit exactly the objects that need cert-manager")
	}
}

func TestIsAPIService(t *testing.T) {
	if !isAPIService(newObject("APIService", "x", nil)) || isAPIService(newObject("Service", "x", nil)) {
		t.Error("want to omit exactly APIServices")
	}
}

func TestResponds(t *testing.T) {
	code := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if responds(request) {
		t.Error("a response with status 503 counts as ready")
	}
	code = http.StatusOK
	if !responds(request) {
		t.Error("a response with status 200 does not count as ready")
	}
	server.Close()
	if responds(request) {
		t.Error("a refused connection counts as ready")
	}
}

func TestPyTorchOnly(t *testing.T) {
	deployment := newObject("Deployment", "x", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "a"}},
	}}}})
	kept, err := withPyTorchOnly([]*unstructured.Unstructured{
		newObject("CustomResourceDefinition", "tfjobs.kubeflow.org", nil), newObject("CustomResourceDefinition", "pytorchjobs.kubeflow.org", nil), deployment,
	})
	if err != nil || len(kept) != 2 || kept[0].GetName() != "pytorchjobs.kubeflow.org" {
		t.Fatalf("kept %v, error %v, want the PyTorchJob CRD and the Deployment", kept, err)
	}
	containers, _, _ := unstructured.NestedSlice(kept[1].Object, "spec", "template", "spec", "containers")
	if args := containers[0].(map[string]any)["args"]; !slices.Equal(args.([]any), []any{"--enable-scheme=pytorchjob"}) {
		t.Errorf("got arguments %v, want only PyTorchJobs enabled", args)
	}
	deployment.Object["spec"] = "none"
	if _, err := withPyTorchOnly([]*unstructured.Unstructured{deployment}); err == nil {
		t.Error("want an error for a Deployment with an invalid spec")
	}
}

func TestContainer(t *testing.T) {
	deployment := newObject("Deployment", "x", nil)
	if _, _, err := container([]*unstructured.Unstructured{newObject("Service", "x", nil)}); err == nil {
		t.Error("want an error without a Deployment")
	}
	if _, _, err := container([]*unstructured.Unstructured{deployment}); err == nil {
		t.Error("want an error for a Deployment without containers")
	}
	containers := []any{map[string]any{"image": "example.com/a:1", "command": []any{"/manager", "run"}}}
	if err := unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	image, program, err := container([]*unstructured.Unstructured{newObject("Service", "x", nil), deployment})
	if err != nil || image != "example.com/a:1" || program != "/manager" {
		t.Errorf("got image %q, program %q, error %v, want those of the Deployment", image, program, err)
	}
}
