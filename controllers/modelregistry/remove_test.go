package modelregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// legacyObject returns an object of the legacy operator.
func legacyObject[T client.Object](m *v1beta1.ModelRegistry, object T, name string, owned bool) T {
	object.SetNamespace(m.Namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: m.Name})
	if owned {
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind(v1beta1.Kind))})
	}
	return object
}

// [W5] Objects that are no longer desired are deleted, and without such objects nothing is written.
func TestPrunesUndesiredObjects(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.AddProxy)
	env.requireWait(env.reconcile(m), "available")
	env.takeWrites()
	m.Spec.KubeRBACProxy = nil
	env.requireWait(env.reconcile(m), "available")
	for _, part := range []string{"delete NetworkPolicy demo-ingress", "delete ConfigMap demo-kube-rbac-proxy-config", "delete ClusterRoleBinding demo-auth-delegator"} {
		if got := strings.Join(env.writes, "\n"); !strings.Contains(got, part) {
			t.Errorf("wrote\n%s\nwant %q", got, part)
		}
	}
	env.takeWrites()
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "" {
		t.Errorf("wrote\n%s", got)
	}
}

// A registry that uses the volume of an earlier one reports it once, and then writes nothing.
func TestDataOfAnEarlierRegistry(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	claim := &corev1.PersistentVolumeClaim{}
	env.get(claim, "ns", "demo-postgres-storage")
	if reasonOf(m, ConditionEarlierData) != "" {
		t.Errorf("unexpected conditions with a new volume: %v", m.Status.Conditions)
	}
	m.CreationTimestamp = metav1.NewTime(claim.CreationTimestamp.Add(time.Hour))
	env.requireWait(env.reconcile(m), "available")
	if reasonOf(m, ConditionEarlierData) != ReasonEarlierData {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
	env.takeWrites()
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "" {
		t.Errorf("in steady state, wrote %q", got)
	}
	reported := 0
	for len(env.events.Events) > 0 {
		if strings.Contains(<-env.events.Events, ReasonEarlierData) {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("got %d Events, want 1", reported)
	}
	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	env.requireWait(env.reconcile(m), "available")
	if reasonOf(m, ConditionEarlierData) != "" {
		t.Errorf("unexpected conditions of the unused claim: %v", m.Status.Conditions)
	}
}

// [D25] An unused generated database is kept and reported.
func TestUnusedDatabaseIsNotPruned(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	env.takeWrites()
	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); strings.Contains(got, "delete") || reasonOf(m, ConditionUnusedDatabase) != ReasonKept {
		t.Errorf("wrote %s, %v", got, m.Status.Conditions)
	}
	env.requireNoError(env.server.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres"}}))
	env.requireWait(env.reconcile(m), "available")
	if reasonOf(m, ConditionUnusedDatabase) != "" {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
}

// [D1] The finalizer reports its progress, deletes objects without an owner reference and retains data.
func TestFinalize(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	env.requireWait(env.reconcile(m), "available")
	claim := &corev1.PersistentVolumeClaim{}
	env.get(claim, "ns", "demo-postgres-storage")
	claim.OwnerReferences = []metav1.OwnerReference{ownerReference(v1beta1.Kind, "demo", m.UID)} // as the legacy operator set it
	env.requireNoError(env.server.Update(t.Context(), claim))
	env.takeWrites()
	env.requireWait(env.finalize(t.Context(), m), "status")
	if reasonOf(m, ConditionDegraded) != ReasonFinalizing || env.takeWrites() != "" {
		t.Errorf("unexpected conditions %v of the first reconcile", m.Status.Conditions)
	}
	boom := errors.New("boom")
	env.fail = func(verb, _ string) error {
		if verb == "delete" {
			return boom
		}
		return nil
	}
	if err := env.finalize(t.Context(), m); !errors.Is(err, boom) {
		t.Errorf("got error %v", err)
	}
	env.fail = nil
	env.takeWrites()
	env.requireWait(env.finalize(t.Context(), m), "status")
	if got := env.takeWrites(); got != "delete ClusterRoleBinding demo-auth-delegator" {
		t.Errorf("wrote %s", got)
	}
	env.get(claim, "ns", "demo-postgres-storage")
	if len(claim.OwnerReferences) != 0 {
		t.Errorf("got owner references %v of the claim, want none", claim.OwnerReferences)
	}
	env.requireNoError(env.finalize(t.Context(), m))
	if got := env.takeWrites(); got != "" {
		t.Errorf("wrote %s", got)
	}
	var reported []string
	for len(env.events.Events) > 0 {
		reported = append(reported, strings.Fields(<-env.events.Events)[1])
	}
	if diff := cmp.Diff([]string{"ServiceCreated", "Deleting", "DataRetained"}, reported); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// [D1] ClusterRoleBindings, HTTPRoutes and Groups of deleted registries are deleted, and no similar ones.
func TestLegacyCleaner(t *testing.T) {
	binding := func(name string, change func(*rbacv1.ClusterRoleBinding)) *rbacv1.ClusterRoleBinding {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-auth-delegator", Labels: map[string]string{
			resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf, resources.LabelApp: name, resources.LabelNamespace: "ns",
		}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: rbacproxy.DelegatorRole}}
		change(b)
		return b
	}
	unchanged := func(*rbacv1.ClusterRoleBinding) {}
	labelled := func(kind schema.GroupVersionKind, namespace, name, registry string) *unstructured.Unstructured {
		u := newUnstructured(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetLabels(binding(registry, unchanged).Labels)
		return u
	}
	env := newTestEnv(t, nil, newRegistry("alive"),
		labelled(capability.HTTPRoute, "routes", "model-registry-alive", "alive"), labelled(capability.HTTPRoute, "routes", "model-registry-gone", "gone"),
		labelled(capability.HTTPRoute, "routes", "mine", "gone"),
		labelled(capability.UserGroup, "", "alive-users", "alive"), labelled(capability.UserGroup, "", "gone-users", "gone"),
		binding("alive", unchanged), binding("gone", unchanged),
		binding("renamed", func(b *rbacv1.ClusterRoleBinding) { b.Name = "mine" }),
		binding("other-role", func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "view" }),
		binding("nowhere", func(b *rbacv1.ClusterRoleBinding) { delete(b.Labels, resources.LabelNamespace) }),
		binding("catalog", func(b *rbacv1.ClusterRoleBinding) { b.Labels[resources.LabelComponent] = "model-catalog" }))
	cleaner := &orphanCleaner{apiReader: env.server, applier: env.Applier, clock: clocktesting.NewFakeClock(now)}
	env.requireNoError(cleaner.Start(t.Context()))
	got := strings.Split(env.takeWrites(), "\n")
	slices.Sort(got)
	if want := []string{"delete ClusterRoleBinding gone-auth-delegator", "delete Group gone-users", "delete HTTPRoute model-registry-gone"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q", got)
	}
}

// APIs that are not served are not requested [D2].
func TestUnownedKinds(t *testing.T) {
	plainKinds, all := resources.Inputs{}, resources.Inputs{Publishing: servers.Publishing{Served: capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant, capability.UserGroup)}}
	if got := len(plainKinds.Prunable(servers.CronJob)); got != 7 {
		t.Errorf("%d kinds on plain Kubernetes", got)
	}
	if got := all.Prunable(servers.CronJob); got[len(got)-1] != capability.ReferenceGrant || got[len(got)-2] != capability.Route {
		t.Errorf("kinds %v", got)
	}
	if got := unownedKinds(plainKinds); len(got) != 1 || got[0] != servers.ClusterRoleBinding {
		t.Errorf("kinds %v", got)
	}
	if got := unownedKinds(all); len(got) != 3 {
		t.Errorf("kinds %v", got)
	}
}

// After a restart, a stale list may contain a deleted registry. Objects that are not garbage-collected are not created for such a registry.
func TestStaleListOfRegistries(t *testing.T) {
	for name, m := range map[string]*v1beta1.ModelRegistry{"ClusterRoleBinding and Group": newRegistry("demo", registrytest.AddProxy), "data": newRegistry("demo", withGeneratedDatabase)} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, optionalKinds)
			for _, phase := range env.phases() {
				if phase.Run(t.Context(), m) != nil {
					break
				}
			}
			for _, o := range []client.Object{
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorName(m)}}, newUnstructured(capability.UserGroup),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.CredentialsName(m)}},
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.ClaimName(m)}},
			} {
				if o.GetName() == "" {
					o.SetName(resources.UsersName(m))
				}
				if env.get(o, o.GetNamespace(), o.GetName()) {
					t.Errorf("%T %s was created for a deleted registry", o, o.GetName())
				}
			}
		})
	}
}
