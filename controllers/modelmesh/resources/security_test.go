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

// violations returns the fields of a container that violate the restricted Pod Security Standard.
func violations(pod corev1.PodSpec, c corev1.Container) []string {
	var fields []string
	s := c.SecurityContext
	if s == nil {
		s = &corev1.SecurityContext{}
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		fields = append(fields, "allowPrivilegeEscalation")
	}
	if s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
		fields = append(fields, "capabilities")
	}
	if s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		fields = append(fields, "runAsNonRoot")
	}
	seccomp := s.SeccompProfile
	if seccomp == nil && pod.SecurityContext != nil {
		seccomp = pod.SecurityContext.SeccompProfile
	}
	if seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		fields = append(fields, "seccompProfile")
	}
	return fields
}

// In the current form ModelMesh containers meet the restricted standard. Runtime containers meet it if the namespace enforces it or the
// platform assigns a user; elsewhere they can run as root, as the images of model servers do. [M40]
func TestPodSecurity(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*RuntimeInputs)
		server []string
	}{
		"unrestricted":          {nil, []string{"runAsNonRoot"}},
		"restricted":            {[]func(*RuntimeInputs){restricted}, nil},
		"OpenShift":             {[]func(*RuntimeInputs){onOpenShift}, nil},
		"OpenShift, restricted": {[]func(*RuntimeInputs){onOpenShift, restricted}, nil},
	} {
		for kind, spec := range map[string]*v1alpha1.ServingRuntimeSpec{"adapter": runtimeSpec(withAdapter), "puller": runtimeSpec()} {
			pod := buildPod(t, inputs(spec, c.change...))
			for _, container := range pod.Containers {
				want := []string(nil)
				if container.Name == spec.Containers[0].Name {
					want = c.server
				}
				if diff := cmp.Diff(want, violations(pod, container)); diff != "" {
					t.Errorf("%s, %s of %s (-want +got):\n%s", name, container.Name, kind, diff)
				}
			}
		}
	}
}

// runAsUser is set only in a restricted namespace, and not on OpenShift, which rejects other user IDs.
func TestRunAsUserOfRuntimeContainers(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*RuntimeInputs)
		want   *int64
	}{
		"unrestricted": {nil, nil}, "restricted": {[]func(*RuntimeInputs){restricted}, new(int64(1000))},
		"OpenShift": {[]func(*RuntimeInputs){onOpenShift, restricted}, nil},
	} {
		pod := buildPod(t, inputs(runtimeSpec(), c.change...))
		if diff := cmp.Diff(c.want, getContainer(t, pod, "server").SecurityContext.RunAsUser); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := getContainer(t, pod, "mm").SecurityContext.RunAsUser; got != nil {
			t.Errorf("%s: runAsUser of the mesh is %d, want unset", name, *got)
		}
	}
}

// Fields of the runtime are kept. The current form adds missing fields in a restricted namespace, except on OpenShift.
func TestRuntimeSecurityContextIsKept(t *testing.T) {
	root := &corev1.SecurityContext{RunAsUser: new(int64(0))}
	added := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}}, ReadOnlyRootFilesystem: new(true)}
	dropAll := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	for name, c := range map[string]struct {
		specified, want *corev1.SecurityContext
		change          []func(*RuntimeInputs)
	}{
		"unrestricted": {root, root, nil},
		"legacy form":  {added, added, []func(*RuntimeInputs){legacyForm}},
		"OpenShift":    {root, root, []func(*RuntimeInputs){onOpenShift, restricted}},
		"missing fields": {added, &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Add: added.Capabilities.Add, Drop: dropAll.Drop}, ReadOnlyRootFilesystem: new(true),
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
		}, []func(*RuntimeInputs){restricted}},
		"fields set to other values": {
			&corev1.SecurityContext{RunAsNonRoot: new(false), AllowPrivilegeEscalation: new(true), Capabilities: dropAll},
			&corev1.SecurityContext{RunAsNonRoot: new(false), AllowPrivilegeEscalation: new(true), Capabilities: dropAll},
			[]func(*RuntimeInputs){restricted},
		},
		"legacy form without a security context": {nil, &corev1.SecurityContext{Capabilities: dropAll}, []func(*RuntimeInputs){legacyForm, restricted}},
	} {
		spec := runtimeSpec(withServer(func(s *corev1.Container) { s.SecurityContext = c.specified.DeepCopy() }))
		if diff := cmp.Diff(c.want, getContainer(t, buildPod(t, inputs(spec, c.change...)), "server").SecurityContext); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.specified, spec.Containers[0].SecurityContext); diff != "" {
			t.Errorf("%s: BuildDeployment changed the spec:\n%s", name, diff)
		}
	}
}

func withServer(change func(*corev1.Container)) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) { change(&s.Containers[0]) }
}

// In the legacy form only some containers have a security context, and the pod has none.
func TestLegacySecurityContext(t *testing.T) {
	drop := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	for spec, want := range map[*v1alpha1.ServingRuntimeSpec]map[string]*corev1.SecurityContext{
		runtimeSpec():            {"mm": drop, "server": drop, "puller": nil, "rest-proxy": nil},
		runtimeSpec(withAdapter): {"mm": drop, "triton": drop, "triton-adapter": drop, "rest-proxy": nil},
	} {
		pod := buildPod(t, inputs(spec, legacyForm, restricted))
		if pod.SecurityContext != nil {
			t.Errorf("security context of the pod %+v, want none", pod.SecurityContext)
		}
		for name, security := range want {
			if diff := cmp.Diff(security, getContainer(t, pod, name).SecurityContext); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// The proxy becomes the second container, and no container of the runtime can have its name.
func TestAuthenticationProxy(t *testing.T) {
	withProxy := func(in *RuntimeInputs) { in.Proxy = newOAuthProxy() }
	for want, in := range map[string]RuntimeInputs{
		"triton-adapter oauth-proxy triton mm":            inputs(runtimeSpec(withAdapter), withoutRESTAndMetrics, withProxy),
		"rest-proxy oauth-proxy triton triton-adapter mm": inputs(runtimeSpec(withAdapter), withProxy),
		"rest-proxy oauth-proxy server mm puller":         inputs(runtimeSpec(), withProxy),
	} {
		got := ""
		for i, name := range containerNames(buildPod(t, in)) {
			if i > 0 {
				got += " "
			}
			got += name
		}
		if got != want {
			t.Errorf("containers %s, want %s", got, want)
		}
	}
	if _, err := BuildDeployment(inputs(runtimeSpec(withServer(func(c *corev1.Container) { c.Name = "oauth-proxy" })), withProxy)); err == nil {
		t.Error("BuildDeployment accepted a runtime container named oauth-proxy")
	}
	in := inputs(runtimeSpec(), withTLS)
	in.Settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
	in.Proxy = authproxy.Decide(in.Settings, in.Namespace, capability.Set{})
	pod := buildPod(t, in)
	if len(pod.HostAliases) != 1 || pod.HostAliases[0].IP != "127.0.0.1" {
		t.Errorf("host aliases %+v with TLS, want one for 127.0.0.1", pod.HostAliases)
	}
	if got := violations(pod, getContainer(t, pod, "kube-rbac-proxy")); got != nil {
		t.Errorf("the proxy violates %q", got)
	}
}

func TestServiceAccount(t *testing.T) {
	in := inputs(runtimeSpec())
	if got := buildPod(t, in).ServiceAccountName; got != "" {
		t.Errorf("service account %s, want the default", got)
	}
	in.Settings.ServiceAccountName = "runner"
	if got := buildPod(t, in).ServiceAccountName; got != "runner" {
		t.Errorf("service account %s, want runner", got)
	}
}
