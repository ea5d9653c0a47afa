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

func namespaceInputs(changes ...func(*NamespaceInputs)) NamespaceInputs {
	in := NamespaceInputs{Namespace: "vision", Settings: meshsettings.Default()}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func buildService(t testing.TB, in NamespaceInputs) *corev1.Service {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = in.Namespace, "1"
	return decode[corev1.Service](t, renderObject(t, namespace, apply.Object{Config: BuildService(in)}))
}

// The settings determine the ports of the Service, which have this order.
func TestServicePorts(t *testing.T) {
	withProxy := func(in *NamespaceInputs) { in.Proxy = newOAuthProxy() }
	for want, change := range map[string]func(*NamespaceInputs){
		"grpc 8033>grpc, http 8008>http, prometheus 2112>prometheus": func(*NamespaceInputs) {},
		"grpc 8033>grpc": func(in *NamespaceInputs) {
			in.Settings.RESTProxy.Enabled, in.Settings.Metrics.Enabled = false, false
		},
		"grpc 1>grpc, http 2>http, prometheus 3>prometheus": func(in *NamespaceInputs) {
			in.Settings.ServicePort, in.Settings.RESTProxy.Port, in.Settings.Metrics.Port = 1, 2, 3
		},
		"grpc 8033>grpc, http 8008>http, https 8443>https, prometheus 2112>prometheus": withProxy,
	} {
		var got []string
		for _, p := range buildService(t, namespaceInputs(change)).Spec.Ports {
			got = append(got, fmt.Sprintf("%s %d>%s", p.Name, p.Port, p.TargetPort.String()))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("ports %s, want %s", got, want)
		}
	}
}

func TestBuildService(t *testing.T) {
	s := buildService(t, namespaceInputs())
	if s.Name != "modelmesh-serving" || s.Spec.ClusterIP != corev1.ClusterIPNone || s.Labels[LabelService] != "modelmesh-serving" || s.Annotations != nil {
		t.Errorf("Service %+v, want a headless one without annotations", s)
	}
	if diff := cmp.Diff(map[string]string{LabelService: "modelmesh-serving"}, s.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	s = buildService(t, namespaceInputs(func(in *NamespaceInputs) {
		in.Settings.ServiceName, in.Settings.HeadlessService = "custom", false
		in.Proxy = newOAuthProxy()
	}))
	if s.Name != "custom" || s.Spec.ClusterIP != "" || s.Spec.Selector[LabelService] != "custom" {
		t.Errorf("Service %+v, want one with a cluster IP and the configured name in the selector", s)
	}
	if diff := cmp.Diff(map[string]string{"service.alpha.openshift.io/serving-cert-secret-name": "model-serving-proxy-tls"}, s.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// [M9] The routing layer serves metrics with a self-signed certificate, even with a TLS Secret.
func TestServiceMonitorSkipsVerification(t *testing.T) {
	for name, change := range map[string]func(*NamespaceInputs){
		"no TLS Secret": func(*NamespaceInputs) {},
		"TLS Secret":    func(in *NamespaceInputs) { in.TLS = &TLSInputs{SecretName: "serving-tls", HasCA: true} },
		"HTTP":          func(in *NamespaceInputs) { in.Settings.Metrics.Scheme = "http" },
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
			t.Errorf("metrics %t, disabled %t: ServiceMonitorEnabled returned %t", c.metrics, c.disabled, !c.want)
		}
	}
}

// One ConfigMap contains the type constraints of all enabled runtimes of a namespace. [modelmesh-11]
func TestBuildConstraints(t *testing.T) {
	runtimes := map[string]*v1alpha1.ServingRuntimeSpec{"own": runtimeSpec(), "disabled": runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Disabled = new(true) })}
	config := BuildConstraints("vision", runtimes, true)
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = "vision", "1"
	m := decode[corev1.ConfigMap](t, renderObject(t, namespace, apply.Object{Config: config, Ownership: apply.Unowned}))
	want := `{"_default":{"required":["_no_runtime"]},"mt:own":{"required":["mt:own"]},"rt:own":{"required":["rt:own"]}}`
	if got := string(m.BinaryData["type_constraints"]); got != want || m.Data != nil || len(m.BinaryData) != 2 {
		t.Errorf("constraints %s, want %s", got, want)
	}
	if !json.Valid(m.BinaryData["dataplane_api_config"]) || m.Name != "tc-config" || m.OwnerReferences != nil {
		t.Errorf("ConfigMap %+v, want tc-config with valid JSON and without an owner", m)
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
	h := decode[autoscalingv2.HorizontalPodAutoscaler](t, renderObject(t, servingRuntime(in), apply.Object{Config: BuildAutoscaler(in, map[string]string{"team": "a"}, scale)}))
	if h.Name != "modelmesh-serving-own" || h.Spec.ScaleTargetRef.Name != h.Name || *h.Spec.MinReplicas != 2 || h.Spec.MaxReplicas != 4 {
		t.Errorf("autoscaler spec %+v", h.Spec)
	}
	metric := h.Spec.Metrics[0].Resource
	if metric.Name != corev1.ResourceMemory || *metric.Target.AverageUtilization != 90 {
		t.Errorf("metric %+v, want 90%% of memory", metric)
	}
	if len(h.Annotations) != 5 || h.Labels["team"] != "a" || h.Labels["component"] != "predictor" || h.Labels["serving.kserve.io/inferenceservice"] != "own" {
		t.Errorf("annotations %v, labels %v, want 5 annotations, and the labels of the runtime and of KServe", h.Annotations, h.Labels)
	}
}

func TestBuildEtcdSecret(t *testing.T) {
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = "vision", "1"
	s := decode[corev1.Secret](t, renderObject(t, namespace, apply.Object{
		Config: BuildEtcdSecret("model-serving-etcd", "vision", map[string][]byte{"etcd_connection": []byte("{}")}), Ownership: apply.Unowned,
	}))
	if s.Labels["app.kubernetes.io/managed-by"] != "modelmesh-controller" || string(s.Data["etcd_connection"]) != "{}" || s.Name != "model-serving-etcd" {
		t.Errorf("Secret %+v, want its name, label and connection", s)
	}
}
