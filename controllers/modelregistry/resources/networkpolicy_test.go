package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func ingressRule(port int32, from ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyIngressRule {
	tcp, number := corev1.ProtocolTCP, intstr.FromInt32(port)
	return networkingv1.NetworkPolicyIngressRule{From: from, Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &number}}}
}

func namespacePeer(key, value string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

var serverPods = metav1.LabelSelector{MatchLabels: map[string]string{
	"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": "team-a",
}}

// [S1] With a proxy, clients cannot bypass it to the port of the server. [modelregistry-30]
func TestPolicies(t *testing.T) {
	routed := ingressRule(8443, namespacePeer("network.openshift.io/policy-group", "ingress"), namespacePeer("opendatahub.io/generated-namespace", "true"))
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		in   Inputs
		want map[string][]networkingv1.NetworkPolicyIngressRule
	}{
		"no proxy":                  {registrytest.Registry(), plain, map[string][]networkingv1.NetworkPolicyIngressRule{}},
		"plain Kubernetes":          {registrytest.Registry(registrytest.AddProxy), plain, map[string][]networkingv1.NetworkPolicyIngressRule{"team-a-ingress": {ingressRule(8443)}}},
		"OpenShift without a Route": {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift, map[string][]networkingv1.NetworkPolicyIngressRule{"team-a-ingress": {ingressRule(8443)}}},
		"OpenShift":                 {registrytest.Registry(registrytest.AddProxy), openshift, map[string][]networkingv1.NetworkPolicyIngressRule{"team-a-ingress": {}, "team-a-https-route": {routed}}},
		"another port":              {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), plain, map[string][]networkingv1.NetworkPolicyIngressRule{"team-a-ingress": {ingressRule(9443)}}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := buildObjects(t, test.m, test.in)
			got := map[string][]networkingv1.NetworkPolicyIngressRule{}
			for _, o := range objects {
				if o.GetKind() != "NetworkPolicy" || o.GetName() == "team-a-egress" {
					continue
				}
				spec := decodeObject[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", o.GetName()).Spec
				got[o.GetName()] = spec.Ingress
				if diff := cmp.Diff(serverPods, spec.PodSelector); diff != "" {
					t.Errorf("pods of %s (-want +got):\n%s", o.GetName(), diff)
				}
				if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, spec.PolicyTypes); diff != "" {
					t.Errorf("policy types of %s (-want +got):\n%s", o.GetName(), diff)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// [modelregistry-34] Only the server may connect to the database.
func TestDatabasePolicy(t *testing.T) {
	spec := decodeObject[networkingv1.NetworkPolicy](t, buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), plain), "NetworkPolicy", "team-a-postgres").Spec
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
			"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": "team-a-postgres",
		}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{ingressRule(5432, networkingv1.NetworkPolicyPeer{PodSelector: &serverPods})},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Egress of the server is unrestricted, with and without a proxy, and egress of the database is denied. [modelregistry-130]
func TestEgressPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		objects []*unstructured.Unstructured
		policy  string
		pods    string
		rules   []any
	}{
		"server":              {buildObjects(t, registrytest.Registry(), plain), "team-a-egress", "team-a", []any{map[string]any{}}},
		"server with a proxy": {buildObjects(t, registrytest.Registry(registrytest.AddProxy), openshift), "team-a-egress", "team-a", []any{map[string]any{}}},
		"database":            {buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), plain), "team-a-postgres-egress", "team-a-postgres", []any{}},
	} {
		want := map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": test.pods}},
			"policyTypes": []any{"Egress"}, "egress": test.rules,
		}
		if diff := cmp.Diff(want, specOf(t, test.objects, "NetworkPolicy", test.policy)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func specOf(t *testing.T, objects []*unstructured.Unstructured, kind, name string) map[string]any {
	t.Helper()
	o := findObject(objects, kind, name)
	if o == nil {
		t.Fatalf("no %s %s was built", kind, name)
		return nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	return spec
}

// [modelregistry-29] [D20] Each Route targets an existing port of the Service.
func TestRoutes(t *testing.T) {
	enabled := func(s *v1beta1.ModelRegistrySpec) { s.Rest.ServiceRoute = v1beta1.RouteEnabled }
	to := map[string]any{"kind": "Service", "name": "team-a"}
	secure := map[string]any{
		"host": "team-a-rest.apps.example.com", "to": to, "port": map[string]any{"targetPort": "https-api"},
		"tls": map[string]any{"termination": "reencrypt"}, "wildcardPolicy": "None",
	}
	withoutHost := map[string]any{
		"to": to, "port": map[string]any{"targetPort": "https-api"}, "tls": map[string]any{"termination": "reencrypt"}, "wildcardPolicy": "None",
	}
	for name, test := range map[string]struct {
		m     *v1beta1.ModelRegistry
		route string
		want  map[string]any
	}{
		"without a proxy": {registrytest.Registry(enabled), "team-a-http", map[string]any{"to": to, "port": map[string]any{"targetPort": "http-api"}}},
		"with a proxy": {registrytest.Registry(registrytest.AddProxy, enabled), "team-a-http", map[string]any{
			"to": to, "port": map[string]any{"targetPort": "https-api"},
			"tls": map[string]any{"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
		}},
		"[modelregistry-30] to the proxy":      {registrytest.Registry(registrytest.AddProxy), "team-a-https", secure},
		"[D22] to the proxy, without a domain": {registrytest.Registry(registrytest.AddProxy, noDomain), "team-a-https", withoutHost},
	} {
		objects := buildObjects(t, test.m, openshift)
		if diff := cmp.Diff(test.want, specOf(t, objects, "Route", test.route)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		target, _ := test.want["port"].(map[string]any)
		if port := decodeObject[corev1.Service](t, objects, "Service", "team-a").Spec.Ports[0].Name; port != target["targetPort"] {
			t.Errorf("%s: the Service has port %s, the Route targets %v", name, port, target)
		}
	}
}

// [modelregistry-38] The ReferenceGrant allows only the Service of the registry. [D26]
func TestGateway(t *testing.T) {
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		port int64
	}{
		"with a proxy": {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), 9443}, "without a proxy": {registrytest.Registry(registrytest.SetOptionalFields), 9090},
	} {
		objects := buildObjects(t, test.m, gateway)
		route := map[string]any{
			"parentRefs": []any{map[string]any{
				"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "data-science-gateway", "namespace": "openshift-ingress",
			}},
			"rules": []any{map[string]any{
				"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/model-registry/team-a/"}}},
				"filters": []any{map[string]any{
					"type":       "URLRewrite",
					"urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
				}},
				"backendRefs": []any{map[string]any{
					"group": "", "kind": "Service", "name": "team-a", "namespace": "lab-registries", "port": test.port, "weight": int64(1),
				}},
				"timeouts": map[string]any{"request": "0s"},
			}},
		}
		if diff := cmp.Diff(route, specOf(t, objects, "HTTPRoute", "model-registry-team-a")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if ns := findObject(objects, "HTTPRoute", "model-registry-team-a").GetNamespace(); ns != "opendatahub" {
			t.Errorf("the HTTPRoute is in %s", ns)
		}
		grant := map[string]any{
			"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "opendatahub"}},
			"to":   []any{map[string]any{"group": "", "kind": "Service", "name": "team-a"}},
		}
		if diff := cmp.Diff(grant, specOf(t, objects, "ReferenceGrant", "allow-gateway-httproutes-team-a")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
