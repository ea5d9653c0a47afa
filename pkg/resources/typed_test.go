package resources

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	consolev1 "github.com/openshift/api/console/v1"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

var meta = metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{"app": ""}}

// Unset optional fields are omitted, because server-side apply would take them from other field managers.
func TestTypedDropsUnsetFields(t *testing.T) {
	for name, c := range map[string]struct {
		config runtime.ApplyConfiguration
		want   string
	}{
		"Route": {Published{Service: "s", Port: intstr.FromString("http")}.Route(meta),
			`{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"labels":{"app":""},"name":"a","namespace":"ns"},` +
				`"spec":{"port":{"targetPort":"http"},"to":{"kind":"Service","name":"s"}}}`},
		"Route with all fields": {
			Published{Service: "s", Port: intstr.FromInt32(1), Host: "h", Path: "/p", Weight: new(int32(0)), Wildcard: "None",
				TLS: &routev1.TLSConfig{Termination: "edge"}}.Route(metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"k": "v"}}),
			`{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"annotations":{"k":"v"},"name":"a"},"spec":{"host":"h","path":"/p",` +
				`"port":{"targetPort":1},"tls":{"termination":"edge"},"to":{"kind":"Service","name":"s","weight":0},"wildcardPolicy":"None"}}`},
		"ServiceMonitor": {
			ServiceMonitor(meta, map[string]string{"x": "y"}, monitoringv1.Endpoint{Port: "m"}, monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(false)}),
			`{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"labels":{"app":""},"name":"a","namespace":"ns"},` +
				`"spec":{"endpoints":[{"port":"m","tlsConfig":{"insecureSkipVerify":false}}],"selector":{"matchLabels":{"x":"y"}}}}`},
		"ConsoleLink": {Typed(capability.ConsoleLink, &consolev1.ConsoleLink{Spec: consolev1.ConsoleLinkSpec{Link: consolev1.Link{Text: "t"}}}),
			`{"apiVersion":"console.openshift.io/v1","kind":"ConsoleLink","spec":{"href":"","location":"","text":"t"}}`},
		"Group with nil users": {Typed(capability.UserGroup, &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: "g"}}),
			`{"apiVersion":"user.openshift.io/v1","kind":"Group","metadata":{"name":"g"}}`},
		"Group with empty users": {Typed(capability.UserGroup, &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Users: userv1.OptionalNames{}}),
			`{"apiVersion":"user.openshift.io/v1","kind":"Group","metadata":{"name":"g"},"users":[]}`},
	} {
		t.Run(name, func(t *testing.T) { expectJSON(t, c.want, c.config) })
	}
}

// expectJSON checks the JSON encoding of an object.
func expectJSON(t *testing.T, want string, config runtime.ApplyConfiguration) {
	t.Helper()
	got, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGatewayObjects(t *testing.T) {
	p := Published{Service: "s", Port: intstr.FromInt32(8443), Gateway: Gateway{"g", "gateways"},
		Prefixes: []Prefix{{Path: "/a/v1", Rewritten: "/v1"}, {Path: "/a", Redirected: true}}}
	const metadata = `"metadata":{"name":"a","namespace":"ns","labels":{"app":""}}`
	route := func(backend string) string {
		return `{"kind":"HTTPRoute","apiVersion":"gateway.networking.k8s.io/v1",` + metadata + `,"spec":{"parentRefs":[{"group":"gateway.networking.k8s.io",` +
			`"kind":"Gateway","namespace":"gateways","name":"g"}],"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/a/v1"}}],"filters":[{"type":"URLRewrite",` +
			`"urlRewrite":{"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/v1"}}}],"backendRefs":[` + backend + `],"timeouts":{"request":"0s"}},` +
			`{"matches":[{"path":{"type":"Exact","value":"/a"}}],"filters":[{"type":"RequestRedirect","requestRedirect":{` +
			`"path":{"type":"ReplaceFullPath","replaceFullPath":"/a/"},"statusCode":302}}],"timeouts":{"request":"0s"}},` +
			`{"matches":[{"path":{"type":"PathPrefix","value":"/a"}}],"backendRefs":[` + backend + `],"timeouts":{"request":"0s"}}]}}`
	}
	expectJSON(t, route(`{"group":"","kind":"Service","name":"s","port":8443,"weight":1}`), p.HTTPRoute(meta))
	p.Namespace = "servers"
	expectJSON(t, route(`{"group":"","kind":"Service","name":"s","namespace":"servers","port":8443,"weight":1}`), p.HTTPRoute(meta))
	expectJSON(t, `{"kind":"ReferenceGrant","apiVersion":"gateway.networking.k8s.io/v1beta1",`+metadata+`,"spec":{"from":[{"group":"gateway.networking.k8s.io",`+
		`"kind":"HTTPRoute","namespace":"routes"}],"to":[{"group":"","kind":"Service","name":"s"}]}}`, p.ReferenceGrant(meta, "routes"))
}

func TestGatewayMatches(t *testing.T) {
	ref := gatewayv1.ParentReference{Name: "g"}
	if g := (Gateway{"g", "ns"}); !g.Matches(ref, "ns") || g.Matches(ref, "other") {
		t.Error("want a parentRef without a namespace to match a Gateway in the namespace of the route only")
	}
	ref.Namespace = new(gatewayv1.Namespace("gateways"))
	if g := (Gateway{"g", "gateways"}); !g.Matches(ref, "ns") || (Gateway{"h", "gateways"}).Matches(ref, "ns") {
		t.Error("want a parentRef to match by name and namespace")
	}
	ref.Kind = new(gatewayv1.Kind("Service"))
	if (Gateway{"g", "gateways"}).Matches(ref, "ns") {
		t.Error("a reference to a Service matches a Gateway")
	}
}

func TestDecode(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Route", "metadata": map[string]any{"name": "a", "namespace": "ns"}}}
	route, err := Decode[routev1.Route](u)
	if err != nil || route.Name != "a" {
		t.Fatalf("unexpected route %+v, error %v", route, err)
	}
	u.Object["spec"] = map[string]any{"rules": "x", "host": int64(1)}
	if _, err := Decode[routev1.Route](u); err == nil || !strings.Contains(err.Error(), "Route ns/a") {
		t.Errorf("got error %v", err)
	}
}
