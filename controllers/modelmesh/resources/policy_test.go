package resources

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// guardsOf returns the guards of a namespace on a platform as they would be applied.
func guardsOf(t *testing.T, served capability.Set, changes ...func(*meshsettings.Settings)) []*unstructured.Unstructured {
	t.Helper()
	in := namespaceInputs(func(in *NamespaceInputs) { in.OperatorNamespace, in.OpenShift = "opendatahub", served.OpenShift() })
	for _, change := range changes {
		change(&in.Settings)
	}
	in.Proxy = authproxy.Decide(in.Settings, in.Namespace, served)
	objects, err := apply.Render(BuildGuards(in), componentName, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace, UID: "uid"}})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func guardREST(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

// [M34] [O4] The NetworkPolicy of the legacy installation is adopted, that of a user is not.
func TestOnlyLegacyNetworkPolicyIsAdopted(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	off := func(s *meshsettings.Settings) { s.NetworkPolicy = false }
	for name, c := range map[string]struct {
		got  []*unstructured.Unstructured
		want []string
	}{
		"Kubernetes":          {guardsOf(t, capability.NewSet()), []string{"modelmesh-runtimes"}},
		"Kubernetes, guarded": {guardsOf(t, capability.NewSet(), guardREST), []string{"modelmesh-runtimes", "model-serving-proxy-rules"}},
		"OpenShift":           {guardsOf(t, openShift), []string{"modelmesh-runtimes"}},
		"disabled":            {guardsOf(t, capability.NewSet(), off), nil},
	} {
		var got []string
		for _, o := range c.got {
			got = append(got, o.GetName())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	pods := func(labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": labels}}}}
	}
	if !selectsLegacyPods(pods(map[string]any{"app.kubernetes.io/managed-by": "modelmesh-controller"})) || selectsLegacyPods(pods(map[string]any{"of": "another"})) {
		t.Error("want only the policy of the legacy controller recognised")
	}
}

// [O6] With restricted settings only trusted peers reach the ports without authentication.
func TestRestrictedPolicy(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	plain := capability.NewSet(capability.ServiceMonitor)
	ports := func(served capability.Set, changes ...func(*meshsettings.Settings)) map[string]string {
		out := map[string]string{}
		rules, _, _ := unstructured.NestedSlice(guardsOf(t, served, changes...)[0].Object, "spec", "ingress")
		for _, r := range rules {
			rule := r.(map[string]any)
			from, _ := rule["from"].([]any)
			for _, p := range rule["ports"].([]any) {
				port := p.(map[string]any)["port"]
				key := fmt.Sprint(port)
				out[key] += map[bool]string{true: "all", false: fmt.Sprint(len(from))}[len(from) == 0] + " "
			}
		}
		return out
	}
	restricted := func(s *meshsettings.Settings) { s.NetworkPolicyRestricted = true }
	for name, c := range map[string]struct {
		got, want map[string]string
	}{
		"guarded by a proxy":     {ports(openShift), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"restricted":             {ports(openShift, restricted), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"Kubernetes, guarded":    {ports(plain, guardREST), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all ", "8443": "all "}},
		"Kubernetes":             {ports(plain), map[string]string{"8033": "1 all ", "8080": "1 ", "8008": "all ", "2112": "all "}},
		"Kubernetes, restricted": {ports(plain, restricted), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all "}},
		"no open ports": {ports(plain, restricted, func(s *meshsettings.Settings) { s.Metrics.Enabled, s.RESTProxy.Enabled = false, false }),
			map[string]string{"8033": "1 2 ", "8080": "1 "}},
	} {
		if !maps.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
