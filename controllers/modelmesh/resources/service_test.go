package resources

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

func namespaceInputs(change ...func(*NamespaceInputs)) NamespaceInputs {
	in := NamespaceInputs{Namespace: "vision", Settings: meshsettings.Default()}
	for _, f := range change {
		f(&in)
	}
	return in
}

func serviceOf(t testing.TB, in NamespaceInputs) *corev1.Service {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = in.Namespace, "1"
	return typed[corev1.Service](t, renderObject(t, namespace, apply.Object{Config: BuildService(in)}))
}

// The ports of the Service, in their order.
func TestServicePorts(t *testing.T) {
	proxied := func(in *NamespaceInputs) { in.Proxy = withOAuthProxy() }
	for want, change := range map[string]func(*NamespaceInputs){
		"grpc 8033>grpc, http 8008>http, prometheus 2112>prometheus": func(*NamespaceInputs) {},
		"grpc 8033>grpc": func(in *NamespaceInputs) {
			in.Settings.RESTProxy.Enabled, in.Settings.Metrics.Enabled = false, false
		},
		"grpc 1>grpc, http 2>http, prometheus 3>prometheus": func(in *NamespaceInputs) {
			in.Settings.ServicePort, in.Settings.RESTProxy.Port, in.Settings.Metrics.Port = 1, 2, 3
		},
		"grpc 8033>grpc, http 8008>http, https 8443>https, prometheus 2112>prometheus": proxied,
	} {
		var got []string
		for _, p := range serviceOf(t, namespaceInputs(change)).Spec.Ports {
			got = append(got, fmt.Sprintf("%s %d>%s", p.Name, p.Port, p.TargetPort.String()))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("got ports %s, want %s", got, want)
		}
	}
}

func TestServiceOfNamespace(t *testing.T) {
	s := serviceOf(t, namespaceInputs())
	if s.Name != "modelmesh-serving" || s.Spec.ClusterIP != corev1.ClusterIPNone || s.Labels[LabelService] != "modelmesh-serving" || s.Annotations != nil {
		t.Errorf("got Service %+v, want a headless one without annotations", s)
	}
	if diff := cmp.Diff(map[string]string{LabelService: "modelmesh-serving"}, s.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	s = serviceOf(t, namespaceInputs(func(in *NamespaceInputs) {
		in.Settings.ServiceName, in.Settings.HeadlessService = "served", false
		in.Proxy = withOAuthProxy()
	}))
	if s.Name != "served" || s.Spec.ClusterIP != "" || s.Spec.Selector[LabelService] != "served" {
		t.Errorf("got Service %+v, want one with a cluster IP that selects the configured name", s)
	}
	if diff := cmp.Diff(map[string]string{"service.alpha.openshift.io/serving-cert-secret-name": "model-serving-proxy-tls"}, s.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// [M9] The routing layer serves metrics with a self-signed certificate, even with a TLS Secret.
func TestServiceMonitorSkipsVerification(t *testing.T) {
	for name, change := range map[string]func(*NamespaceInputs){
		"no TLS Secret":   func(*NamespaceInputs) {},
		"a TLS Secret":    func(in *NamespaceInputs) { in.TLS = &TLSInputs{SecretName: "serving-tls", HasCA: true} },
		"metrics by http": func(in *NamespaceInputs) { in.Settings.Metrics.Scheme = "http" },
	} {
		in := namespaceInputs(change)
		namespace := &corev1.Namespace{}
		namespace.Name, namespace.UID = in.Namespace, "1"
		u := renderObject(t, namespace, apply.Object{Config: BuildServiceMonitor(in)})
		endpoints, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		want := []any{map[string]any{
			"port": "prometheus", "interval": "30s", "scheme": in.Settings.Metrics.Scheme, "tlsConfig": map[string]any{"insecureSkipVerify": true},
		}}
		if diff := cmp.Diff(want, endpoints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestServiceMonitorEnabled(t *testing.T) {
	for _, c := range []struct{ metrics, disabled, want bool }{{true, false, true}, {true, true, false}, {false, false, false}} {
		s := meshsettings.Default()
		s.Metrics.Enabled, s.Metrics.DisablePrometheusOperatorSupport = c.metrics, c.disabled
		if ServiceMonitorEnabled(s) != c.want {
			t.Errorf("ServiceMonitorEnabled is wrong for %+v", c)
		}
	}
}

// All runtimes of a namespace share one file of type constraints. [modelmesh-11]
func TestBuildConstraints(t *testing.T) {
	runtimes := map[string]*v1alpha1.ServingRuntimeSpec{"own": runtimeSpec(), "off": runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Disabled = new(true) })}
	config := BuildConstraints("vision", runtimes, true)
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = "vision", "1"
	m := typed[corev1.ConfigMap](t, renderObject(t, namespace, apply.Object{Config: config, Ownership: apply.Unowned}))
	want := `{"_default":{"required":["_no_runtime"]},"mt:own":{"required":["mt:own"]},"rt:own":{"required":["rt:own"]}}`
	if got := string(m.BinaryData["type_constraints"]); got != want || m.Data != nil || len(m.BinaryData) != 2 {
		t.Errorf("got constraints %s, want %s", got, want)
	}
	if !json.Valid(m.BinaryData["dataplane_api_config"]) || m.Name != "tc-config" || m.OwnerReferences != nil {
		t.Errorf("got ConfigMap %+v, want valid JSON under tc-config without owner", m)
	}
}

// The HorizontalPodAutoscaler has the values of the annotations, and copies only annotations of KServe. [modelmesh-100] [M18]
func TestBuildAutoscaler(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Annotations = map[string]string{
		modelmesh.AnnotationAutoscalerClass: "hpa", modelmesh.AnnotationMetric: "memory", modelmesh.AnnotationTarget: "90", modelmesh.AnnotationMinScale: "2", modelmesh.AnnotationMaxScale: "4",
		"productConfig": "x", corev1.LastAppliedConfigAnnotation: "{}",
	}
	scale, _ := modelmesh.ParseAutoscaling(in.Annotations)
	h := typed[autoscalingv2.HorizontalPodAutoscaler](t, renderObject(t, servingRuntime(in), apply.Object{Config: BuildAutoscaler(in, map[string]string{"team": "a"}, scale)}))
	if h.Name != "modelmesh-serving-own" || h.Spec.ScaleTargetRef.Name != h.Name || *h.Spec.MinReplicas != 2 || h.Spec.MaxReplicas != 4 {
		t.Errorf("unexpected Spec: %+v", h.Spec)
	}
	metric := h.Spec.Metrics[0].Resource
	if metric.Name != corev1.ResourceMemory || *metric.Target.AverageUtilization != 90 {
		t.Errorf("unexpected metric: %+v", metric)
	}
	if len(h.Annotations) != 5 || h.Labels["team"] != "a" || h.Labels["component"] != "predictor" || h.Labels["serving.kserve.io/inferenceservice"] != "own" {
		t.Errorf("got annotations %v and labels %v, want 5 annotations and the labels of runtime and settings", h.Annotations, h.Labels)
	}
}
