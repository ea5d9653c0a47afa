package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func deploymentOf(t *testing.T, m *v1beta1.ModelRegistry, in Inputs) *appsv1.Deployment {
	t.Helper()
	return decodeObject[appsv1.Deployment](t, buildObjects(t, m, in), "Deployment", "team-a")
}

// [modelregistry-27] The selector is equal to the one of the legacy operator, because selectors are immutable.
func TestSelector(t *testing.T) {
	want := map[string]string{"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": "team-a"}
	d := deploymentOf(t, registrytest.Registry(), plain)
	if diff := cmp.Diff(want, d.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, d.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of pods (-want +got):\n%s", diff)
	}
	if d.Spec.Template.Annotations["openshift.io/required-scc"] != "restricted-v2" || *d.Spec.Replicas != 1 || *d.Spec.RevisionHistoryLimit != 0 {
		t.Errorf("annotations %v, %d replicas, %d revisions", d.Spec.Template.Annotations, *d.Spec.Replicas, *d.Spec.RevisionHistoryLimit)
	}
}

// [modelregistry-66] Resources are those of the spec without claims, and the pod has no oauth-proxy.
func TestServerContainer(t *testing.T) {
	for name, test := range map[string]struct {
		m                *v1beta1.ModelRegistry
		requests, limits corev1.ResourceList
	}{
		"resources of the fixture": {registrytest.Registry(), registrytest.Registry().Spec.Rest.Resources.Requests, registrytest.Registry().Spec.Rest.Resources.Limits},
		"resources of the spec":    {registrytest.Registry(registrytest.SetOptionalFields), registrytest.Registry(registrytest.SetOptionalFields).Spec.Rest.Resources.Requests, registrytest.Registry(registrytest.SetOptionalFields).Spec.Rest.Resources.Limits},
		"empty resources":          {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.Rest.Resources = &corev1.ResourceRequirements{} }), nil, nil},
		"no resources":             {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.Rest.Resources = nil }), nil, nil},
	} {
		server := deploymentOf(t, test.m, plain).Spec.Template.Spec.Containers[0]
		if diff := cmp.Diff(corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}, server.Resources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if server.Name != "rest-container" || server.Image != "quay.io/example/model-registry:v1" ||
			!slices.Equal(server.Command, []string{"/model-registry", "proxy"}) {
			t.Errorf("%s: %s runs %s %v", name, server.Name, server.Image, server.Command)
		}
	}
	for _, c := range deploymentOf(t, registrytest.Registry(registrytest.AddProxy), openshift).Spec.Template.Spec.Containers {
		if c.Name == "oauth-proxy" || slices.ContainsFunc(c.Args, func(arg string) bool { return arg == "--provider=openshift" }) {
			t.Errorf("container %s %v", c.Name, c.Args)
		}
	}
}

// [BR-F3] The resources of the proxy can be set, because a ResourceQuota may require limits.
func TestResourcesOfTheProxy(t *testing.T) {
	proxyResources := func(requested *corev1.ResourceRequirements) corev1.ResourceRequirements {
		m := registrytest.Registry(registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Resources = requested })
		for _, c := range deploymentOf(t, m, plain).Spec.Template.Spec.Containers {
			if c.Name == "kube-rbac-proxy" {
				return c.Resources
			}
		}
		t.Fatal("the Deployment has no proxy container")
		return corev1.ResourceRequirements{}
	}
	requested := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	if diff := cmp.Diff(requested, proxyResources(&requested)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := proxyResources(nil); got.Limits.Cpu().Sign() != 0 || got.Limits.Memory().String() != "256Mi" || got.Requests.Cpu().String() != "100m" {
		t.Errorf("unexpected default resources %+v", got)
	}
}

func TestServerProbes(t *testing.T) {
	for port, m := range map[string]*v1beta1.ModelRegistry{"http-api": registrytest.Registry(), "8443": registrytest.Registry(registrytest.AddProxy)} {
		checkProbes(t, m, port)
	}
}

// checkProbes requires probes on a port: the port of the proxy if there is one, because the server then listens only on loopback.
func checkProbes(t *testing.T, m *v1beta1.ModelRegistry, port string) {
	t.Helper()
	pod := deploymentOf(t, m, plain).Spec.Template.Spec
	c := pod.Containers[0]
	if hasProxy := port != "http-api"; hasProxy != slices.Contains(c.Args, "--hostname=127.0.0.1") || hasProxy == slices.Contains(c.Args, "--hostname=0.0.0.0") ||
		hasProxy && !slices.Contains(pod.Containers[1].Args, "--ignore-paths=/readyz/isDirty,/readyz/health") ||
		hasProxy != (c.LivenessProbe.HTTPGet.Scheme == corev1.URISchemeHTTPS) {
		t.Errorf("unexpected arguments %v or probe %+v", c.Args, c.LivenessProbe.HTTPGet)
	}
	for name, p := range map[string]struct {
		got                     *corev1.Probe
		path                    string
		delay, period, failures int32
	}{
		"liveness":  {c.LivenessProbe, "/readyz/isDirty", 30, 10, 3},
		"startup":   {c.StartupProbe, "/readyz/isDirty", 10, 5, 60},
		"readiness": {c.ReadinessProbe, "/readyz/health", 5, 10, 3},
	} {
		if p.got.HTTPGet.Path != p.path || p.got.HTTPGet.Port.String() != port || p.got.InitialDelaySeconds != p.delay ||
			p.got.PeriodSeconds != p.period || p.got.FailureThreshold != p.failures || p.got.TimeoutSeconds != 5 {
			t.Errorf("%s: unexpected probe %+v", name, p.got)
		}
	}
}

// [modelregistry-27] [modelregistry-30] [modelregistry-31] [modelregistry-33]
func TestSidecar(t *testing.T) {
	for name, test := range map[string]struct {
		m                *v1beta1.ModelRegistry
		image            string
		cert, key        string // Secrets
		listen, upstream string
		files            []string
	}{
		"certificate of the platform": {registrytest.Registry(registrytest.AddProxy), "quay.io/example/kube-rbac-proxy:v1", "team-a-kube-rbac-proxy", "team-a-kube-rbac-proxy",
			"--secure-listen-address=0.0.0.0:8443", "--upstream=http://127.0.0.1:8080/",
			[]string{"--tls-cert-file=/etc/tls/private-cert/tls.crt", "--tls-private-key-file=/etc/tls/private-key/tls.key"}},
		"no certificate in the spec": {registrytest.Registry(registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) {
			s.KubeRBACProxy.TLSCertificateSecret, s.KubeRBACProxy.TLSKeySecret = nil, nil
		}), "quay.io/example/kube-rbac-proxy:v1", "team-a-kube-rbac-proxy", "team-a-kube-rbac-proxy",
			"--secure-listen-address=0.0.0.0:8443", "--upstream=http://127.0.0.1:8080/",
			[]string{"--tls-cert-file=/etc/tls/private-cert/tls.crt", "--tls-private-key-file=/etc/tls/private-key/tls.key"}},
		"customized": {registrytest.Registry(registrytest.AddProxy, registrytest.SetOptionalFields, registrytest.CustomizeProxy), "registry.example.com/sec/kube-rbac-proxy:v2", "own-cert", "own-key",
			"--secure-listen-address=0.0.0.0:9443", "--upstream=http://127.0.0.1:9090/",
			[]string{"--tls-cert-file=/etc/tls/private-cert/cert.pem", "--tls-private-key-file=/etc/tls/private-key/key.pem"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := deploymentOf(t, test.m, openshift).Spec.Template.Spec
			if len(pod.Containers) != 2 || pod.Containers[1].Name != "kube-rbac-proxy" {
				t.Fatalf("%d containers", len(pod.Containers))
			}
			proxy := pod.Containers[1]
			for _, want := range append(test.files, test.listen, test.upstream, "--config-file=/etc/kube-rbac-proxy/config-file.yaml") {
				if !slices.Contains(proxy.Args, want) {
					t.Errorf("argument %s is missing in %v", want, proxy.Args)
				}
			}
			if proxy.Image != test.image {
				t.Errorf("got image %s, want %s", proxy.Image, test.image)
			}
			volumes := pod.Volumes
			if volumes[0].Secret.SecretName != test.cert || *volumes[0].Secret.DefaultMode != 0o600 ||
				volumes[1].Secret.SecretName != test.key || *volumes[1].Secret.DefaultMode != 0o600 ||
				volumes[2].ConfigMap.Name != "team-a-kube-rbac-proxy-config" || volumes[2].ConfigMap.DefaultMode != nil {
				t.Errorf("volumes %+v", volumes)
			}
		})
	}
}

// [S7] On plain Kubernetes a pod needs an fsGroup to read Secrets of mode 0600; OpenShift rejects one that it did not assign.
func TestFSGroup(t *testing.T) {
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		in   Inputs
		want bool
	}{
		"no volumes": {registrytest.Registry(), plain, false},
		"proxy":      {registrytest.Registry(registrytest.AddProxy), plain, true},
		"TLS files":  {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS), plain, true},
		"OpenShift":  {registrytest.Registry(registrytest.AddProxy), openshift, false},
	} {
		group := deploymentOf(t, test.m, test.in).Spec.Template.Spec.SecurityContext.FSGroup
		if (group != nil) != test.want {
			t.Errorf("%s: got fsGroup %v, want one: %t", name, group, test.want)
		}
	}
}

// [W2] Deployment and pod template have the hashes of consumed objects as annotations, so that a change causes a rollout.
func TestRolloutHashes(t *testing.T) {
	in := with(plain, func(in *Inputs) {
		in.ServerHash, in.DatabaseHash = reference.RolloutHash{Hashes: "server", Rollout: "rolls"}, reference.RolloutHash{Hashes: "database", Rollout: "restarts"}
	})
	objects := append(buildObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), in), buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), in)...)
	for name, want := range map[string][2]string{"team-a": {"server", "rolls"}, "team-a-postgres": {"database", "restarts"}} {
		d := decodeObject[appsv1.Deployment](t, objects, "Deployment", name)
		got := [2]string{d.Annotations[reference.HashesAnnotation], d.Spec.Template.Annotations[reference.RolloutAnnotation]}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	d := deploymentOf(t, registrytest.Registry(), plain)
	if _, found := d.Annotations[reference.HashesAnnotation]; found || len(d.Spec.Template.Annotations) != 1 {
		t.Errorf("got annotations %v and %v without hashes", d.Annotations, d.Spec.Template.Annotations)
	}
}
