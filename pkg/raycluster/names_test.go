package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// clusterOf parses a cluster from YAML.
func clusterOf(t testing.TB, content string) Cluster {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// [raycluster-8] [raycluster-11]
func TestNames(t *testing.T) {
	for name, test := range map[string]struct {
		cluster string
		want    Names
	}{
		"hashed, even for an empty version": {
			"metadata: {name: test-raycluster, namespace: test-namespace, annotations: {ray.openshift.ai/version: ''}}",
			Names{
				ServiceAccount: "test-raycluster-oauth-proxy-ecaffa62", TokenSecret: "test-raycluster-oauth-token-a0d16efd",
				ProxyService: "test-raycluster-oauth-c845f575", CookieSecret: "test-raycluster-oauth-config-01e408a7",
				ProxyConfig: "test-raycluster-proxy-config-09fb771a",
				ProxyTLS:    "test-raycluster-proxy-tls-secret-3e5a0266", CASecret: "test-raycluster-ca-secret-001432aa",
				HeadTLS: "test-raycluster-head-tls-dfb576f6", WorkerTLS: "test-raycluster-worker-tls-d34153ff",
				ClusterRoleBinding: "test-raycluster-test-namespace-auth-b561edfa",
				HeadPolicy:         "test-raycluster-head-facfaeff", WorkerPolicy: "test-raycluster-workers-9327ac2a",
				Dashboard: "ray-dashboard-test-raycluster", Client: "rayclient-test-raycluster", HeadService: "test-raycluster-head-svc",
			},
		},
		"legacy": {
			"metadata: {name: c, namespace: ns}",
			Names{
				ServiceAccount: "c-oauth-proxy", TokenSecret: "c-oauth-token", ProxyService: "c-oauth", CookieSecret: "c-oauth-config",
				ProxyConfig: "c-proxy-config", ProxyTLS: "c-proxy-tls-secret", CASecret: "ca-secret-c",
				HeadTLS: "c-head-tls", WorkerTLS: "c-worker-tls", ClusterRoleBinding: "c-ns-auth",
				HeadPolicy: "c-head", WorkerPolicy: "c-workers", Dashboard: "ray-dashboard-c", Client: "rayclient-c", HeadService: "c-head-svc",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, clusterOf(t, test.cluster).Names()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// [R20] The user may set the name of the head Service.
func TestHeadService(t *testing.T) {
	c := clusterOf(t, "metadata: {name: c, namespace: ns}\nspec: {headGroupSpec: {headService: {metadata: {name: mine}}}}")
	if c.Names().HeadService != "mine" || c.HeadDNSName() != "mine.ns.svc" {
		t.Errorf("got head Service %s and host %s, want mine and mine.ns.svc", c.Names().HeadService, c.HeadDNSName())
	}
	if c := clusterOf(t, "metadata: {name: c, namespace: ns}\nspec: {headGroupSpec: {headService: {metadata: {labels: {}}}}}"); c.HeadDNSName() != "c-head-svc.ns.svc" {
		t.Errorf("got host %s, want that of the default head Service", c.HeadDNSName())
	}
}

// [R19] Names that must be DNS labels are valid, and clients find the CA Secret by its prefix.
func TestNamesAreShortEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`)
		object := func(name string) Cluster {
			return View(map[string]any{"metadata": map[string]any{
				"name": name, "namespace": "n" + label.Draw(t, "namespace")[1:], "annotations": map[string]any{AnnotationVersion: "1"},
			}})
		}
		one, other := object(label.Draw(t, "one")), object(label.Draw(t, "other"))
		if problems := validation.IsDNS1035Label(one.Names().ProxyService); len(problems) > 0 {
			t.Fatalf("%s: unexpected problems: %v", one.Names().ProxyService, problems)
		}
		for _, host := range []string{one.DashboardHostLabel(), one.ClientHostLabel()} {
			if problems := validation.IsDNS1123Label(host); len(problems) > 0 {
				t.Fatalf("%s: unexpected problems: %v", host, problems)
			}
		}
		if !strings.HasPrefix(one.Names().CASecret, one.Name()+"-ca-secret-") {
			t.Fatalf("CA Secret %s does not begin with the name of the cluster", one.Names().CASecret)
		}
		if one.Name() != other.Name() && one.Names().ProxyService == other.Names().ProxyService {
			t.Fatalf("%s and %s share %s", one.Name(), other.Name(), one.Names().ProxyService)
		}
	})
	long := View(map[string]any{"metadata": map[string]any{"name": strings.Repeat("a", 49), "namespace": "n", "annotations": map[string]any{AnnotationVersion: "1"}}})
	if service := long.Names().ProxyService; len(service) != 63 || !strings.HasPrefix(service, strings.Repeat("a", 49)+"-oaut-") {
		t.Errorf("got Service %s, want a truncated name of 63 characters", service)
	}
}

func TestHostNames(t *testing.T) {
	c := clusterOf(t, "metadata: {name: demo, namespace: team1}")
	if c.DashboardHostLabel() != "ray-dashboard-demo-team1" || c.ClientHostLabel() != "rayclient-demo-team1" {
		t.Errorf("got hosts %s and %s", c.DashboardHostLabel(), c.ClientHostLabel())
	}
	// [raycluster-24]
	if c.ClientDNSName("") != "rayclient-demo-team1." || c.ClientDNSName("example.org") != "rayclient-demo-team1.example.org" {
		t.Errorf("got DNS names %s and %s", c.ClientDNSName(""), c.ClientDNSName("example.org"))
	}
}
