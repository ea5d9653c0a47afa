package rbacproxy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// separateSecrets has certificate and key in two Secrets, sharedSecret in one.
var (
	separateSecrets = Sidecar{
		Image: "quay.io/example/proxy:v1", Port: 9443, UpstreamPort: 8181, ConfigMap: "guarded-config",
		Certificate: File{Secret: "own-cert", Key: "cert.pem", Volume: "proxy-cert", Dir: "/etc/tls/private-cert"},
		Key:         File{Secret: "own-key", Key: "key.pem", Volume: "proxy-key", Dir: "/etc/tls/private-key"},
	}
	sharedSecret = Sidecar{
		Image: "quay.io/example/proxy:v1", Port: 8443, UpstreamPort: 8080, ConfigMap: "config",
		Certificate: File{Secret: "serving", Key: "tls.crt", Volume: "tls", Dir: "/etc/tls"},
		Key:         File{Secret: "serving", Key: "tls.key", Volume: "tls", Dir: "/etc/tls"},
	}
)

// pod returns the part of a pod spec that a sidecar adds.
func pod(t *testing.T, s Sidecar) corev1.PodSpec {
	t.Helper()
	text, err := json.Marshal(map[string]any{"containers": []any{s.Container()}, "volumes": s.Volumes()})
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestSidecarArguments(t *testing.T) {
	for name, c := range map[string]struct {
		sidecar Sidecar
		want    []string
	}{
		"certificate and key in two Secrets": {separateSecrets, []string{
			"--secure-listen-address=0.0.0.0:9443", "--upstream=http://127.0.0.1:8181/", "--proxy-endpoints-port=8888",
			"--logtostderr=true", "--v=0", "--config-file=/etc/kube-rbac-proxy/config-file.yaml",
			"--tls-cert-file=/etc/tls/private-cert/cert.pem", "--tls-private-key-file=/etc/tls/private-key/key.pem",
		}},
		"certificate and key in one Secret": {sharedSecret, []string{
			"--secure-listen-address=0.0.0.0:8443", "--upstream=http://127.0.0.1:8080/", "--proxy-endpoints-port=8888",
			"--logtostderr=true", "--v=0", "--config-file=/etc/kube-rbac-proxy/config-file.yaml",
			"--tls-cert-file=/etc/tls/tls.crt", "--tls-private-key-file=/etc/tls/tls.key",
		}},
	} {
		if diff := cmp.Diff(c.want, pod(t, c.sidecar).Containers[0].Args); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVolumes(t *testing.T) {
	mode := int32(0o600)
	secret := func(volume, name string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: &mode}}}
	}
	config := func(name string) corev1.Volume {
		return corev1.Volume{Name: "kube-rbac-proxy-config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}}
	}
	for name, c := range map[string]struct {
		sidecar Sidecar
		volumes []corev1.Volume
		mounts  []corev1.VolumeMount
	}{
		"certificate and key in two Secrets": {
			separateSecrets,
			[]corev1.Volume{secret("proxy-cert", "own-cert"), secret("proxy-key", "own-key"), config("guarded-config")},
			[]corev1.VolumeMount{
				{Name: "proxy-cert", MountPath: "/etc/tls/private-cert"}, {Name: "proxy-key", MountPath: "/etc/tls/private-key"},
				{Name: "kube-rbac-proxy-config", MountPath: "/etc/kube-rbac-proxy"},
			},
		},
		"certificate and key in one Secret": {
			sharedSecret,
			[]corev1.Volume{secret("tls", "serving"), config("config")},
			[]corev1.VolumeMount{{Name: "tls", MountPath: "/etc/tls"}, {Name: "kube-rbac-proxy-config", MountPath: "/etc/kube-rbac-proxy"}},
		},
	} {
		spec := pod(t, c.sidecar)
		if diff := cmp.Diff(c.volumes, spec.Volumes); diff != "" {
			t.Errorf("%s: volumes (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.mounts, spec.Containers[0].VolumeMounts); diff != "" {
			t.Errorf("%s: mounts (-want +got):\n%s", name, diff)
		}
	}
}

func TestProbesAndPorts(t *testing.T) {
	c := pod(t, separateSecrets).Containers[0]
	want := []corev1.ContainerPort{
		{Name: "https-proxy", ContainerPort: 9443, Protocol: corev1.ProtocolTCP},
		{Name: "proxy-healthz", ContainerPort: 8888, Protocol: corev1.ProtocolTCP},
	}
	if diff := cmp.Diff(want, c.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for delay, got := range map[int32]*corev1.Probe{30: c.LivenessProbe, 5: c.ReadinessProbe} {
		want := &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/healthz", Port: intstr.FromString("proxy-healthz"), Scheme: corev1.URISchemeHTTPS,
			}},
			InitialDelaySeconds: delay, TimeoutSeconds: 1, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("probe after %d s (-want +got):\n%s", delay, diff)
		}
	}
}

// A server with TLS is verified by its certificate, and may require a client certificate.
func TestUpstreamWithTLS(t *testing.T) {
	s := sharedSecret
	s.HealthPort = 9999
	s.Upstream = &Upstream{
		Host: "mesh.ns", CA: "/mesh/tls.crt",
		Mount: corev1ac.VolumeMount().WithName("mesh").WithMountPath("/mesh").WithReadOnly(true),
	}
	want := []string{
		"--secure-listen-address=0.0.0.0:8443", "--upstream=https://mesh.ns:8080/", "--proxy-endpoints-port=9999",
		"--logtostderr=true", "--v=0", "--config-file=/etc/kube-rbac-proxy/config-file.yaml",
		"--tls-cert-file=/etc/tls/tls.crt", "--tls-private-key-file=/etc/tls/tls.key", "--upstream-ca-file=/mesh/tls.crt",
	}
	c := pod(t, s).Containers[0]
	if diff := cmp.Diff(want, c.Args); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Ports[1].ContainerPort != 9999 || c.VolumeMounts[len(c.VolumeMounts)-1].Name != "mesh" {
		t.Errorf("got ports %v, mounts %v", c.Ports, c.VolumeMounts)
	}
	s.Upstream.Certificate, s.Upstream.Key = "/mesh/tls.crt", "/mesh/tls.key"
	want = append(want, "--upstream-client-cert-file=/mesh/tls.crt", "--upstream-client-key-file=/mesh/tls.key")
	if diff := cmp.Diff(want, pod(t, s).Containers[0].Args); diff != "" {
		t.Errorf("with a client certificate (-want +got):\n%s", diff)
	}
}

// [S7] The container meets the restricted Pod Security Standard.
func TestSidecarMeetsRestrictedStandard(t *testing.T) {
	c := pod(t, sharedSecret).Containers[0]
	s := c.SecurityContext
	if s == nil {
		t.Fatal("the container has no security context")
	}
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	if got := c.Resources.Limits[corev1.ResourceMemory]; got.Cmp(resource.MustParse("256Mi")) != 0 || len(c.Resources.Limits) != 1 {
		t.Errorf("got limits %v", c.Resources.Limits)
	}
	if cpu := c.Resources.Requests[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse("100m")) != 0 {
		t.Errorf("got requests %v", c.Resources.Requests)
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		attributes Attributes
		want       string
	}{
		"Service": {
			Attributes{APIVersion: "v1", Resource: "services", Verb: "get", Namespace: "ns", Name: "team-a"},
			"authorization:\n  resourceAttributes:\n    apiVersion: v1\n    name: team-a\n    namespace: ns\n    resource: services\n    verb: get\n",
		},
		"kind with an API group": {
			Attributes{APIGroup: "ray.io", Resource: "rayclusters", Name: "123"},
			"authorization:\n  resourceAttributes:\n    apiGroup: ray.io\n    name: \"123\"\n    resource: rayclusters\n",
		},
	} {
		if diff := cmp.Diff(map[string]string{"config-file.yaml": c.want}, Config(c.attributes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// dropUnreadable drops characters that YAML cannot contain.
func dropUnreadable(r rune) rune {
	if unicode.IsGraphic(r) || unicode.IsSpace(r) {
		return r
	}
	return -1
}

// FuzzConfig checks that no attribute value changes the structure of the file.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"a", "a\nuser: x", "a: b", "{}", "\"", "null", "1e3", "&x", "ü", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.Map(dropUnreadable, strings.ToValidUTF8(text, ""))
		data := Config(Attributes{Resource: "x" + text, Namespace: text, Name: text})
		var decoded map[string]map[string]map[string]string
		if err := yaml.Unmarshal([]byte(data[ConfigKey]), &decoded); err != nil {
			t.Fatalf("%q: unexpected error: %v", text, err)
		}
		got := decoded["authorization"]["resourceAttributes"]
		keys := []string{"resource"}
		if text != "" {
			keys = append(keys, "namespace", "name")
		}
		for key, value := range got {
			if !slices.Contains(keys, key) || value != text && value != "x"+text {
				t.Errorf("%q: got attribute %s=%q", text, key, value)
			}
		}
		if len(got) != len(keys) || len(decoded) != 1 || len(decoded["authorization"]) != 1 {
			t.Errorf("%q changed the structure: %v", text, decoded)
		}
	})
}
