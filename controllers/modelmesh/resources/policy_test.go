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

// renderGuards renders the guards of a namespace for the served APIs.
func renderGuards(t *testing.T, served capability.Set, changes ...func(*meshsettings.Settings)) []*unstructured.Unstructured {
	t.Helper()
	in := namespaceInputs(func(in *NamespaceInputs) { in.OperatorNamespace, in.OpenShift = "opendatahub", served.IsOpenShift() })
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

func enableAuthProxy(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

// The policies admit the manager, also if the ModelMesh configuration is in another namespace.
func TestManagerIsTrusted(t *testing.T) {
	for manager, want := range map[string]int{"": 2, "config": 2, "manager": 3} {
		peers := trustedPeers(NamespaceInputs{OperatorNamespace: "config", ManagerNamespace: manager})
		if len(peers) != want {
			t.Errorf("manager in namespace %q: %d peers, want %d", manager, len(peers), want)
		}
		if want == 3 && peers[2].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != manager {
			t.Errorf("got peer %v, want namespace %s", peers[2].NamespaceSelector, manager)
		}
	}
}

// [M34] [O4] The guards depend on the platform and the settings.
func TestBuildGuards(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	noPolicy := func(s *meshsettings.Settings) { s.NetworkPolicyEnabled = false }
	for name, c := range map[string]struct {
		guards []*unstructured.Unstructured
		want   []string
	}{
		"Kubernetes":        {renderGuards(t, capability.NewSet()), []string{"modelmesh-runtimes"}},
		"Kubernetes, proxy": {renderGuards(t, capability.NewSet(), enableAuthProxy), []string{"modelmesh-runtimes", "model-serving-proxy-rules"}},
		"OpenShift":         {renderGuards(t, openShift), []string{"modelmesh-runtimes"}},
		"disabled":          {renderGuards(t, capability.NewSet(), noPolicy), nil},
	} {
		var got []string
		for _, o := range c.guards {
			got = append(got, o.GetName())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: guards %q, want %q", name, got, c.want)
		}
	}
}

// [O6] With restricted settings or a proxy, only trusted peers can reach the gRPC and REST ports without authentication.
func TestRestrictedPolicy(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	plain := capability.NewSet(capability.ServiceMonitor)
	peerCountsByPort := func(served capability.Set, changes ...func(*meshsettings.Settings)) map[string]string {
		counts := map[string]string{}
		rules, _, _ := unstructured.NestedSlice(renderGuards(t, served, changes...)[0].Object, "spec", "ingress")
		for _, r := range rules {
			rule := r.(map[string]any)
			from, _ := rule["from"].([]any)
			for _, p := range rule["ports"].([]any) {
				port := p.(map[string]any)["port"]
				key := fmt.Sprint(port)
				counts[key] += map[bool]string{true: "all", false: fmt.Sprint(len(from))}[len(from) == 0] + " "
			}
		}
		return counts
	}
	restricted := func(s *meshsettings.Settings) { s.NetworkPolicyRestricted = true }
	for name, c := range map[string]struct {
		got, want map[string]string
	}{
		"OpenShift":              {peerCountsByPort(openShift), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"OpenShift, restricted":  {peerCountsByPort(openShift, restricted), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"Kubernetes, proxy":      {peerCountsByPort(plain, enableAuthProxy), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all ", "8443": "all "}},
		"Kubernetes":             {peerCountsByPort(plain), map[string]string{"8033": "1 all ", "8080": "1 ", "8008": "all ", "2112": "all "}},
		"Kubernetes, restricted": {peerCountsByPort(plain, restricted), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all "}},
		"Kubernetes, restricted, neither REST nor metrics": {peerCountsByPort(plain, restricted, func(s *meshsettings.Settings) { s.Metrics.Enabled, s.RESTProxy.Enabled = false, false }),
			map[string]string{"8033": "1 2 ", "8080": "1 "}},
	} {
		if !maps.Equal(c.got, c.want) {
			t.Errorf("%s: numbers of peers by port %v, want %v", name, c.got, c.want)
		}
	}
}
