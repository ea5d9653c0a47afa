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
	"k8s.io/apimachinery/pkg/types"
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

var errCall = errors.New("injected error")

// failAt makes the n-th read or write request fail. It returns the counter of requests.
func (env *testEnv) failAt(n int) (calls *int) {
	calls = new(int)
	count := func() error {
		if *calls++; *calls == n {
			return errCall
		}
		return nil
	}
	env.readError, env.fail = count, func(string, string) error { return count() }
	return calls
}

func (env *testEnv) clearFaults() { env.readError, env.fail = func() error { return nil }, nil }

// admit sets condition Admitted of the Route with TLS to True.
func (env *testEnv) admit(m *v1beta1.ModelRegistry) {
	env.Helper()
	route := newUnstructured(capability.Route)
	if !env.get(route, m.Namespace, resources.SecureRouteName(m)) {
		env.Fatal("the Route does not exist")
	}
	env.requireNoError(unstructured.SetNestedSlice(route.Object, []any{map[string]any{
		"conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
	}}, "status", "ingress"))
	env.requireNoError(env.server.Update(env.Context(), route))
}

// distinctWrites returns the sorted distinct writes.
func distinctWrites(writes string) []string {
	all := strings.Split(writes, "\n")
	slices.Sort(all)
	return slices.Compact(all)
}

// [modelregistry-100] [modelregistry-102] If any request of the first reconcile fails, the reconcile returns and reports the error and sets
// nothing available. A retry creates the same objects without a second password.
func TestFaultAtEveryCall(t *testing.T) { testFaultAtEveryCall(t, newTestEnv) }

func testFaultAtEveryCall(t *testing.T, newEnv newEnvFunc) {
	fakeapi.Exhaustive(t)
	for name, test := range map[string]struct {
		served []schema.GroupVersionKind
		change func(*v1beta1.ModelRegistrySpec)
	}{"generated on Kubernetes": {nil, withGeneratedDatabase}, "generated with TLS and backups": {nil, withBackups}, "external on OpenShift": {optionalKinds, registrytest.AddProxy}} {
		t.Run(name, func(t *testing.T) {
			reconcileWithFault := func(n int) (env *testEnv, m *v1beta1.ModelRegistry, calls *int, err error) {
				env = newEnv(t, test.served)
				env.settings.Gateway.Domain = "gate.example.com"
				m = newRegistry("demo", test.change)
				calls = env.failAt(n)
				err = env.reconcile(m)
				env.clearFaults()
				return env, m, calls, err
			}
			healthy, m, calls, err := reconcileWithFault(0)
			healthy.requireWait(err, "available")
			want := distinctWrites(healthy.takeWrites())
			for n := 1; n <= *calls; n++ {
				env, interrupted, _, err := reconcileWithFault(n)
				available, _ := conditions.Get(interrupted.Status.Conditions, ConditionAvailable)
				if !errors.Is(err, errCall) || available.Status != metav1.ConditionFalse || !strings.Contains(available.Message, errCall.Error()) {
					t.Errorf("call %d: got error %v and message %q, want the injected error in both", n, err, available.Message)
				}
				writes := env.takeWrites()
				writes = strings.Trim(writes+"\n"+env.reconcileUntilIdle(interrupted), "\n")
				if diff := cmp.Diff(want, distinctWrites(writes)); diff != "" || strings.Count(writes, "create Secret demo-postgres-credentials") > 1 {
					t.Errorf("call %d: writes (-want +got):\n%s\nwant one password; all writes:\n%s", n, diff, writes)
				}
				env.setRunning(interrupted)
				if test.served != nil {
					env.admit(interrupted)
				}
				err = env.reconcile(interrupted)
				if wait, _ := reconciler.AsWait(err); wait != nil && (strings.Contains(wait.For, "certificate") || strings.Contains(wait.For, "Gateway")) {
					err = nil // the registry is available and waits only for the renewal of a certificate or the status of an HTTPRoute
				}
				if err != nil || reasonOf(interrupted, ConditionAvailable) != serving.ReasonAvailable {
					t.Errorf("call %d: got error %v and conditions %v, want available", n, err, interrupted.Status.Conditions)
				}
				if diff := cmp.Diff(m.Status.Hosts, interrupted.Status.Hosts); diff != "" {
					t.Errorf("call %d: hosts (-want +got):\n%s", n, diff)
				}
			}
		})
	}
}

// [D1] If any request of a deletion fails, a later reconcile deletes the objects without an owner reference and retains the data.
func TestFaultAtEveryCallOfADeletion(t *testing.T) { testFaultAtEveryCallOfADeletion(t, newTestEnv) }

func testFaultAtEveryCallOfADeletion(t *testing.T, newEnv newEnvFunc) {
	finalizeWithFault := func(n int) (env *testEnv, m *v1beta1.ModelRegistry, calls *int, err error) {
		env = newEnv(t, optionalKinds)
		env.settings.Gateway.Domain = "gate.example.com"
		m = newRegistry("demo", withGeneratedDatabase, registrytest.AddProxy)
		env.reconcileUntilIdle(m)
		env.requireWait(env.finalize(t.Context(), m), "status")
		calls = env.failAt(n)
		err = env.finalize(t.Context(), m)
		env.clearFaults()
		return env, m, calls, err
	}
	env, _, calls, err := finalizeWithFault(0)
	env.requireWait(err, "status")
	for n := 1; n <= *calls; n++ {
		env, m, _, err := finalizeWithFault(n)
		if !errors.Is(err, errCall) {
			t.Errorf("call %d: got error %v, want the injected error", n, err)
		}
		if c, _ := conditions.Get(m.Status.Conditions, ConditionDegraded); c.Status != metav1.ConditionUnknown {
			t.Errorf("call %d: got condition Degraded=%s with message %q, want Unknown", n, c.Status, c.Message)
		}
		env.requireWait(env.finalize(t.Context(), m), "status")
		env.requireNoError(env.finalize(t.Context(), m))
		for kind, key := range map[schema.GroupVersionKind]types.NamespacedName{
			servers.ClusterRoleBinding: {Name: "demo-auth-delegator"}, capability.HTTPRoute: {Namespace: "routes", Name: "model-registry-demo"}, capability.UserGroup: {Name: "demo-users"},
		} {
			if env.get(newUnstructured(kind), key.Namespace, key.Name) {
				t.Errorf("call %d: %s %s was not deleted", n, kind.Kind, key.Name)
			}
		}
		if !env.get(newUnstructured(servers.Claim), "ns", "demo-postgres-storage") || !env.get(newUnstructured(servers.Secret), "ns", "demo-postgres-credentials") {
			t.Errorf("call %d: the claim or the Secret was deleted", n)
		}
	}
}

// randomRegistry is a random spec, with the APIs and the gateway domain of its cluster.
type randomRegistry struct {
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

var drawRegistry = rapid.Custom(func(t *rapid.T) randomRegistry {
	var d randomRegistry
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
		d.spec.OAuthProxy = drawProxy.Draw(t, "oauthProxy")
	case 1, 2:
		d.spec.KubeRBACProxy = drawProxy.Draw(t, "kubeRBACProxy")
	}
	for _, kind := range optionalKinds {
		if rapid.Bool().Draw(t, kind.Kind) {
			d.served = append(d.served, kind)
		}
	}
	d.gateway = rapid.SampledFrom([]string{"", "gate.example.com"}).Draw(t, "gateway")
	return d
})

// [modelregistry-101] Any spec in any cluster is applied in one reconcile, or in two if fields are migrated. The next reconcile writes
// nothing, and the hosts are valid addresses.
func TestReconcileConverges(t *testing.T) {
	for seed := range 40 {
		d := drawRegistry.Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { *s = *d.spec.DeepCopy() })
			env := newTestEnv(t, d.served, m.DeepCopy())
			env.settings.Gateway.Domain = d.gateway
			env.get(m, "ns", "demo")
			openShift := env.served().Has(capability.Route)
			if d.spec.OAuthProxy != nil || openShift && d.spec.KubeRBACProxy == nil {
				env.requireWait(env.reconcile(m), "changed spec")
				if got := env.takeWrites(); strings.Count(got, "\n") > 0 || !strings.HasPrefix(got, "patch ") {
					t.Errorf("the migration of fields wrote\n%s", got)
				}
			}
			env.reconcileUntilIdle(m)
			if openShift && m.Spec.KubeRBACProxy == nil || m.Spec.OAuthProxy != nil {
				t.Errorf("got kubeRBACProxy %+v and oauthProxy %+v", m.Spec.KubeRBACProxy, m.Spec.OAuthProxy)
			}
			hosts := slices.Clone(m.Status.Hosts)
			slices.Sort(hosts)
			if len(slices.Compact(hosts)) != len(m.Status.Hosts) || m.Status.Hosts[len(m.Status.Hosts)-1] != "demo" {
				t.Errorf("hosts %v", m.Status.Hosts)
			}
			for _, host := range hosts {
				if strings.HasSuffix(host, ".") || strings.HasPrefix(host, "/") || strings.Contains(host, "rest.:") {
					t.Errorf("host %q is not a valid address", host)
				}
			}
		})
	}
}
