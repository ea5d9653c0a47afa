package authproxy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

var (
	openShift = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	// openShiftWithoutOAuth is an OpenShift cluster with an external identity provider.
	openShiftWithoutOAuth = capability.NewSet(capability.Route, capability.OpenShiftIngress)
	plain                 = capability.NewSet(capability.ServiceMonitor)
)

func newSettings(changes ...func(*meshsettings.Settings)) meshsettings.Settings {
	s := meshsettings.Default()
	s.AuthProxy.Image, s.AuthProxy.RBACImage = meshsettings.ParseImage("quay.io/example/oauth:1"), meshsettings.ParseImage("quay.io/example/rbac:1")
	for _, change := range changes {
		change(&s)
	}
	return s
}

func mode(m string) func(*meshsettings.Settings) {
	return func(s *meshsettings.Settings) { s.AuthProxy.Mode = m }
}

func tls(auth string) func(*meshsettings.Settings) {
	return func(s *meshsettings.Settings) { s.TLS = meshsettings.TLS{SecretName: "mesh-tls", ClientAuth: auth} }
}

// sidecarPod returns a pod spec with the fields of the sidecar.
func sidecarPod(t *testing.T, p *Proxy) corev1.PodSpec {
	t.Helper()
	data, err := json.Marshal(map[string]any{"containers": []any{p.Container()}, "volumes": p.Volumes(), "hostAliases": p.HostAliases()})
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict(data, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestDecide(t *testing.T) {
	noREST := func(s *meshsettings.Settings) { s.RESTProxy.Enabled = false }
	for name, c := range map[string]struct {
		settings     meshsettings.Settings
		served       capability.Set
		container    string
		upstream     string
		hasServiceCA bool
	}{
		"OpenShift":                             {newSettings(), openShift, "oauth-proxy", "http://localhost:8008", true},
		"another port":                          {newSettings(func(s *meshsettings.Settings) { s.RESTProxy.Port = 9009 }), openShift, "oauth-proxy", "http://localhost:9009", true},
		"OpenShift without OAuth":               {newSettings(), openShiftWithoutOAuth, "kube-rbac-proxy", "http://127.0.0.1:8008/", true},
		"Kubernetes":                            {newSettings(), plain, "", "", false},
		"Kubernetes, proxy enabled":             {newSettings(mode(meshsettings.AuthProxyAlways)), plain, "kube-rbac-proxy", "http://127.0.0.1:8008/", false},
		"OpenShift, proxy disabled":             {newSettings(mode(meshsettings.AuthProxyNever)), openShift, "", "", false},
		"only Routes served":                    {newSettings(), capability.NewSet(capability.Route), "", "", false},
		"no REST proxy":                         {newSettings(noREST, mode(meshsettings.AuthProxyAlways)), openShift, "", "", false},
		"TLS":                                   {newSettings(tls("")), openShift, "oauth-proxy", "https://modelmesh-serving.ns:8008", true},
		"TLS with optional client certificates": {newSettings(tls("optional")), openShift, "oauth-proxy", "https://modelmesh-serving.ns:8008", true},
		"TLS with required client certificates": {newSettings(tls("require")), openShift, "kube-rbac-proxy", "https://modelmesh-serving.ns:8008/", true},
		"client certificates without TLS":       {newSettings(func(s *meshsettings.Settings) { s.TLS.ClientAuth = "require" }), openShift, "oauth-proxy", "http://localhost:8008", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(c.settings, "ns", c.served)
			if (p == nil) != (c.container == "") {
				t.Fatalf("proxy %+v, want container %q", p, c.container)
			}
			if p == nil {
				return
			}
			got := sidecarPod(t, p).Containers[0]
			if got.Name != c.container || !slices.Contains(got.Args, "--upstream="+c.upstream) {
				t.Errorf("container %s with arguments %q, want %s with upstream %s", got.Name, got.Args, c.container, c.upstream)
			}
			if p.NeedsCertificate() == c.hasServiceCA || (len(p.ServiceAnnotations()) > 0) != c.hasServiceCA {
				t.Errorf("NeedsCertificate returned %t, annotations %v", p.NeedsCertificate(), p.ServiceAnnotations())
			}
			if p.NeedsCookieSecret() != (c.container == "oauth-proxy") || p.NeedsRules() == p.NeedsCookieSecret() {
				t.Errorf("NeedsCookieSecret returned %t, NeedsRules %t", p.NeedsCookieSecret(), p.NeedsRules())
			}
		})
	}
}

// [O2] [M7] The cookie key comes from a Secret of the namespace, image and arguments come from the settings, and the container meets the
// restricted Pod Security Standard.
func TestOAuthContainer(t *testing.T) {
	p := Decide(newSettings(func(s *meshsettings.Settings) { s.AuthProxy.ExtraArgs = []string{"--request-logging=true"} }), "ns", openShift)
	spec := sidecarPod(t, p)
	c := spec.Containers[0]
	if c.Image != "quay.io/example/oauth:1" {
		t.Errorf("image %s", c.Image)
	}
	want := []string{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=modelmesh-serving-sa", "--upstream=http://localhost:8008",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key",
		`--openshift-delegate-urls={"/":{"resource":"services","namespace":"ns","verb":"get"}}`,
		`--openshift-sar={"resource":"services","namespace":"ns","verb":"get"}`, "--request-logging=true",
	}
	if diff := cmp.Diff(want, c.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	env := c.Env[0].ValueFrom.SecretKeyRef
	if c.Env[0].Name != "OAUTH2_PROXY_COOKIE_SECRET" || env.Name != CookieSecret || env.Key != "cookie_secret" {
		t.Errorf("environment variable %+v, want the cookie key", c.Env[0])
	}
	if diff := cmp.Diff([]corev1.ContainerPort{{Name: "https", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}}, c.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for delay, got := range map[int32]*corev1.Probe{30: c.LivenessProbe, 5: c.ReadinessProbe} {
		want := &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/oauth/healthz", Port: intstr.FromInt32(8443), Scheme: corev1.URISchemeHTTPS,
			}},
			InitialDelaySeconds: delay, TimeoutSeconds: 1, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("probe after %d s (-want +got):\n%s", delay, diff)
		}
	}
	if s := c.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.RunAsNonRoot || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("security context %+v", s)
	}
	if q := c.Resources.Limits[corev1.ResourceMemory]; q.String() != "256Mi" || c.Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("resources %+v", c.Resources)
	}
	if len(spec.Volumes) != 1 || spec.Volumes[0].Secret.SecretName != "model-serving-proxy-tls" || spec.Volumes[0].Name != "proxy-tls" {
		t.Errorf("volumes %+v", spec.Volumes)
	}
	if diff := cmp.Diff([]corev1.VolumeMount{{Name: "proxy-tls", MountPath: "/etc/tls/private", ReadOnly: true}}, c.VolumeMounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if len(spec.HostAliases) > 0 {
		t.Errorf("host aliases %v without TLS, want none", spec.HostAliases)
	}
}

// [O3] The sidecar verifies the certificate of the mesh, and sends a client certificate if the mesh requires one.
func TestSidecarUpstreamTLS(t *testing.T) {
	mountsMeshTLS := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "tls-certs" && m.MountPath == "/opt/kserve/mmesh/tls" && m.ReadOnly
		})
	}
	for name, c := range map[string]struct {
		proxy *Proxy
		args  []string
	}{
		"OAuth":           {Decide(newSettings(tls("")), "ns", openShift), []string{"--upstream-ca=/opt/kserve/mmesh/tls/tls.crt"}},
		"kube-rbac-proxy": {Decide(newSettings(tls("optional"), mode(meshsettings.AuthProxyAlways)), "ns", plain), []string{"--upstream-ca-file=/opt/kserve/mmesh/tls/tls.crt"}},
		"client certificate": {Decide(newSettings(tls("require")), "ns", openShift), []string{
			"--upstream-ca-file=/opt/kserve/mmesh/tls/tls.crt", "--upstream-client-cert-file=/opt/kserve/mmesh/tls/tls.crt",
			"--upstream-client-key-file=/opt/kserve/mmesh/tls/tls.key",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := sidecarPod(t, c.proxy)
			got := spec.Containers[0]
			for _, arg := range c.args {
				if !slices.Contains(got.Args, arg) {
					t.Errorf("arguments %q lack %s", got.Args, arg)
				}
			}
			if !mountsMeshTLS(got) {
				t.Errorf("mounts %v, want the certificate of the mesh", got.VolumeMounts)
			}
			want := []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{"modelmesh-serving.ns"}}}
			if diff := cmp.Diff(want, spec.HostAliases); diff != "" {
				t.Errorf("host aliases (-want +got):\n%s", diff)
			}
		})
	}
	if got := sidecarPod(t, Decide(newSettings(tls("optional"), mode(meshsettings.AuthProxyAlways)), "ns", plain)).Containers[0]; strings.Contains(strings.Join(got.Args, " "), "client-cert") {
		t.Errorf("arguments %q contain a client certificate, although it is optional", got.Args)
	}
}

// [O4] Without OpenShift the sidecar is kube-rbac-proxy, if the settings enable it.
func TestRBACContainer(t *testing.T) {
	p := Decide(newSettings(mode(meshsettings.AuthProxyAlways), func(s *meshsettings.Settings) {
		s.AuthProxy.ExtraArgs, s.ServiceAccountName = []string{"--v=4"}, "runner"
		s.AuthProxy.TLS, _ = tlsprofile.FromFlags("VersionTLS13", "")
	}), "ns", plain)
	spec := sidecarPod(t, p)
	c := spec.Containers[0]
	if !slices.Contains(c.Args, "--tls-min-version=VersionTLS13") {
		t.Errorf("arguments %q lack the TLS profile", c.Args)
	}
	if c.Image != "quay.io/example/rbac:1" || c.Args[len(c.Args)-1] != "--v=4" || !slices.Contains(c.Args, "--proxy-endpoints-port=8444") {
		t.Errorf("image %s, arguments %q", c.Image, c.Args)
	}
	want := []corev1.ContainerPort{
		{Name: "https", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}, {Name: "proxy-healthz", ContainerPort: 8444, Protocol: corev1.ProtocolTCP},
	}
	if diff := cmp.Diff(want, c.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if c.Resources.Limits.Cpu().String() != "100m" || p.ServiceAccountName() != "runner" {
		t.Errorf("resources %+v, account %s", c.Resources, p.ServiceAccountName())
	}
	var names []string
	for _, v := range spec.Volumes {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"proxy-tls", "kube-rbac-proxy-config"}, names); diff != "" || spec.Volumes[1].ConfigMap.Name != RulesConfigMap {
		t.Errorf("volumes %+v", spec.Volumes)
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(names, m.Name) {
			t.Errorf("mount of volume %s, which does not exist", m.Name)
		}
	}
	rules := p.Rules()
	if !strings.Contains(rules["config-file.yaml"], "resource: services") || !strings.Contains(rules["config-file.yaml"], "namespace: ns") {
		t.Errorf("rules %v", rules)
	}
}

func TestServicePort(t *testing.T) {
	p := Decide(newSettings(), "ns", openShift)
	port := p.ServicePort()
	if *port.Name != "https" || *port.Port != 8443 || port.TargetPort.StrVal != "https" {
		t.Errorf("port %+v", port)
	}
	want := map[string]string{"service.alpha.openshift.io/serving-cert-secret-name": "model-serving-proxy-tls"}
	if diff := cmp.Diff(want, p.ServiceAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// Either the platform or the operator issues the certificate of the sidecar, for any set of served APIs.
func TestCertificateHasIssuer(t *testing.T) {
	kinds := []schema.GroupVersionKind{capability.Route, capability.OpenShiftIngress, capability.UserGroup}
	for mask := range 1 << len(kinds) {
		var served []schema.GroupVersionKind
		for i, k := range kinds {
			if mask&(1<<i) != 0 {
				served = append(served, k)
			}
		}
		set := capability.NewSet(served...)
		for _, m := range []string{meshsettings.AuthProxyAuto, meshsettings.AuthProxyAlways, meshsettings.AuthProxyNever, ""} {
			p := Decide(newSettings(mode(m)), "ns", set)
			if p != nil && p.NeedsCertificate() == set.IsOpenShift() {
				t.Errorf("%s, mode %q: NeedsCertificate returned %t", set, m, p.NeedsCertificate())
			}
			if p != nil && m == meshsettings.AuthProxyNever || p == nil && m == meshsettings.AuthProxyAlways {
				t.Errorf("%s, mode %q: proxy %+v", set, m, p)
			}
		}
	}
}
