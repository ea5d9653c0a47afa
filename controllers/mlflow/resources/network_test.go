package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

type rule = networkingv1.NetworkPolicyEgressRule

func ports(protocol corev1.Protocol, numbers ...int32) []networkingv1.NetworkPolicyPort {
	var list []networkingv1.NetworkPolicyPort
	for _, n := range numbers {
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(n))})
	}
	return list
}

func tcp(numbers ...int32) rule { return rule{Ports: ports(corev1.ProtocolTCP, numbers...)} }

// dns allows TCP and UDP on the DNS port and on the port of the DNS pods of OpenShift.
func dns() rule {
	var r rule
	for _, n := range []int32{53, 5353} {
		r.Ports = append(r.Ports, append(ports(corev1.ProtocolUDP, n), ports(corev1.ProtocolTCP, n)...)...)
	}
	return r
}

func TestEgress(t *testing.T) {
	store := rule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}, Ports: ports(corev1.ProtocolTCP, 9000)}
	withoutProtocol := rule{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(7000))}}}
	withProtocol := tcp(7000) // the default protocol is set explicitly
	defaults := []rule{dns(), tcp(443, 6443, 8443), tcp(5432), tcp(3306), tcp(9000, 8333, 8334)}
	migration := []rule{dns(), tcp(5432, 3306)}
	for name, c := range map[string]struct {
		replace, add        []rule
		want, wantMigration []rule
	}{
		"[mlflow-20] default rules":        {want: defaults, wantMigration: migration},
		"[mlflow-20] additional rule":      {add: []rule{store}, want: append(defaults[:5:5], store), wantMigration: append(migration[:2:2], store)},
		"[mlflow-20] [D17] replaced rules": {replace: []rule{store}, want: []rule{store}, wantMigration: []rule{dns(), store}},
		"[mlflow-20] replaced rules and an additional one": {replace: []rule{store}, add: []rule{withoutProtocol}, want: []rule{store, withProtocol},
			wantMigration: []rule{dns(), store, withProtocol}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
				s.NetworkPolicyEgressRules, s.NetworkPolicyAdditionalEgressRules = c.replace, c.add
			})
			policy := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow")
			if diff := cmp.Diff(c.want, policy.Spec.Egress); diff != "" {
				t.Errorf("server (-want +got):\n%s", diff)
			}
			migrationPolicy := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow-migration")
			if diff := cmp.Diff(c.wantMigration, migrationPolicy.Spec.Egress); diff != "" {
				t.Errorf("migration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIngress(t *testing.T) {
	policy := typed[networkingv1.NetworkPolicy](t, mlflowtest.MLflow(), platformInputs["plain"], "NetworkPolicy", "mlflow")
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{
			MatchLabels: map[string]string{"app.kubernetes.io/instance": "mlflow"},
			MatchExpressions: []metav1.LabelSelectorRequirement{ // [D17] migration pods have another policy
				{Key: "component", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"mlflow-migration"}}},
		},
		PolicyTypes: []networkingv1.PolicyType{"Ingress", "Egress"},
		Egress:      policy.Spec.Egress,
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: ports(corev1.ProtocolTCP, 8443),
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, {NamespaceSelector: &metav1.LabelSelector{}}},
		}},
	}
	if diff := cmp.Diff(want, policy.Spec); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	t.Run("[mlflow-20] no ingress to migration pods", func(t *testing.T) {
		migration := typed[networkingv1.NetworkPolicy](t, mlflowtest.MLflow(), platformInputs["plain"], "NetworkPolicy", "mlflow-migration")
		if migration.Spec.Ingress == nil || len(migration.Spec.Ingress) != 0 || len(migration.Spec.PolicyTypes) != 2 {
			t.Errorf("got ingress rules %v and policy types %v, want an empty list of rules and both types", migration.Spec.Ingress, migration.Spec.PolicyTypes)
		}
		if diff := cmp.Diff(map[string]string{"component": "mlflow-migration"}, migration.Spec.PodSelector.MatchLabels); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
	})
}

func TestService(t *testing.T) {
	for _, platform := range []string{"bare", "openshift"} {
		service := typed[corev1.Service](t, withName(mlflowtest.MLflow(), "team"), platformInputs[platform], "Service", "mlflow-team")
		want := corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: map[string]string{"app": "mlflow-team"},
			Ports:    []corev1.ServicePort{{Name: "https", AppProtocol: new("https"), Protocol: corev1.ProtocolTCP, Port: 8443, TargetPort: intstr.FromString("https")}},
		}
		if diff := cmp.Diff(want, service.Spec); diff != "" {
			t.Errorf("service (-want +got):\n%s", diff)
		}
		if got := service.Annotations["service.beta.openshift.io/serving-cert-secret-name"]; got != "mlflow-tls" {
			t.Errorf("the Service requests its certificate in Secret %q, want mlflow-tls", got)
		}
	}
}

func TestHTTPRoute(t *testing.T) {
	for name, path := range map[string]string{"mlflow": "/mlflow", "team": "/mlflow-team"} {
		t.Run("[mlflow-33] "+path, func(t *testing.T) {
			m := withName(mlflowtest.MLflow(), name)
			in := with(platformInputs["plain"], func(in *Inputs) { in.GatewayName, in.GatewayNamespace = "own", "gateways" })
			route := mlflowtest.Object(buildObjects(t, m, in), "HTTPRoute", NameOf(m))
			backends := []any{map[string]any{"group": "", "kind": "Service", "name": NameOf(m), "port": int64(8443), "weight": int64(1)}}
			unlimited := map[string]any{"request": "0s"}
			match := func(path string) []any {
				return []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path}}}
			}
			want := map[string]any{
				"parentRefs": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "own", "namespace": "gateways"}},
				"rules": []any{
					map[string]any{"backendRefs": backends, "matches": match(path + "/v1"), "filters": []any{map[string]any{"type": "URLRewrite",
						"urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v1"}}}}, "timeouts": unlimited},
					map[string]any{"backendRefs": backends, "matches": match(path), "timeouts": unlimited},
				},
			}
			if diff := cmp.Diff(want, route.Object["spec"]); diff != "" {
				t.Errorf("route (-want +got):\n%s", diff)
			}
		})
	}
}

// MLflow 3.16 and later ingests traces under the static prefix, so only routes of earlier and unknown versions have the rule that
// removes the prefix.
func TestHTTPRouteRewritesTracesByVersion(t *testing.T) {
	for release, rules := range map[string]int{
		"": 2, "unknown": 2, "3.14.0": 2, "3.15.9": 2, "v3.15.0": 2, "3.16.0rc1": 2, "3.16.0.dev0": 2, "3.16.0-dev.0": 2, "v3.16.0a2": 2,
		"3.16.0": 1, "v3.16.0": 1, "3.16.0+build.5": 1, "3.16.0.post1": 1, "3.16.2.dev0": 1, "3.17.0rc1": 1, "3.17.0-rc.1": 1, "4.0.0": 1,
	} {
		in := with(platformInputs["plain"], func(in *Inputs) { in.Version = release })
		route := mlflowtest.Object(buildObjects(t, mlflowtest.MLflow(), in), "HTTPRoute", "mlflow")
		found, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != rules {
			t.Errorf("%q: %d rules, want %d", release, len(found), rules)
		}
	}
}

func TestServiceMonitor(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		in   Inputs
		want map[string]any
	}{
		"[mlflow-17] OpenShift": {"mlflow", platformInputs["openshift"], map[string]any{
			"ca": map[string]any{"configMap": map[string]any{"name": "openshift-service-ca.crt", "key": "service-ca.crt"}}, "serverName": "mlflow.opendatahub.svc"}},
		"[mlflow-17] OpenShift, MLflow with another name": {"team", platformInputs["openshift"], map[string]any{
			"ca": map[string]any{"configMap": map[string]any{"name": "openshift-service-ca.crt", "key": "service-ca.crt"}}, "serverName": "mlflow-team.opendatahub.svc"}},
		"[mlflow-17] plain": {"mlflow", platformInputs["plain"], map[string]any{"insecureSkipVerify": true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := withName(mlflowtest.MLflow(), c.name)
			monitor := mlflowtest.Object(buildObjects(t, m, c.in), "ServiceMonitor", Suffixed("mlflow-metrics-monitor", m))
			endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
			if err != nil {
				t.Fatal(err)
			}
			want := []any{map[string]any{"path": "/metrics", "port": "https", "scheme": "https", "tlsConfig": c.want}}
			if diff := cmp.Diff(want, endpoints); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			if selector["app"] != NameOf(m) {
				t.Errorf("the ServiceMonitor selects %v, want app=%s", selector, NameOf(m))
			}
		})
	}
}

// The egress rules allow the ports of the URIs in the spec.
func TestPortsOfURIs(t *testing.T) {
	for uri, want := range map[string][]int32{
		"postgresql://u:p%40w@db.example.com:6432/mlflow":          {6432},
		"postgresql+psycopg2://u:p:1@a:6432,b:6433,c/mlflow?x=1:2": {6432, 6433},
		"postgresql:///mlflow?host=db.example.com&port=6432":       {6432},
		"postgresql:///mlflow?host=a:6432&host=b%3A6433":           {6432, 6433},
		"mysql://u@[fd00::1]:3307/db":                              {3307},
		"mysql://u@[fd00::1]/db":                                   nil,
		"postgresql://db.example.com/mlflow":                       nil,
		"http://rgw.rook-ceph":                                     {80},
		"HTTP://rgw.rook-ceph:8080/x":                              {8080},
		"https://s3.example.com":                                   nil,
		"sqlite:////mlflow/mlflow.db":                              nil,
		"postgresql://db:0/x":                                      nil,
		"postgresql://db:65536/x":                                  nil,
		"not a URI":                                                nil,
		"":                                                         nil,
	} {
		if diff := cmp.Diff(want, portsOf(uri)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", uri, diff)
		}
	}
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.BackendStoreURI, s.RegistryStoreURI = "postgresql://u@pgbouncer:6432/a", "mysql://u@db:3306/b"
		s.Env = []corev1.EnvVar{
			{Name: "MLFLOW_S3_ENDPOINT_URL", Value: "http://rgw.rook-ceph"}, {Name: "HTTPS_PROXY", Value: "http://u:p@proxy.example.com:3128"},
			{Name: "PGPORT", Value: "5433"}, {Name: "OTHER", Value: "5434"},
		}
	})
	server := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow")
	if diff := cmp.Diff([]rule{tcp(80, 3128, 5433, 6432)}, server.Spec.Egress[5:]); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	migration := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow-migration")
	if diff := cmp.Diff([]rule{tcp(5433, 6432)}, migration.Spec.Egress[2:]); diff != "" {
		t.Errorf("migration (-want +got):\n%s", diff)
	}
}
