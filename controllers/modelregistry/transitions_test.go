package modelregistry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// reconcileUntilIdle requires that one reconcile applies all objects and waits for the server, and that the next one writes nothing. It returns
// the writes of the first one.
func (env *testEnv) reconcileUntilIdle(m *v1beta1.ModelRegistry) string {
	env.Helper()
	env.requireWait(env.reconcile(m), "available")
	writes := env.takeWrites()
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "" {
		env.Errorf("in steady state, wrote\n%s", got)
	}
	return writes
}

// addressOf returns the database address in the Deployment of the server.
func (env *testEnv) addressOf(m *v1beta1.ModelRegistry) string {
	env.Helper()
	d := &appsv1.Deployment{}
	if !env.get(d, m.Namespace, m.Name) {
		env.Fatalf("Deployment %s does not exist", m.Name)
	}
	variables := d.Spec.Template.Spec.Containers[0].Env
	return variables[slices.IndexFunc(variables, func(e corev1.EnvVar) bool { return e.Name == resources.EnvDSN })].Value
}

// collectGarbage deletes the owned objects of a registry, like the garbage collector.
func (env *testEnv) collectGarbage(uid types.UID) {
	env.Helper()
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
		&corev1.PersistentVolumeClaimList{}, &networkingv1.NetworkPolicyList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		env.requireNoError(env.server.List(env.Context(), list))
		env.requireNoError(meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			if owner := metav1.GetControllerOf(o); owner == nil || owner.UID != uid {
				return nil
			}
			return env.server.Delete(env.Context(), o)
		}))
	}
}

// A registry changes from a generated database to an external PostgreSQL, to MySQL, and back. The generated database keeps its password.
func TestSwitchesBetweenDatabases(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.reconcileUntilIdle(m)
	const generated = "postgresql://modelregistry:$(POSTGRES_PASSWORD)@demo-postgres:5432/model_registry"
	if got := env.addressOf(m); got != generated {
		t.Errorf("got address %s, want %s", got, generated)
	}
	secret := &corev1.Secret{}
	env.get(secret, "ns", "demo-postgres-credentials")
	password, version := string(secret.Data["password"]), secret.ResourceVersion

	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	if got := env.reconcileUntilIdle(m); got != "apply Deployment demo" {
		t.Errorf("wrote\n%s", got)
	}
	if got := env.addressOf(m); !strings.Contains(got, "@pg.data.svc:5432/models") || reasonOf(m, ConditionUnusedDatabase) != ReasonKept {
		t.Errorf("address %s, %v", got, m.Status.Conditions)
	}
	for name, o := range map[string]client.Object{
		"demo-postgres": &appsv1.Deployment{}, "demo-postgres-storage": &corev1.PersistentVolumeClaim{}, "demo-postgres-credentials": &corev1.Secret{},
	} {
		if !env.get(o, "ns", name) {
			t.Errorf("%T %s was deleted", o, name)
		}
	}
	registrytest.MySQL(&m.Spec)
	env.reconcileUntilIdle(m)
	if got := env.addressOf(m); got != "registry:$(MYSQL_PASSWORD)@tcp(mysql.data.svc:3306)/models?charset=utf8mb4" {
		t.Errorf("address %s", got)
	}

	withGeneratedDatabase(&m.Spec)
	m.Spec.MySQL = nil
	env.reconcileUntilIdle(m)
	env.get(secret, "ns", "demo-postgres-credentials")
	if got := env.addressOf(m); got != generated || reasonOf(m, ConditionUnusedDatabase) != "" || string(secret.Data["password"]) != password || secret.ResourceVersion != version {
		t.Errorf("address %s, %v, the Secret was written %t", got, m.Status.Conditions, secret.ResourceVersion != version)
	}
}

// The names of user and database are set at creation. Later changes of the spec do not affect the connection.
func TestDatabaseNamesAreImmutable(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	m.Spec.Postgres.Database, m.Spec.Postgres.Username = "models", "ann"
	env.reconcileUntilIdle(m)
	const want = "postgresql://ann:$(POSTGRES_PASSWORD)@demo-postgres:5432/models"
	for _, names := range []struct{ user, database string }{{"ann", "models"}, {"bob", "other"}, {"", ""}, {"not valid", "x-y"}} {
		m.Spec.Postgres.Username, m.Spec.Postgres.Database = names.user, names.database
		env.requireWait(env.reconcile(m), "available")
		if got := env.addressOf(m); got != want {
			t.Errorf("%+v: got address %s, want %s", names, got, want)
		}
		d := &appsv1.Deployment{}
		env.get(d, "ns", "demo-postgres")
		if got := d.Spec.Template.Spec.Containers[0].Env[0].Value; got != "models" {
			t.Errorf("%+v: got database %s, want models", names, got)
		}
	}
}

// On plain Kubernetes a proxy is added, removed with all its objects, and added again.
func TestAddsAndRemovesProxy(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.AddProxy)
	proxyObjects := map[string]client.Object{
		"demo-kube-rbac-proxy-config": &corev1.ConfigMap{}, "demo-ingress": &networkingv1.NetworkPolicy{}, "demo-auth-delegator": &rbacv1.ClusterRoleBinding{},
	}
	expect := func(exists bool, port string, number int32) {
		t.Helper()
		for name, o := range proxyObjects {
			namespace := "ns"
			if name == "demo-auth-delegator" {
				namespace = ""
			}
			if got := env.get(o, namespace, name); got != exists {
				t.Errorf("%T %s exists: %t, want %t", o, name, got, exists)
			}
		}
		service, d := &corev1.Service{}, &appsv1.Deployment{}
		env.get(service, "ns", "demo")
		env.get(d, "ns", "demo")
		if p := service.Spec.Ports; len(p) != 1 || p[0].Name != port || p[0].Port != number {
			t.Errorf("ports %+v", p)
		}
		pod := d.Spec.Template.Spec
		if len(pod.Containers) > 1 != exists || *pod.AutomountServiceAccountToken != exists || len(pod.Volumes) > 0 != exists {
			t.Errorf("pod %+v", pod)
		}
		if reasonOf(m, ConditionProxy) != "" != exists {
			t.Errorf("conditions %v", m.Status.Conditions)
		}
	}
	env.reconcileUntilIdle(m)
	expect(true, "https-api", 8443)
	m.Spec.KubeRBACProxy = nil
	env.reconcileUntilIdle(m)
	expect(false, "http-api", 8080)
	registrytest.AddProxy(&m.Spec)
	m.Spec.KubeRBACProxy.Port = new(int32(9443))
	env.reconcileUntilIdle(m)
	expect(true, "https-api", 9443)
}

// listExposure returns the Routes, HTTPRoutes and ReferenceGrants of all namespaces.
func (env *testEnv) listExposure() []string {
	env.Helper()
	var all []string
	for _, kind := range []string{"Route", "HTTPRoute", "ReferenceGrant"} {
		for _, gvk := range optionalKinds {
			if gvk.Kind != kind {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
			env.requireNoError(env.server.List(env.Context(), list))
			for i := range list.Items {
				all = append(all, kind+" "+list.Items[i].Namespace+"/"+list.Items[i].Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// [modelregistry-39] [modelregistry-40] D25, D26: spec and settings determine the exposure of a registry in every step, and no object of an
// earlier step remains.
func TestExposureFollowsSpecAndSettings(t *testing.T) {
	env := newTestEnv(t, optionalKinds)
	m := newRegistry("demo", registrytest.AddProxy)
	const secureRoute, plainRoute = "Route ns/demo-https", "Route ns/demo-http"
	httpRoute := func(namespace string) string { return "HTTPRoute " + namespace + "/model-registry-demo" }
	const grant = "ReferenceGrant ns/allow-gateway-httproutes-demo"
	for _, step := range []struct {
		name   string
		change func()
		want   []string
		host   string
	}{
		{"created", func() {}, []string{secureRoute}, "demo-rest.apps.example.com"},
		{"gateway enabled", func() { env.settings.Gateway.Domain = "gate.example.com" }, []string{httpRoute("routes"), grant, secureRoute}, "gate.example.com/model-registry/demo"},
		{"HTTPRoutes in another namespace", func() { env.settings.Gateway.RouteNamespace = "other" }, []string{httpRoute("other"), grant, secureRoute}, "gate.example.com/model-registry/demo"},
		{"Route of the proxy disabled", func() { m.Spec.KubeRBACProxy.ServiceRoute = v1beta1.RouteDisabled }, []string{httpRoute("other"), grant}, "gate.example.com/model-registry/demo"},
		{"Route of the server enabled", func() { m.Spec.Rest.ServiceRoute = v1beta1.RouteEnabled }, []string{httpRoute("other"), grant, plainRoute}, "gate.example.com/model-registry/demo"},
		{"gateway disabled", func() { env.settings.Gateway.Domain = "" }, []string{plainRoute}, "demo.ns.svc.cluster.local"},
		{"both Routes", func() { m.Spec.KubeRBACProxy.ServiceRoute = v1beta1.RouteEnabled }, []string{plainRoute, secureRoute}, "demo-rest.apps.example.com"},
		{"another domain", func() { m.Spec.KubeRBACProxy.Domain = "models.example.com" }, []string{plainRoute, secureRoute}, "demo-rest.models.example.com"},
		{"Route of the server disabled", func() { m.Spec.Rest.ServiceRoute = v1beta1.RouteDisabled }, []string{secureRoute}, "demo-rest.models.example.com"},
	} {
		step.change()
		env.reconcileUntilIdle(m)
		if diff := cmp.Diff(step.want, env.listExposure()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if m.Status.Hosts[0] != step.host || m.Status.HostsStr != strings.Join(m.Status.Hosts, ",") {
			t.Errorf("%s: hosts %v", step.name, m.Status.Hosts)
		}
		policy := &networkingv1.NetworkPolicy{}
		if got, want := env.get(policy, "ns", "demo-https-route"), slices.Contains(step.want, secureRoute); got != want {
			t.Errorf("%s: the NetworkPolicy of the Route exists: %t, want %t", step.name, got, want)
		}
		guard := &networkingv1.NetworkPolicy{}
		if !env.get(guard, "ns", "demo-ingress") || len(guard.Spec.Ingress) > 0 == slices.Contains(step.want, secureRoute) {
			t.Errorf("%s: unexpected NetworkPolicy %+v", step.name, guard.Spec)
		}
	}
	if route := newUnstructured(capability.Route); !env.get(route, "ns", "demo-https") || route.Object["spec"].(map[string]any)["host"] != "demo-rest.models.example.com" {
		t.Errorf("Route %v", route.Object["spec"])
	}
}

// A certificate of the user replaces the one of the platform, which is requested again when the certificate of the user is removed.
func TestSwitchesBetweenCertificates(t *testing.T) {
	env := newTestEnv(t, optionalKinds)
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	for _, userProvided := range []bool{false, true, false} {
		m.Spec.KubeRBACProxy.TLSCertificateSecret, m.Spec.KubeRBACProxy.TLSKeySecret = nil, nil
		want := []string{"demo-kube-rbac-proxy", "demo-kube-rbac-proxy"}
		if userProvided {
			m.Spec.KubeRBACProxy.TLSCertificateSecret, m.Spec.KubeRBACProxy.TLSKeySecret = registrytest.Secret("cert", "c.pem"), registrytest.Secret("key", "k.pem")
			want = []string{"cert", "key"}
		}
		env.reconcileUntilIdle(m)
		service, d := &corev1.Service{}, &appsv1.Deployment{}
		env.get(service, "ns", "demo")
		env.get(d, "ns", "demo")
		if request := service.Annotations[servers.AnnotationServingCert]; (request == "demo-kube-rbac-proxy") == userProvided || (request != "") == userProvided {
			t.Errorf("user-provided %t: the Service requests Secret %q", userProvided, request)
		}
		var got []string
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				got = append(got, v.Secret.SecretName)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("user-provided %t: volumes (-want +got):\n%s", userProvided, diff)
		}
	}
}

// A recreated registry uses retained data; with policy Delete it starts without data.
func TestRecreatedRegistryUsesRetainedData(t *testing.T) {
	for policy, kept := range map[v1beta1.RetentionPolicy]bool{"": true, v1beta1.RetainData: true, v1beta1.DeleteData: false} {
		t.Run(string(policy), func(t *testing.T) {
			env := newTestEnv(t, nil)
			first := newRegistry("demo", withGeneratedDatabase, registrytest.AddProxy, withGeneratedDatabase)
			first.Spec.Postgres.RetentionPolicy, first.Spec.Postgres.Database = policy, "models"
			env.reconcileUntilIdle(first)
			before := &corev1.Secret{}
			env.get(before, "ns", "demo-postgres-credentials")
			env.requireWait(env.finalize(t.Context(), first), "status")
			env.requireWait(env.finalize(t.Context(), first), "status")
			env.requireNoError(env.finalize(t.Context(), first))
			env.collectGarbage(first.UID)
			env.forget(first.UID)
			if got := env.get(&corev1.PersistentVolumeClaim{}, "ns", "demo-postgres-storage"); got != kept {
				t.Errorf("the claim exists: %t, want %t", got, kept)
			}
			if env.get(&rbacv1.ClusterRoleBinding{}, "", "demo-auth-delegator") {
				t.Error("the ClusterRoleBinding of the deleted registry exists")
			}

			second := newRegistry("demo", registrytest.AddProxy, withGeneratedDatabase)
			second.UID = "second"
			second.Spec.Postgres.RetentionPolicy = policy
			env.reconcileUntilIdle(second)
			after := &corev1.Secret{}
			env.get(after, "ns", "demo-postgres-credentials")
			if same := string(after.Data["password"]) == string(before.Data["password"]); same != kept {
				t.Errorf("the password is unchanged: %t, want %t", same, kept)
			}
			if address := env.addressOf(second); strings.HasSuffix(address, "/models") != kept {
				t.Errorf("address %s", address)
			}
			if owned := metav1.IsControlledBy(after, second); owned == kept {
				t.Errorf("owners %v", after.OwnerReferences)
			}
		})
	}
}

// A change of the retention policy of an existing database takes effect in both directions.
func TestRetentionPolicyCanChange(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	for _, policy := range []v1beta1.RetentionPolicy{v1beta1.RetainData, v1beta1.DeleteData, v1beta1.RetainData, v1beta1.DeleteData, ""} {
		m.Spec.Postgres.RetentionPolicy = policy
		env.reconcileUntilIdle(m)
		for name, o := range map[string]client.Object{"demo-postgres-storage": &corev1.PersistentVolumeClaim{}, "demo-postgres-credentials": &corev1.Secret{}} {
			if !env.get(o, "ns", name) || metav1.IsControlledBy(o, m) != (policy == v1beta1.DeleteData) {
				t.Errorf("%q: %s has owner references %v", policy, name, o.GetOwnerReferences())
			}
		}
	}
}
