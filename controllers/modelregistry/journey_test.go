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

// reconcileOnce requires that one reconcile applies everything up to the server, and that the next one writes nothing.
func (w *testEnv) reconcileOnce(m *v1beta1.ModelRegistry) string {
	w.Helper()
	w.requireWait(w.reconcile(m), "available")
	wrote := w.takeWrites()
	w.requireWait(w.reconcile(m), "available")
	if again := w.takeWrites(); again != "" {
		w.Errorf("at rest it wrote\n%s", again)
	}
	return wrote
}

// addressOf returns the database address of the running server.
func (w *testEnv) addressOf(m *v1beta1.ModelRegistry) string {
	w.Helper()
	d := &appsv1.Deployment{}
	if !w.get(d, m.Namespace, m.Name) {
		w.Fatal("no Deployment")
	}
	variables := d.Spec.Template.Spec.Containers[0].Env
	return variables[slices.IndexFunc(variables, func(e corev1.EnvVar) bool { return e.Name == resources.EnvDSN })].Value
}

// collected deletes the owned objects of a registry, like the garbage collector.
func (w *testEnv) collected(uid types.UID) {
	w.Helper()
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
		&corev1.PersistentVolumeClaimList{}, &networkingv1.NetworkPolicyList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		w.requireNoError(w.server.List(w.Context(), list))
		w.requireNoError(meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			if owner := metav1.GetControllerOf(o); owner == nil || owner.UID != uid {
				return nil
			}
			return w.server.Delete(w.Context(), o)
		}))
	}
}

// A database is generated, then external, then generated again with its original password.
func TestJourneyOfTheDatabase(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	w.reconcileOnce(m)
	const own = "postgresql://modelregistry:$(POSTGRES_PASSWORD)@demo-postgres:5432/model_registry"
	if got := w.addressOf(m); got != own {
		t.Errorf("address %s", got)
	}
	secret := &corev1.Secret{}
	w.get(secret, "ns", "demo-postgres-credentials")
	password, version := string(secret.Data["password"]), secret.ResourceVersion

	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	if got := w.reconcileOnce(m); got != "apply Deployment demo" {
		t.Errorf("to another database: wrote\n%s", got)
	}
	if got := w.addressOf(m); !strings.Contains(got, "@pg.data.svc:5432/models") || reasonOf(m, ConditionUnusedDatabase) != ReasonKept {
		t.Errorf("address %s, %v", got, m.Status.Conditions)
	}
	for name, o := range map[string]client.Object{
		"demo-postgres": &appsv1.Deployment{}, "demo-postgres-storage": &corev1.PersistentVolumeClaim{}, "demo-postgres-credentials": &corev1.Secret{},
	} {
		if !w.get(o, "ns", name) {
			t.Errorf("%T %s is gone with its data", o, name)
		}
	}
	registrytest.MySQL(&m.Spec)
	w.reconcileOnce(m)
	if got := w.addressOf(m); got != "registry:$(MYSQL_PASSWORD)@tcp(mysql.data.svc:3306)/models?charset=utf8mb4" {
		t.Errorf("address %s", got)
	}

	withGeneratedDatabase(&m.Spec)
	m.Spec.MySQL = nil
	w.reconcileOnce(m)
	w.get(secret, "ns", "demo-postgres-credentials")
	if got := w.addressOf(m); got != own || reasonOf(m, ConditionUnusedDatabase) != "" || string(secret.Data["password"]) != password || secret.ResourceVersion != version {
		t.Errorf("address %s, %v, the Secret was written %t", got, m.Status.Conditions, secret.ResourceVersion != version)
	}
}

// User and database name are set at creation: later changes of the spec do not affect the connection.
func TestDatabaseNamesAreImmutable(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	m.Spec.Postgres.Database, m.Spec.Postgres.Username = "models", "ann"
	w.reconcileOnce(m)
	const want = "postgresql://ann:$(POSTGRES_PASSWORD)@demo-postgres:5432/models"
	for _, wish := range []struct{ user, database string }{{"ann", "models"}, {"bob", "other"}, {"", ""}, {"not valid", "x-y"}} {
		m.Spec.Postgres.Username, m.Spec.Postgres.Database = wish.user, wish.database
		w.requireWait(w.reconcile(m), "available")
		if got := w.addressOf(m); got != want {
			t.Errorf("%+v: address %s", wish, got)
		}
		d := &appsv1.Deployment{}
		w.get(d, "ns", "demo-postgres")
		if got := d.Spec.Template.Spec.Containers[0].Env[0].Value; got != "models" {
			t.Errorf("%+v: database %s", wish, got)
		}
	}
}

// On plain Kubernetes a proxy is created, removed with all its objects, and created again.
func TestJourneyOfTheProxy(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.Proxied)
	guarding := map[string]client.Object{
		"demo-kube-rbac-proxy-config": &corev1.ConfigMap{}, "demo-ingress": &networkingv1.NetworkPolicy{}, "demo-auth-delegator": &rbacv1.ClusterRoleBinding{},
	}
	check := func(exists bool, port string, number int32) {
		t.Helper()
		for name, o := range guarding {
			namespace := "ns"
			if name == "demo-auth-delegator" {
				namespace = ""
			}
			if got := w.get(o, namespace, name); got != exists {
				t.Errorf("%T %s is there: %t", o, name, got)
			}
		}
		service, d := &corev1.Service{}, &appsv1.Deployment{}
		w.get(service, "ns", "demo")
		w.get(d, "ns", "demo")
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
	w.reconcileOnce(m)
	check(true, "https-api", 8443)
	m.Spec.KubeRBACProxy = nil
	w.reconcileOnce(m)
	check(false, "http-api", 8080)
	registrytest.Proxied(&m.Spec)
	m.Spec.KubeRBACProxy.Port = new(int32(9443))
	w.reconcileOnce(m)
	check(true, "https-api", 9443)
}

// published lists the objects that expose a registry, in all namespaces.
func (w *testEnv) published() []string {
	w.Helper()
	var all []string
	for _, kind := range []string{"Route", "HTTPRoute", "ReferenceGrant"} {
		for _, gvk := range everything {
			if gvk.Kind != kind {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
			w.requireNoError(w.server.List(w.Context(), list))
			for i := range list.Items {
				all = append(all, kind+" "+list.Items[i].Namespace+"/"+list.Items[i].Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// [modelregistry-39] [modelregistry-40] D25, D26: the exposure of a registry follows spec and settings in every step, and no object of an
// earlier step remains.
func TestJourneyOfTheExposure(t *testing.T) {
	w := newTestEnv(t, everything)
	m := newRegistry("demo", registrytest.Proxied)
	const secure, plainOne = "Route ns/demo-https", "Route ns/demo-http"
	httpRoute := func(namespace string) string { return "HTTPRoute " + namespace + "/model-registry-demo" }
	const grant = "ReferenceGrant ns/allow-gateway-httproutes-demo"
	for _, step := range []struct {
		name   string
		change func()
		want   []string
		host   string
	}{
		{"as it is made", func() {}, []string{secure}, "demo-rest.apps.example.com"},
		{"gateway on", func() { w.settings.Gateway.Domain = "gate.example.com" }, []string{httpRoute("routes"), grant, secure}, "gate.example.com/model-registry/demo"},
		{"routes elsewhere", func() { w.settings.Gateway.RouteNamespace = "other" }, []string{httpRoute("other"), grant, secure}, "gate.example.com/model-registry/demo"},
		{"no Route", func() { m.Spec.KubeRBACProxy.ServiceRoute = v1beta1.RouteDisabled }, []string{httpRoute("other"), grant}, "gate.example.com/model-registry/demo"},
		{"a Route to the server", func() { m.Spec.Rest.ServiceRoute = v1beta1.RouteEnabled }, []string{httpRoute("other"), grant, plainOne}, "gate.example.com/model-registry/demo"},
		{"gateway off", func() { w.settings.Gateway.Domain = "" }, []string{plainOne}, "demo.ns.svc.cluster.local"},
		{"both Routes", func() { m.Spec.KubeRBACProxy.ServiceRoute = v1beta1.RouteEnabled }, []string{plainOne, secure}, "demo-rest.apps.example.com"},
		{"another domain", func() { m.Spec.KubeRBACProxy.Domain = "models.example.com" }, []string{plainOne, secure}, "demo-rest.models.example.com"},
		{"the first again", func() { m.Spec.Rest.ServiceRoute = v1beta1.RouteDisabled }, []string{secure}, "demo-rest.models.example.com"},
	} {
		step.change()
		w.reconcileOnce(m)
		if diff := cmp.Diff(step.want, w.published()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if m.Status.Hosts[0] != step.host || m.Status.HostsStr != strings.Join(m.Status.Hosts, ",") {
			t.Errorf("%s: hosts %v", step.name, m.Status.Hosts)
		}
		policy := &networkingv1.NetworkPolicy{}
		if got, want := w.get(policy, "ns", "demo-https-route"), slices.Contains(step.want, secure); got != want {
			t.Errorf("%s: the policy of the Route is there: %t", step.name, got)
		}
		guard := &networkingv1.NetworkPolicy{}
		if !w.get(guard, "ns", "demo-ingress") || len(guard.Spec.Ingress) > 0 == slices.Contains(step.want, secure) {
			t.Errorf("%s: guard %+v", step.name, guard.Spec)
		}
	}
	if route := wholeObject(capability.Route); !w.get(route, "ns", "demo-https") || route.Object["spec"].(map[string]any)["host"] != "demo-rest.models.example.com" {
		t.Errorf("Route %v", route.Object["spec"])
	}
}

// A certificate of the user replaces that of the platform, which is requested again when the user's is removed.
func TestJourneyOfTheCertificate(t *testing.T) {
	w := newTestEnv(t, everything)
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	for _, own := range []bool{false, true, false} {
		m.Spec.KubeRBACProxy.TLSCertificateSecret, m.Spec.KubeRBACProxy.TLSKeySecret = nil, nil
		want := []string{"demo-kube-rbac-proxy", "demo-kube-rbac-proxy"}
		if own {
			m.Spec.KubeRBACProxy.TLSCertificateSecret, m.Spec.KubeRBACProxy.TLSKeySecret = registrytest.Secret("cert", "c.pem"), registrytest.Secret("key", "k.pem")
			want = []string{"cert", "key"}
		}
		w.reconcileOnce(m)
		service, d := &corev1.Service{}, &appsv1.Deployment{}
		w.get(service, "ns", "demo")
		w.get(d, "ns", "demo")
		if request := service.Annotations[servers.AnnotationServingCert]; (request == "demo-kube-rbac-proxy") == own || (request != "") == own {
			t.Errorf("own %t: asked for %q", own, request)
		}
		var got []string
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				got = append(got, v.Secret.SecretName)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("own %t: volumes (-want +got):\n%s", own, diff)
		}
	}
}

// A recreated registry uses retained data; with policy Delete it starts without data.
func TestJourneyAfterDeletion(t *testing.T) {
	for policy, kept := range map[v1beta1.RetentionPolicy]bool{"": true, v1beta1.RetainData: true, v1beta1.DeleteData: false} {
		t.Run(string(policy), func(t *testing.T) {
			w := newTestEnv(t, nil)
			first := newRegistry("demo", withGeneratedDatabase, registrytest.Proxied, withGeneratedDatabase)
			first.Spec.Postgres.RetentionPolicy, first.Spec.Postgres.Database = policy, "models"
			w.reconcileOnce(first)
			before := &corev1.Secret{}
			w.get(before, "ns", "demo-postgres-credentials")
			w.requireWait(w.finalize(t.Context(), first), "status")
			w.requireWait(w.finalize(t.Context(), first), "status")
			w.requireNoError(w.finalize(t.Context(), first))
			w.collected(first.UID)
			w.forget(first.UID)
			if got := w.get(&corev1.PersistentVolumeClaim{}, "ns", "demo-postgres-storage"); got != kept {
				t.Errorf("the claim is there: %t", got)
			}
			if w.get(&rbacv1.ClusterRoleBinding{}, "", "demo-auth-delegator") {
				t.Error("the ClusterRoleBinding of the deleted registry exists")
			}

			second := newRegistry("demo", registrytest.Proxied, withGeneratedDatabase)
			second.UID = "second"
			second.Spec.Postgres.RetentionPolicy = policy
			w.reconcileOnce(second)
			after := &corev1.Secret{}
			w.get(after, "ns", "demo-postgres-credentials")
			if same := string(after.Data["password"]) == string(before.Data["password"]); same != kept {
				t.Errorf("the password is the old one: %t", same)
			}
			if name := w.addressOf(second); strings.HasSuffix(name, "/models") != kept {
				t.Errorf("address %s", name)
			}
			if owned := metav1.IsControlledBy(after, second); owned == kept {
				t.Errorf("owners %v", after.OwnerReferences)
			}
		})
	}
}

// A change of the retention policy of a running database takes effect in both directions.
func TestRetentionPolicyCanChange(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	for _, policy := range []v1beta1.RetentionPolicy{v1beta1.RetainData, v1beta1.DeleteData, v1beta1.RetainData, v1beta1.DeleteData, ""} {
		m.Spec.Postgres.RetentionPolicy = policy
		w.reconcileOnce(m)
		for name, o := range map[string]client.Object{"demo-postgres-storage": &corev1.PersistentVolumeClaim{}, "demo-postgres-credentials": &corev1.Secret{}} {
			if !w.get(o, "ns", name) || metav1.IsControlledBy(o, m) != (policy == v1beta1.DeleteData) {
				t.Errorf("%q: %s belongs to %v", policy, name, o.GetOwnerReferences())
			}
		}
	}
}
