package peers

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

func named(kind, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	for key, value := range more {
		u.Object[key] = value
	}
	u.SetName(name)
	return u
}

const shipped = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nhealth: {healthProbeBindAddress: ':8081'}\n" +
	"leaderElection: {leaderElect: true, resourceName: x}\nintegrations: {frameworks: [workload.codeflare.dev/appwrapper]}\n"

func TestKueueConfig(t *testing.T) {
	text, err := kueueConfig(shipped, "127.0.0.1:1", "/certs", 2)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"health.healthProbeBindAddress": "127.0.0.1:1", "webhook.certDir": "/certs", "webhook.port": 2.0, "leaderElection.leaderElect": false,
		"internalCertManagement.enable": false, "metrics.bindAddress": "0", "kind": "Configuration",
	} {
		if got, _, _ := unstructured.NestedFieldNoCopy(config, strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	frameworks, _, _ := unstructured.NestedSlice(config, "integrations", "frameworks")
	if !slices.Contains(frameworks, any("workload.codeflare.dev/appwrapper")) {
		t.Errorf("the shipped frameworks are lost: %v", frameworks)
	}
	if _, err := kueueConfig("[", "", "", 0); err == nil {
		t.Error("broken YAML is no error")
	}
}

func TestShippedKueueConfig(t *testing.T) {
	objects := []*unstructured.Unstructured{
		named("ConfigMap", "other", nil),
		named("ConfigMap", kueueConfigMap, map[string]any{"data": map[string]any{kueueConfigKey: shipped}}),
	}
	if got, err := shippedKueueConfig(objects); err != nil || got != shipped {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := shippedKueueConfig(objects[:1]); err == nil {
		t.Error("a missing ConfigMap is no error")
	}
}

// Kueue gets a certificate that its own webhooks trust, and its arguments lead to it.
func TestPrepareKueue(t *testing.T) {
	hooks := named("MutatingWebhookConfiguration", "kueue", map[string]any{"webhooks": []any{
		map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": kueueService, "namespace": kueueNamespace}}},
	}})
	config := named("ConfigMap", kueueConfigMap, map[string]any{"data": map[string]any{kueueConfigKey: shipped}})
	l := &launch{
		dir: t.TempDir(), now: time.Now(), objects: []*unstructured.Unstructured{hooks, config}, health: "127.0.0.1:1",
		installed: &operator.Installed{WebhookPort: 2},
	}
	if err := trustKueue(l); err != nil {
		t.Fatal(err)
	}
	list, _, _ := unstructured.NestedSlice(hooks.Object, "webhooks")
	bundle, _, _ := unstructured.NestedString(list[0].(map[string]any), "clientConfig", "caBundle")
	if bundle == "" {
		t.Error("the webhook trusts nobody")
	}
	args, err := kueueArgs(l)
	if err != nil {
		t.Fatal(err)
	}
	if want := "--config=" + filepath.Join(l.dir, kueueConfigKey); args[0] != want {
		t.Errorf("%q, want %q", args, want)
	}
	for _, file := range []string{"tls.crt", "tls.key", kueueConfigKey} {
		if info, err := os.Stat(filepath.Join(l.dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	l.objects = nil
	if _, err := kueueArgs(l); err == nil {
		t.Error("no configuration is no error")
	}
	l.dir = filepath.Join(l.dir, "none")
	if err := trustKueue(l); err == nil {
		t.Error("a folder that does not exist is no error")
	}
}

func TestKubeRayArgs(t *testing.T) {
	args, err := kubeRayArgs(&launch{health: "127.0.0.1:1", metrics: "127.0.0.1:2"})
	if err != nil || !slices.Contains(args, "--health-probe-bind-address=127.0.0.1:1") || !slices.Contains(args, "--metrics-addr=127.0.0.1:2") {
		t.Errorf("%q, %v", args, err)
	}
}

func TestIsAPIService(t *testing.T) {
	if !isAPIService(named("APIService", "x", nil)) || isAPIService(named("Service", "x", nil)) {
		t.Error("only APIServices are left out")
	}
}

func TestAnswers(t *testing.T) {
	code := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answers(request) {
		t.Error("503 is no answer")
	}
	code = http.StatusOK
	if !answers(request) {
		t.Error("200 is an answer")
	}
	server.Close()
	if answers(request) {
		t.Error("nobody listens")
	}
}
