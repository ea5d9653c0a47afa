package main

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const deploymentName = "odh-platform-operator-controller-manager"

func TestPlaceholder(t *testing.T) {
	field := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}
	shipped := &appsv1.Deployment{}
	shipped.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "proxy", Args: []string{"--proxy"}},
		{
			Name: "manager", Image: "a", Args: []string{"--leader-elect"}, Ports: []corev1.ContainerPort{{Name: "metrics"}},
			LivenessProbe: &corev1.Probe{}, ReadinessProbe: &corev1.Probe{},
			Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: field}, {Name: "MLFLOW_IMAGE", Value: "x"}},
		},
	}
	original := shipped.DeepCopy()
	got := placeholder(shipped, []string{"run", "--leader-elect", "--webhook-port=1"}, []string{"MLFLOW_IMAGE=y", "PAIRS=a=b"})
	if difference := cmp.Diff(original, shipped); difference != "" {
		t.Errorf("placeholder changed the shipped Deployment:\n%s", difference)
	}
	want := []corev1.Container{shipped.Spec.Template.Spec.Containers[0], {
		Name: "manager", Image: "a", Args: []string{"run", "--leader-elect", "--webhook-port=1"},
		Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: field}, {Name: "MLFLOW_IMAGE", Value: "y"}, {Name: "PAIRS", Value: "a=b"}},
	}}
	if difference := cmp.Diff(want, got.Spec.Template.Spec.Containers); difference != "" {
		t.Error(difference)
	}
	if got.Annotations[descriptionAnnotation] != description || got.Spec.Template.Annotations[descriptionAnnotation] != description {
		t.Errorf("got annotations %v and %v of the pod, want the description in both", got.Annotations, got.Spec.Template.Annotations)
	}
	if other := placeholder(&appsv1.Deployment{}, []string{"run"}, nil); len(other.Spec.Template.Spec.Containers) != 0 {
		t.Errorf("got pod spec %+v, want no containers", other.Spec.Template.Spec)
	}
}

func TestRouteMetrics(t *testing.T) {
	service := func(label string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Service", "spec": map[string]any{"selector": map[string]any{"a": "b"}}}}
		u.SetLabels(map[string]string{metricsLabel: label})
		return u
	}
	metrics, webhook := service("true"), service("")
	routeMetrics([]*unstructured.Unstructured{metrics, webhook}, 4711)
	want := map[string]any{"type": "ExternalName", "externalName": "localhost", "ports": []any{map[string]any{"name": "https", "port": int64(4711), "protocol": "TCP"}}}
	if difference := cmp.Diff(want, metrics.Object["spec"]); difference != "" {
		t.Error(difference)
	}
	if difference := cmp.Diff(service("").Object, webhook.Object); difference != "" {
		t.Error(difference)
	}
}

// expectManagerFound expects that kubectl odh finds the manager, which runs as a process, and reports no problem.
func expectManagerFound(t *testing.T, name string) {
	t.Helper()
	var report struct {
		OK      bool
		Manager struct {
			Found, Leads bool
			State        string
		}
		Components []struct{ Name, State string }
		Notes      []string
	}
	if err := json.Unmarshal(shell(t, name, "kubectl odh status -o json"), &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || !report.Manager.Found || !report.Manager.Leads || report.Manager.State != "Healthy" || len(report.Notes) > 0 {
		t.Errorf("got status %+v, want a healthy leader", report)
	}
	states := map[string]string{}
	for _, c := range report.Components {
		states[c.Name] = c.State
	}
	want := map[string]string{
		"platform": "off", "mlflow": "on", "modelregistry": "on", "modelcatalog": "on", "modelmesh": "on", "raycluster": "on", "appwrapper": "on",
	}
	if difference := cmp.Diff(want, states); difference != "" {
		t.Error(difference)
	}
	var doctor struct {
		OK      bool
		Summary struct{ Fail, Unknown, OK int }
	}
	if err := json.Unmarshal(shell(t, name, "kubectl odh doctor -o json"), &doctor); err != nil {
		t.Fatal(err)
	}
	if !doctor.OK || doctor.Summary.Fail+doctor.Summary.Unknown > 0 || doctor.Summary.OK == 0 {
		t.Errorf("got doctor %+v, want no failed check", doctor)
	}
}

// expectServicesRouteToProcess expects that the Services of the manager route to the process, and that the placeholder pod neither
// receives their traffic nor holds the Lease.
func expectServicesRouteToProcess(t *testing.T, instance *cluster.Instance) {
	t.Helper()
	name := instance.Name
	const kubectl = "kubectl -n opendatahub get "
	address := string(shell(t, name, kubectl+"service odh-platform-operator-metrics -o jsonpath='{.spec.externalName}:{.spec.ports[0].port}'"))
	httpClient := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := httpClient.Get("https://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("got status %d, error %v for metrics without a token, want 401", response.StatusCode, err)
	}
	for _, service := range []string{"odh-platform-operator-metrics", "odh-platform-operator-webhook"} {
		if slices := shell(t, name, kubectl+"endpointslices -o name -l kubernetes.io/service-name="+service); len(slices) > 0 {
			t.Errorf("got %s of Service %s, want no EndpointSlices", slices, service)
		}
	}
	pod := string(shell(t, name, kubectl+"pods -l control-plane=controller-manager -o jsonpath='{.items[*].metadata.name}'"))
	holder := string(shell(t, name, kubectl+"lease odh-platform-operator -o jsonpath='{.spec.holderIdentity}'"))
	if !strings.HasPrefix(pod, deploymentName+"-") || holder == "" || strings.HasPrefix(holder, deploymentName) {
		t.Errorf("got pod %q and holder %q of the Lease, want another holder", pod, holder)
	}
	expectContains(t, "Deployment", string(shell(t, name, kubectl+"deployment "+deploymentName+" -o json")),
		"--metrics-bind-address=127.0.0.1:"+address[strings.LastIndex(address, ":")+1:], description)
}
