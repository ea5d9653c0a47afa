package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// buildMesh sets all variables that the settings can enable, in order.
func TestMeshEnvironment(t *testing.T) {
	in := inputs(runtimeSpec(withSockets, withoutPuller), withTLS)
	s := &in.Settings
	s.ServiceName, s.ServicePort, s.EnableAccessLogging, s.GRPCMaxMessageSizeBytes = "custom", 8133, true, 33554432
	s.Metrics.Port, s.Metrics.Scheme = 2222, "http"
	s.PayloadProcessors = []string{"example:8080/consumer/kserve/v2", "example2:8080/consumer/kserve/v2"}
	var got []string
	for _, v := range getContainer(t, buildPod(t, in), "mm").Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = "<" + v.ValueFrom.FieldRef.FieldPath + ">"
		}
		got = append(got, v.Name+"="+value)
	}
	want := []string{
		"MM_SERVICE_NAME=custom",
		"MM_SVC_GRPC_PORT=8133",
		"WKUBE_POD_NAME=<metadata.name>",
		"WKUBE_POD_IPADDR=<status.podIP>",
		"MM_LOCATION=<status.hostIP>",
		"KV_STORE=etcd:/opt/kserve/mmesh/etcd/etcd_connection",
		"MM_METRICS=prometheus:port=2222;scheme=http", // [modelmesh-32]
		"SHUTDOWN_TIMEOUT_MS=90000",
		"INTERNAL_SERVING_GRPC_SOCKET_PATH=/tmp/own/data.sock",
		"INTERNAL_GRPC_SOCKET_PATH=/tmp/own/grpc.sock", // [modelmesh-34]
		"MM_LOG_EACH_INVOKE=true",                      // [modelmesh-18]
		"MM_SVC_GRPC_MAX_MSG_SIZE=33554432",
		"MM_KVSTORE_PREFIX=mm",
		"MM_DEFAULT_VMODEL_OWNER=ksp",
		"MM_PAYLOAD_PROCESSORS=example:8080/consumer/kserve/v2 example2:8080/consumer/kserve/v2", // [modelmesh-36]
		"MM_LABELS=mt:own,rt:own",
		"MM_TYPE_CONSTRAINTS_PATH=/etc/watson/mmesh/config/type_constraints",
		"MM_DATAPLANE_CONFIG_PATH=/etc/watson/mmesh/config/dataplane_api_config",
		"MM_TLS_KEY_CERT_PATH=/opt/kserve/mmesh/tls/tls.crt",
		"MM_TLS_PRIVATE_KEY_PATH=/opt/kserve/mmesh/tls/tls.key",
		"MM_TLS_CLIENT_AUTH=require",
		"MM_TLS_TRUST_CERT_PATH=/opt/kserve/mmesh/tls/tls.crt,/opt/kserve/mmesh/tls/ca.crt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMeshEnvironmentMinimal(t *testing.T) {
	in := inputs(runtimeSpec(), withoutRESTAndMetrics)
	in.Settings.GRPCMaxMessageSizeBytes = 0
	mesh := getContainer(t, buildPod(t, in), "mm")
	for name, want := range map[string]string{"MM_METRICS": "disabled", "INTERNAL_GRPC_PORT": "8086"} {
		if got, _ := envValue(mesh, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	for _, name := range envNames(mesh) {
		switch {
		case strings.HasPrefix(name, "MM_TLS"), strings.HasPrefix(name, "INTERNAL_SERVING"),
			name == "MM_LOG_EACH_INVOKE", name == "MM_SVC_GRPC_MAX_MSG_SIZE", name == "MM_PAYLOAD_PROCESSORS":
			t.Errorf("%s is set", name)
		}
	}
	if len(mesh.Ports) != 1 || mesh.Ports[0].Name != "grpc" || mesh.Ports[0].ContainerPort != 8033 {
		t.Errorf("ports %+v", mesh.Ports)
	}
}

// Variables of the settings override those before them, but not those after them, such as MM_LABELS. [modelmesh-20] [modelmesh-21]
func TestInternalModelMeshEnvVars(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Settings.InternalModelMeshEnvVars = []corev1.EnvVar{
		{Name: "OWN", Value: "1"}, {Name: "MM_METRICS", Value: "own"}, {Name: "MM_LOCATION", Value: "rack-7"},
		{Name: "MM_KVSTORE_PREFIX", Value: "other"}, {Name: "MM_LABELS", Value: "other"}, {Name: "OWN", Value: "2"},
	}
	mesh := getContainer(t, buildPod(t, in), "mm")
	for name, want := range map[string]string{"OWN": "2", "MM_METRICS": "own", "MM_LOCATION": "rack-7", "MM_KVSTORE_PREFIX": "mm", "MM_LABELS": "mt:own,rt:own"} {
		if got, _ := envValue(mesh, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	seen := map[string]bool{}
	for _, v := range mesh.Env {
		if seen[v.Name] {
			t.Errorf("%s is set twice", v.Name)
		}
		if v.Value != "" && v.ValueFrom != nil {
			t.Errorf("%s has a value and a source", v.Name)
		}
		seen[v.Name] = true
	}
}

// The metrics settings affect the ports and annotations of pods. [modelmesh-32]
func TestMetricsSettingsChangePods(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Settings.Metrics.Port, in.Settings.Metrics.Scheme = 2222, "http"
	template := decode[appsv1.Deployment](t, buildDeploymentFor(t, in)).Spec.Template
	want := map[string]string{
		"prometheus.io/path": "/metrics", "prometheus.io/port": "2222", "prometheus.io/scheme": "http", "prometheus.io/scrape": "true",
	}
	if diff := cmp.Diff(want, template.Annotations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	ports := getContainer(t, template.Spec, "mm").Ports
	if len(ports) != 2 || ports[1].Name != "prometheus" || ports[1].ContainerPort != 2222 {
		t.Errorf("ports %+v", ports)
	}
}

// [modelmesh-17] The mesh mounts its configuration, sockets and TLS Secret.
func TestMeshMounts(t *testing.T) {
	base := []string{"tc-config /etc/watson/mmesh/config", "etcd-config /opt/kserve/mmesh/etcd"}
	for name, c := range map[string]struct {
		in   RuntimeInputs
		want []string
	}{
		"ports":   {inputs(runtimeSpec()), base},
		"sockets": {inputs(runtimeSpec(withSockets)), append([]string{"domain-socket /tmp/own"}, base...)},
		"TLS":     {inputs(runtimeSpec(), withTLS), append(base[:2:2], "tls-certs /opt/kserve/mmesh/tls")},
	} {
		if diff := cmp.Diff(c.want, mounts(getContainer(t, buildPod(t, c.in), "mm"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// [modelmesh-35] The REST proxy is an additional container, and adds a label to the runtime.
func TestRESTProxy(t *testing.T) {
	in := inputs(runtimeSpec(), withTLS)
	in.Spec.ProtocolVersions = []string{"grpc-v2"}
	in.Settings.RESTProxy.Port, in.Settings.RESTProxy.SkipVerify, in.TLS.HasCA = 8108, true, false
	pod := buildPod(t, in)
	var got []string
	for _, v := range getContainer(t, pod, "rest-proxy").Env {
		got = append(got, v.Name+"="+v.Value)
	}
	want := []string{
		"REST_PROXY_LISTEN_PORT=8108", "REST_PROXY_GRPC_PORT=8033", "REST_PROXY_USE_TLS=true",
		"REST_PROXY_GRPC_MAX_MSG_SIZE_BYTES=16777216", "REST_PROXY_SKIP_VERIFY=true",
		"MM_TLS_KEY_CERT_PATH=/opt/kserve/mmesh/tls/tls.crt", "MM_TLS_PRIVATE_KEY_PATH=/opt/kserve/mmesh/tls/tls.key",
		"MM_TLS_CLIENT_AUTH=require", "MM_TLS_TRUST_CERT_PATH=/opt/kserve/mmesh/tls/tls.crt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	in.Settings.GRPCMaxMessageSizeBytes = 0
	if limit, found := envValue(getContainer(t, buildPod(t, in), "rest-proxy"), "REST_PROXY_GRPC_MAX_MSG_SIZE_BYTES"); found {
		t.Errorf("got limit %q for messages, want the default of the proxy", limit)
	}
	if labels, _ := envValue(getContainer(t, pod, "mm"), "MM_LABELS"); labels != "mt:own,pv:grpc-v2,pv:v2,rt:own" {
		t.Errorf("MM_LABELS=%s, want the label pv:v2", labels)
	}
	in.Settings.RESTProxy.Enabled = false
	pod = buildPod(t, in)
	if labels, _ := envValue(getContainer(t, pod, "mm"), "MM_LABELS"); labels != "mt:own,pv:grpc-v2,rt:own" {
		t.Errorf("MM_LABELS=%s, want no label pv:v2", labels)
	}
}

// [modelmesh-23] A server with a management endpoint, a port or a socket, gets a puller.
func TestPullerOfManagementEndpoint(t *testing.T) {
	in := inputs(runtimeSpec(), withClaims("shelf"))
	in.Settings.StorageHelper.Command = nil
	in.Settings.StorageHelper.Resources = corev1.ResourceRequirements{}
	got := getContainer(t, buildPod(t, in), "puller")
	want := []corev1.EnvVar{
		{Name: "PORT", Value: "8086"}, {Name: "MODEL_SERVER_ENDPOINT", Value: "port:9103"}, {Name: "ROOT_MODEL_DIR", Value: "/models"},
		{Name: "STORAGE_CONFIG_DIR", Value: "/storage-config"}, {Name: "PVC_MOUNTS_DIR", Value: "/pvc_mounts"},
	}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"models-dir /models", "storage-config /storage-config", "shelf /pvc_mounts/shelf"}, mounts(got)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if got.Command != nil || got.LivenessProbe != nil || got.ReadinessProbe != nil || got.Lifecycle != nil {
		t.Errorf("container %+v, want no command, probes and lifecycle", got)
	}
	withSocket := getContainer(t, buildPod(t, inputs(runtimeSpec(withSockets))), "puller")
	if diff := cmp.Diff([]string{"models-dir /models", "storage-config /storage-config", "domain-socket /tmp/own"}, mounts(withSocket)); diff != "" {
		t.Errorf("mounts with sockets (-want +got):\n%s", diff)
	}
	if endpoint, _ := envValue(withSocket, "MODEL_SERVER_ENDPOINT"); endpoint != "unix:/tmp/own/grpc.sock" {
		t.Errorf("MODEL_SERVER_ENDPOINT=%s, want the socket", endpoint)
	}
}

// RUNTIME_VERSION is the tag of the image. In the legacy form it is the part after the first colon. [M37]
func TestRuntimeVersion(t *testing.T) {
	for image, want := range map[string]struct{ current, legacy string }{
		"triton:2.34":                    {"2.34", "2.34"},
		"triton":                         {"", ""},
		"host:5000/x:1":                  {"1", "5000/x:1"},
		"host:5000/x":                    {"", "5000/x"},
		"x@sha256:abc":                   {"", "abc"},
		"x:1@sha256:abc":                 {"1", "1@sha256:abc"},
		"registry.example.com/a/b:v1-x":  {"v1-x", "v1-x"},
		"":                               {"", ""},
		"registry.example.com:443/a/b:1": {"1", "443/a/b:1"},
	} {
		spec := runtimeSpec(withAdapter)
		spec.Containers[0].Image = image
		for form, c := range map[string]struct {
			change func(*RuntimeInputs)
			want   string
		}{"current": {forms["current"], want.current}, "legacy": {legacyForm, want.legacy}} {
			got, found := envValue(getContainer(t, buildPod(t, inputs(spec, c.change)), "triton-adapter"), "RUNTIME_VERSION")
			if got != c.want || !found {
				t.Errorf("%s, form %s: %q, want %q", image, form, got, c.want)
			}
		}
	}
	spec := runtimeSpec(withAdapter)
	second := spec.Containers[0]
	second.Image = "registry.example.com/other:9"
	spec.Containers = append(spec.Containers, second)
	pod := buildPod(t, inputs(spec))
	if got, _ := envValue(getContainer(t, pod, "triton-adapter"), "RUNTIME_VERSION"); got != "9" || getContainer(t, pod, "triton").Image != second.Image {
		t.Errorf("RUNTIME_VERSION=%q, image %s, want those of the second container", got, getContainer(t, pod, "triton").Image)
	}
}
