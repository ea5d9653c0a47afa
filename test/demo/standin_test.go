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

func TestFake(t *testing.T) {
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
	before := shipped.DeepCopy()
	got := placeholder(shipped, []string{"run", "--leader-elect", "--webhook-port=1"}, []string{"MLFLOW_IMAGE=y", "PAIRS=a=b"})
	if difference := cmp.Diff(before, shipped); difference != "" {
		t.Errorf("the shipped Deployment was changed:\n%s", difference)
	}
	want := []corev1.Container{shipped.Spec.Template.Spec.Containers[0], {
		Name: "manager", Image: "a", Args: []string{"run", "--leader-elect", "--webhook-port=1"},
		Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: field}, {Name: "MLFLOW_IMAGE", Value: "y"}, {Name: "PAIRS", Value: "a=b"}},
	}}
	if difference := cmp.Diff(want, got.Spec.Template.Spec.Containers); difference != "" {
		t.Error(difference)
	}
	if got.Annotations[descriptionAnnotation] != description || got.Spec.Template.Annotations[descriptionAnnotation] != description {
		t.Errorf("it does not say what it is: %v, %v", got.Annotations, got.Spec.Template.Annotations)
	}
	if other := placeholder(&appsv1.Deployment{}, []string{"run"}, nil); len(other.Spec.Template.Spec.Containers) != 0 {
		t.Errorf("unexpected other.Spec.Template.Spec: %+v", other.Spec.Template.Spec)
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

// expectManagerKnown expects that kubectl odh finds the manager that runs as a process, and no problem.
func expectManagerKnown(t *testing.T, name string) {
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
		t.Errorf("status: %+v", report)
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
	var examination struct {
		OK      bool
		Summary struct{ Fail, Unknown, OK int }
	}
	if err := json.Unmarshal(shell(t, name, "kubectl odh doctor -o json"), &examination); err != nil {
		t.Fatal(err)
	}
	if !examination.OK || examination.Summary.Fail+examination.Summary.Unknown > 0 || examination.Summary.OK == 0 {
		t.Errorf("doctor: %+v", examination)
	}
}

// expectServicesOfTheProcess expects that the Services of the manager point at the process, and that the placeholder pod neither
// receives their traffic nor holds the Lease.
func expectServicesOfTheProcess(t *testing.T, instance *cluster.Instance) {
	t.Helper()
	name := instance.Name
	const kubectl = "kubectl -n opendatahub get "
	address := string(shell(t, name, kubectl+"service odh-platform-operator-metrics -o jsonpath='{.spec.externalName}:{.spec.ports[0].port}'"))
	metrics := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := metrics.Get("https://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("metrics of a manager ask for a token: %d, %v", response.StatusCode, err)
	}
	for _, service := range []string{"odh-platform-operator-metrics", "odh-platform-operator-webhook"} {
		if slices := shell(t, name, kubectl+"endpointslices -o name -l kubernetes.io/service-name="+service); len(slices) > 0 {
			t.Errorf("Service %s leads to %s", service, slices)
		}
	}
	pod := string(shell(t, name, kubectl+"pods -l control-plane=controller-manager -o jsonpath='{.items[*].metadata.name}'"))
	holder := string(shell(t, name, kubectl+"lease odh-platform-operator -o jsonpath='{.spec.holderIdentity}'"))
	if !strings.HasPrefix(pod, deploymentName+"-") || holder == "" || strings.HasPrefix(holder, deploymentName) {
		t.Errorf("pod %q, the Lease is held by %q", pod, holder)
	}
	expectContains(t, "Deployment", string(shell(t, name, kubectl+"deployment "+deploymentName+" -o json")),
		"--metrics-bind-address=127.0.0.1:"+address[strings.LastIndex(address, ":")+1:], description)
}
