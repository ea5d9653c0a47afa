package modelregistry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

var errCall = errors.New("the server is on fire")

// failAt fails the n-th request, read or write, and counts requests.
func (w *testEnv) failAt(n int) (calls *int) {
	calls = new(int)
	count := func() error {
		if *calls++; *calls == n {
			return errCall
		}
		return nil
	}
	w.readError, w.fail = count, func(string, string) error { return count() }
	return calls
}

func (w *testEnv) clearFaults() { w.readError, w.fail = func() error { return nil }, nil }

// admit sets Route N-https admitted.
func (w *testEnv) admit(m *v1beta1.ModelRegistry) {
	w.Helper()
	route := wholeObject(capability.Route)
	if !w.get(route, m.Namespace, resources.SecureRouteName(m)) {
		w.Fatal("no Route")
	}
	w.requireNoError(unstructured.SetNestedSlice(route.Object, []any{map[string]any{
		"conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
	}}, "status", "ingress"))
	w.requireNoError(w.server.Update(w.Context(), route))
}

// distinctWrites returns the sorted distinct writes.
func distinctWrites(writes string) []string {
	all := strings.Split(writes, "\n")
	slices.Sort(all)
	return slices.Compact(all)
}

// [modelregistry-100] [modelregistry-102] If any request of the first reconcile fails, the reconcile returns and reports the error and sets
// nothing available. A retry creates the same objects without a second password.
func TestFaultAtEveryCall(t *testing.T) {
	fakeapi.Exhaustive(t)
	for name, c := range map[string]struct {
		served []schema.GroupVersionKind
		change func(*v1beta1.ModelRegistrySpec)
	}{"generated on Kubernetes": {nil, withGeneratedDatabase}, "generated with everything": {nil, withBackups}, "external on OpenShift": {everything, registrytest.Proxied}} {
		t.Run(name, func(t *testing.T) {
			begin := func(n int) (w *testEnv, m *v1beta1.ModelRegistry, calls *int, err error) {
				w = newTestEnv(t, c.served)
				w.settings.Gateway.Domain = "gate.example.com"
				m = newRegistry("demo", c.change)
				calls = w.failAt(n)
				err = w.reconcile(m)
				w.clearFaults()
				return w, m, calls, err
			}
			whole, m, calls, err := begin(0)
			whole.requireWait(err, "available")
			want := distinctWrites(whole.takeWrites())
			for n := 1; n <= *calls; n++ {
				w, broken, _, err := begin(n)
				reported, _ := conditions.Get(broken.Status.Conditions, ConditionAvailable)
				if !errors.Is(err, errCall) || reported.Status != metav1.ConditionFalse || !strings.Contains(reported.Message, errCall.Error()) {
					t.Errorf("call %d: ended with %v and reports %q", n, err, reported.Message)
				}
				first := w.takeWrites()
				if diff := cmp.Diff(want, distinctWrites(strings.Trim(first+"\n"+w.reconcileOnce(broken), "\n"))); diff != "" {
					t.Errorf("call %d: writes (-want +got):\n%s", n, diff)
				}
				w.setRunning(broken)
				if c.served != nil {
					w.admit(broken)
				}
				err = w.reconcile(broken)
				if wait, _ := reconciler.AsWait(err); wait != nil && (strings.Contains(wait.For, "certificate") || strings.Contains(wait.For, "Gateway")) {
					err = nil // which the one of the database, and the answer of a Gateway, have ahead of them
				}
				if err != nil || reasonOf(broken, ConditionAvailable) != serving.ReasonAvailable {
					t.Errorf("call %d: %v, %v", n, err, broken.Status.Conditions)
				}
				if diff := cmp.Diff(m.Status.Hosts, broken.Status.Hosts); diff != "" {
					t.Errorf("call %d: hosts (-want +got):\n%s", n, diff)
				}
			}
		})
	}
}

// [D1] If any request of a deletion fails, the registry remains until its cluster-scoped objects are deleted, and retained data is retained.
func TestFaultAtEveryCallOfADeletion(t *testing.T) {
	begin := func(n int) (w *testEnv, m *v1beta1.ModelRegistry, calls *int, err error) {
		w = newTestEnv(t, everything)
		w.settings.Gateway.Domain = "gate.example.com"
		m = newRegistry("demo", withGeneratedDatabase, registrytest.Proxied)
		w.reconcileOnce(m)
		w.requireWait(w.finalize(t.Context(), m), "status")
		calls = w.failAt(n)
		err = w.finalize(t.Context(), m)
		w.clearFaults()
		return w, m, calls, err
	}
	w, _, calls, err := begin(0)
	w.requireWait(err, "status")
	for n := 1; n <= *calls; n++ {
		w, m, _, err := begin(n)
		if !errors.Is(err, errCall) {
			t.Errorf("call %d: ended with %v", n, err)
		}
		if c, _ := conditions.Get(m.Status.Conditions, ConditionDegraded); c.Status != metav1.ConditionUnknown {
			t.Errorf("call %d: it says %q", n, c.Message)
		}
		w.requireWait(w.finalize(t.Context(), m), "status")
		w.requireNoError(w.finalize(t.Context(), m))
		for kind, place := range map[schema.GroupVersionKind][2]string{
			servers.ClusterRoleBinding: {"", "demo-auth-delegator"}, capability.HTTPRoute: {"routes", "model-registry-demo"}, capability.UserGroup: {"", "demo-users"},
		} {
			if w.get(wholeObject(kind), place[0], place[1]) {
				t.Errorf("call %d: %s %s is left", n, kind.Kind, place[1])
			}
		}
		if !w.get(wholeObject(servers.Claim), "ns", "demo-postgres-storage") || !w.get(wholeObject(servers.Secret), "ns", "demo-postgres-credentials") {
			t.Errorf("call %d: data is lost", n)
		}
	}
}

// drawn is a random registry that the schema accepts, and its cluster.
type drawn struct {
	spec    v1beta1.ModelRegistrySpec
	served  []schema.GroupVersionKind
	gateway string
}

func drawSecret(t *rapid.T, name string) *v1beta1.SecretKeyValue {
	if !rapid.Bool().Draw(t, name) {
		return nil
	}
	return registrytest.Secret(name, rapid.SampledFrom([]string{"tls.crt", "a.pem", "password"}).Draw(t, name+" key"))
}

func drawConfigMap(t *rapid.T, name string) *v1beta1.ConfigMapKeyValue {
	if !rapid.Bool().Draw(t, name) {
		return nil
	}
	return registrytest.ConfigMap(name, "ca.crt")
}

var drawProxy = rapid.Custom(func(t *rapid.T) *v1beta1.ProxyConfig {
	p := &v1beta1.ProxyConfig{
		ServiceRoute: rapid.SampledFrom([]v1beta1.ServiceRoute{"", v1beta1.RouteEnabled, v1beta1.RouteDisabled}).Draw(t, "route"),
		Domain:       rapid.SampledFrom([]string{"", "models.example.com"}).Draw(t, "domain"),
		Image:        rapid.SampledFrom([]string{"", "proxy:2"}).Draw(t, "image"),
		Port:         rapid.SampledFrom([]*int32{nil, new(int32(8443)), new(int32(9443))}).Draw(t, "port"),
	}
	if rapid.Bool().Draw(t, "own certificate") {
		p.TLSCertificateSecret, p.TLSKeySecret = registrytest.Secret("cert", "c.pem"), registrytest.Secret("key", "k.pem")
	}
	return p
})

var drawPostgres = rapid.Custom(func(t *rapid.T) *v1beta1.PostgresConfig {
	p := &v1beta1.PostgresConfig{
		Username: rapid.SampledFrom([]string{"", "ann", "b_2"}).Draw(t, "user"), Database: rapid.SampledFrom([]string{"", "models"}).Draw(t, "database"),
		SSLMode:              rapid.SampledFrom([]v1beta1.SSLMode{"", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"}).Draw(t, "mode"),
		PasswordSecret:       drawSecret(t, "login"),
		SSLCertificateSecret: drawSecret(t, "client-cert"), SSLKeySecret: drawSecret(t, "client-key"), SSLPasswordSecret: drawSecret(t, "passphrase"),
		SSLRootCertificateSecret: drawSecret(t, "root"), SSLRootCertificateConfigMap: drawConfigMap(t, "root-map"),
	}
	if rapid.Bool().Draw(t, "generated") {
		p.GenerateDeployment = new(true)
		p.RetentionPolicy = rapid.SampledFrom([]v1beta1.RetentionPolicy{"", v1beta1.RetainData, v1beta1.DeleteData}).Draw(t, "policy")
		return p
	}
	p.Host = rapid.SampledFrom([]string{"pg", "pg.data.svc", "192.0.2.1", "2001:db8::1", "[2001:db8::1]"}).Draw(t, "host")
	return p
})

var drawMySQL = rapid.Custom(func(t *rapid.T) *v1beta1.MySQLConfig {
	return &v1beta1.MySQLConfig{
		Host: "my", Username: "u", Database: "d", PasswordSecret: drawSecret(t, "login"),
		SSLCertificateSecret: drawSecret(t, "client-cert"), SSLKeySecret: drawSecret(t, "client-key"),
		SSLRootCertificateSecret: drawSecret(t, "root"), SSLRootCertificateConfigMap: drawConfigMap(t, "root-map"),
		SSLRootCertificatesSecretName:    rapid.SampledFrom([]string{"", "roots"}).Draw(t, "roots"),
		SSLRootCertificatesConfigMapName: rapid.SampledFrom([]string{"", "roots-map"}).Draw(t, "roots-map"),
		VerifyServerCert:                 rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "verify"),
	}
})

var drawRegistry = rapid.Custom(func(t *rapid.T) drawn {
	var d drawn
	d.spec.Rest.ServiceRoute = rapid.SampledFrom([]v1beta1.ServiceRoute{v1beta1.RouteDisabled, v1beta1.RouteEnabled}).Draw(t, "rest route")
	d.spec.Rest.Port = rapid.SampledFrom([]*int32{nil, new(int32(8081))}).Draw(t, "rest port")
	if rapid.Bool().Draw(t, "MySQL") {
		d.spec.MySQL = drawMySQL.Draw(t, "MySQL")
	}
	if d.spec.MySQL == nil || rapid.Bool().Draw(t, "both") {
		d.spec.Postgres = drawPostgres.Draw(t, "PostgreSQL")
	}
	switch rapid.IntRange(0, 3).Draw(t, "proxy") {
	case 0:
		d.spec.OAuthProxy = drawProxy.Draw(t, "older proxy")
	case 1, 2:
		d.spec.KubeRBACProxy = drawProxy.Draw(t, "newer proxy")
	}
	for _, kind := range everything {
		if rapid.Bool().Draw(t, kind.Kind) {
			d.served = append(d.served, kind)
		}
	}
	d.gateway = rapid.SampledFrom([]string{"", "gate.example.com"}).Draw(t, "gateway")
	return d
})

// [modelregistry-101] Any spec in any cluster is applied in one reconcile, or two with a migration of fields; the next reconcile writes
// nothing, and hosts are valid addresses.
func TestReconcileConverges(t *testing.T) {
	for seed := range 40 {
		d := drawRegistry.Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { *s = *d.spec.DeepCopy() })
			w := newTestEnv(t, d.served, m.DeepCopy())
			w.settings.Gateway.Domain = d.gateway
			w.get(m, "ns", "demo")
			openShift := w.served().Has(capability.Route)
			if d.spec.OAuthProxy != nil || openShift && d.spec.KubeRBACProxy == nil {
				w.requireWait(w.reconcile(m), "changed spec")
				if got := w.takeWrites(); strings.Count(got, "\n") > 0 || !strings.HasPrefix(got, "patch ") {
					t.Errorf("moving fields wrote\n%s", got)
				}
			}
			w.reconcileOnce(m)
			if openShift && m.Spec.KubeRBACProxy == nil || m.Spec.OAuthProxy != nil {
				t.Errorf("proxies %+v, %+v", m.Spec.KubeRBACProxy, m.Spec.OAuthProxy)
			}
			hosts := slices.Clone(m.Status.Hosts)
			slices.Sort(hosts)
			if len(slices.Compact(hosts)) != len(m.Status.Hosts) || m.Status.Hosts[len(m.Status.Hosts)-1] != "demo" {
				t.Errorf("hosts %v", m.Status.Hosts)
			}
			for _, host := range hosts {
				if strings.HasSuffix(host, ".") || strings.HasPrefix(host, "/") || strings.Contains(host, "rest.:") {
					t.Errorf("host %q leads nowhere", host)
				}
			}
		})
	}
}
