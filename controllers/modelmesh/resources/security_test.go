package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

func restricted(in *RuntimeInputs)  { in.Restricted = true }
func onOpenShift(in *RuntimeInputs) { in.OpenShift = true }

// violations returns the violations of the restricted Pod Security Standard in a container.
func violations(pod corev1.PodSpec, c corev1.Container) []string {
	var all []string
	s := c.SecurityContext
	if s == nil {
		s = &corev1.SecurityContext{}
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		all = append(all, "allowPrivilegeEscalation")
	}
	if s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
		all = append(all, "capabilities")
	}
	if s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		all = append(all, "runAsNonRoot")
	}
	seccomp := s.SeccompProfile
	if seccomp == nil && pod.SecurityContext != nil {
		seccomp = pod.SecurityContext.SeccompProfile
	}
	if seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		all = append(all, "seccompProfile")
	}
	return all
}

// ModelMesh containers always meet the restricted standard. Runtime containers meet it if the namespace enforces it or the platform
// assigns a user; elsewhere they can run as root, as the images of model servers do. [M40]
func TestPodSecurity(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*RuntimeInputs)
		server []string
	}{
		"anywhere":                 {nil, []string{"runAsNonRoot"}},
		"in a restricted place":    {[]func(*RuntimeInputs){restricted}, nil},
		"on OpenShift":             {[]func(*RuntimeInputs){onOpenShift}, nil},
		"on OpenShift, restricted": {[]func(*RuntimeInputs){onOpenShift, restricted}, nil},
	} {
		for kind, spec := range map[string]*v1alpha1.ServingRuntimeSpec{"adapter": runtimeSpec(withAdapter), "puller": runtimeSpec()} {
			pod := podOf(t, inputs(spec, c.change...))
			for _, each := range pod.Containers {
				want := []string(nil)
				if each.Name == spec.Containers[0].Name {
					want = c.server
				}
				if diff := cmp.Diff(want, violations(pod, each)); diff != "" {
					t.Errorf("%s, %s of %s (-want +got):\n%s", name, each.Name, kind, diff)
				}
			}
		}
	}
}

// runAsUser is set only if neither the runtime nor the platform sets it: OpenShift rejects other user IDs.
func TestRunAsUserOfRuntimeContainers(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*RuntimeInputs)
		want   *int64
	}{
		"anywhere": {nil, nil}, "restricted": {[]func(*RuntimeInputs){restricted}, new(int64(1000))},
		"OpenShift": {[]func(*RuntimeInputs){onOpenShift, restricted}, nil},
	} {
		pod := podOf(t, inputs(runtimeSpec(), c.change...))
		if diff := cmp.Diff(c.want, container(t, pod, "server").SecurityContext.RunAsUser); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := container(t, pod, "mm").SecurityContext.RunAsUser; got != nil {
			t.Errorf("%s: the mesh runs as %d", name, *got)
		}
	}
}

// Fields of the runtime are kept; missing ones are added in a restricted namespace.
func TestRuntimeSecurityContextIsKept(t *testing.T) {
	root := &corev1.SecurityContext{RunAsUser: new(int64(0))}
	added := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}}, ReadOnlyRootFilesystem: new(true)}
	all := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	for name, c := range map[string]struct {
		given, want *corev1.SecurityContext
		change      []func(*RuntimeInputs)
	}{
		"as given":                           {root, root, nil},
		"legacy mode keeps the given values": {added, added, []func(*RuntimeInputs){original}},
		"as given on OpenShift":              {root, root, []func(*RuntimeInputs){onOpenShift, restricted}},
		"completed": {added, &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Add: added.Capabilities.Add, Drop: all.Drop}, ReadOnlyRootFilesystem: new(true),
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
		}, []func(*RuntimeInputs){restricted}},
		"explicit settings stay": {
			&corev1.SecurityContext{RunAsNonRoot: new(false), AllowPrivilegeEscalation: new(true), Capabilities: all},
			&corev1.SecurityContext{RunAsNonRoot: new(false), AllowPrivilegeEscalation: new(true), Capabilities: all},
			[]func(*RuntimeInputs){restricted},
		},
		"no securityContext in the legacy form": {nil, &corev1.SecurityContext{Capabilities: all}, []func(*RuntimeInputs){original, restricted}},
	} {
		spec := runtimeSpec(inServer(func(s *corev1.Container) { s.SecurityContext = c.given.DeepCopy() }))
		if diff := cmp.Diff(c.want, container(t, podOf(t, inputs(spec, c.change...)), "server").SecurityContext); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.given, spec.Containers[0].SecurityContext); diff != "" {
			t.Errorf("%s: the spec was changed:\n%s", name, diff)
		}
	}
}

func inServer(change func(*corev1.Container)) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) { change(&s.Containers[0]) }
}

// In the legacy form only some containers have a security context, and the pod has none.
func TestLegacySecurityContext(t *testing.T) {
	drop := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	for kind, want := range map[*v1alpha1.ServingRuntimeSpec]map[string]*corev1.SecurityContext{
		runtimeSpec():            {"mm": drop, "server": drop, "puller": nil, "rest-proxy": nil},
		runtimeSpec(withAdapter): {"mm": drop, "triton": drop, "triton-adapter": drop, "rest-proxy": nil},
	} {
		pod := podOf(t, inputs(kind, original, restricted))
		if pod.SecurityContext != nil {
			t.Errorf("the pod has %+v", pod.SecurityContext)
		}
		for name, security := range want {
			if diff := cmp.Diff(security, container(t, pod, name).SecurityContext); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// The proxy is added after the mesh and becomes the second container. Its volumes follow those of the runtime.
func TestAuthenticationProxy(t *testing.T) {
	proxied := func(in *RuntimeInputs) { in.Proxy = withOAuthProxy() }
	for want, in := range map[string]RuntimeInputs{
		"triton-adapter oauth-proxy triton mm":            inputs(runtimeSpec(withAdapter), plainMesh, proxied),
		"rest-proxy oauth-proxy triton triton-adapter mm": inputs(runtimeSpec(withAdapter), proxied),
		"rest-proxy oauth-proxy server mm puller":         inputs(runtimeSpec(), proxied),
	} {
		got := ""
		for i, name := range containerNames(podOf(t, in)) {
			if i > 0 {
				got += " "
			}
			got += name
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := BuildDeployment(inputs(runtimeSpec(inServer(func(c *corev1.Container) { c.Name = "oauth-proxy" })), proxied)); err == nil {
		t.Error("want an error for a runtime container named oauth-proxy")
	}
	in := inputs(runtimeSpec(), encrypted)
	in.Settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
	in.Proxy = authproxy.Decide(in.Settings, in.Namespace, capability.Set{})
	pod := podOf(t, in)
	if len(pod.HostAliases) != 1 || pod.HostAliases[0].IP != "127.0.0.1" {
		t.Errorf("unexpected host aliases with TLS: %+v", pod.HostAliases)
	}
	if got := violations(pod, container(t, pod, "kube-rbac-proxy")); got != nil {
		t.Errorf("the proxy violates %q", got)
	}
}

func TestServiceAccount(t *testing.T) {
	in := inputs(runtimeSpec())
	if got := podOf(t, in).ServiceAccountName; got != "" {
		t.Error(got)
	}
	in.Settings.ServiceAccountName = "runner"
	if got := podOf(t, in).ServiceAccountName; got != "runner" {
		t.Error(got)
	}
}
