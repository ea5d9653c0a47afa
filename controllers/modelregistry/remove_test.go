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
	networkingv1 "k8s.io/api/networking/v1"
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

// [modelregistry-36] [modelregistry-37] D24: legacy objects under known names are deleted once, and no other objects.
func TestLegacyObjectsAreDeleted(t *testing.T) {
	m, other := newRegistry("model"), newRegistry("other")
	foreign := legacyObject(m, &corev1.Service{}, "model-catalog", false)
	foreign.OwnerReferences = []metav1.OwnerReference{ownerReference("Catalog", "catalog", "catalog")}
	foreign.OwnerReferences[0].Controller = new(true)
	unlabelled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-oauth-cookie-secret"}}
	binding := legacyObject(other, &rbacv1.ClusterRoleBinding{}, "other-auth-delegator", false)
	binding.Namespace, binding.Labels[resources.LabelNamespace] = "", "elsewhere"
	w := newTestEnv(t, nil,
		legacyObject(m, &appsv1.Deployment{}, "model-catalog", true), foreign,
		legacyObject(m, &networkingv1.NetworkPolicy{}, "model-catalog-https-route", true),
		legacyObject(m, &networkingv1.NetworkPolicy{}, "model-https-route", true),
		legacyObject(m, &corev1.Secret{}, "model-oauth-cookie-secret", false),
		legacyObject(m, &corev1.ConfigMap{}, "model-notes", true), unlabelled, binding)
	w.requireWait(w.reconcile(m), "available")
	var deleted []string
	for write := range strings.Lines(w.takeWrites()) {
		if strings.HasPrefix(write, "delete ") {
			deleted = append(deleted, strings.TrimSpace(write))
		}
	}
	want := []string{"delete NetworkPolicy model-https-route", "delete NetworkPolicy model-catalog-https-route", "delete Deployment model-catalog",
		"delete Secret model-oauth-cookie-secret"}
	if diff := cmp.Diff(want, deleted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.requireWait(w.reconcile(other), "available")
	if got := w.takeWrites(); strings.Contains(got, "delete") {
		t.Errorf("what is not labelled, or another registry's, stays:\n%s", got)
	}
	again := legacyObject(m, &corev1.Secret{}, "model-oauth-cookie-secret", false)
	w.requireNoError(w.server.Create(t.Context(), again))
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != "" {
		t.Errorf("the past is checked once, got\n%s", got)
	}
}

// [W5] Objects that are no longer desired are deleted, and without such objects no request is sent.
func TestUnwantedObjectsArePruned(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.Proxied)
	w.requireWait(w.reconcile(m), "available")
	w.takeWrites()
	m.Spec.KubeRBACProxy = nil
	w.requireWait(w.reconcile(m), "available")
	for _, part := range []string{"delete NetworkPolicy demo-ingress", "delete ConfigMap demo-kube-rbac-proxy-config", "delete ClusterRoleBinding demo-auth-delegator"} {
		if got := strings.Join(w.writes, "\n"); !strings.Contains(got, part) {
			t.Errorf("%q is not among\n%s", part, got)
		}
	}
	w.takeWrites()
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != "" {
		t.Errorf("wrote\n%s", got)
	}
}

// A registry that uses the volume of an earlier one reports it once, and then writes nothing.
func TestDataOfAnEarlierRegistry(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	w.requireWait(w.reconcile(m), "available")
	claim := &corev1.PersistentVolumeClaim{}
	w.get(claim, "ns", "demo-postgres-storage")
	if reasonOf(m, ConditionEarlierData) != "" {
		t.Errorf("unexpected conditions with a separate volume: %v", m.Status.Conditions)
	}
	m.CreationTimestamp = metav1.NewTime(claim.CreationTimestamp.Add(time.Hour))
	w.requireWait(w.reconcile(m), "available")
	if reasonOf(m, ConditionEarlierData) != ReasonEarlierData {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
	w.takeWrites()
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != "" {
		t.Errorf("at rest it wrote %q", got)
	}
	reported := 0
	for len(w.events.Events) > 0 {
		if strings.Contains(<-w.events.Events, ReasonEarlierData) {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("%d events", reported)
	}
	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	w.requireWait(w.reconcile(m), "available")
	if reasonOf(m, ConditionEarlierData) != "" {
		t.Errorf("unexpected conditions of the unused claim: %v", m.Status.Conditions)
	}
}

// [D25] An unused generated database is kept and reported.
func TestUnusedDatabaseIsNotPruned(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	w.requireWait(w.reconcile(m), "available")
	w.takeWrites()
	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); strings.Contains(got, "delete") || reasonOf(m, ConditionUnusedDatabase) != ReasonKept {
		t.Errorf("wrote %s, %v", got, m.Status.Conditions)
	}
	w.requireNoError(w.server.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres"}}))
	w.requireWait(w.reconcile(m), "available")
	if reasonOf(m, ConditionUnusedDatabase) != "" {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
}

// [D1] The finalizer reports its progress, deletes objects without an owner reference and retains data.
func TestFinalize(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	w.requireWait(w.reconcile(m), "available")
	claim := &corev1.PersistentVolumeClaim{}
	w.get(claim, "ns", "demo-postgres-storage")
	claim.OwnerReferences = []metav1.OwnerReference{ownerReference(v1beta1.Kind, "demo", m.UID)} // as the legacy operator set it
	w.requireNoError(w.server.Update(t.Context(), claim))
	w.takeWrites()
	w.requireWait(w.finalize(t.Context(), m), "status")
	if reasonOf(m, ConditionDegraded) != ReasonFinalizing || w.takeWrites() != "" {
		t.Errorf("first it reports: %v", m.Status.Conditions)
	}
	boom := errors.New("boom")
	w.fail = func(verb, _ string) error {
		if verb == "delete" {
			return boom
		}
		return nil
	}
	if err := w.finalize(t.Context(), m); !errors.Is(err, boom) {
		t.Errorf("ended with %v", err)
	}
	w.fail = nil
	w.takeWrites()
	w.requireWait(w.finalize(t.Context(), m), "status")
	if got := w.takeWrites(); got != "delete ClusterRoleBinding demo-auth-delegator" {
		t.Errorf("wrote %s", got)
	}
	w.get(claim, "ns", "demo-postgres-storage")
	if len(claim.OwnerReferences) != 0 {
		t.Errorf("the claim still goes with its registry: %v", claim.OwnerReferences)
	}
	w.requireNoError(w.finalize(t.Context(), m))
	if got := w.takeWrites(); got != "" {
		t.Errorf("wrote %s", got)
	}
	var reported []string
	for len(w.events.Events) > 0 {
		reported = append(reported, strings.Fields(<-w.events.Events)[1])
	}
	if diff := cmp.Diff([]string{"ServiceCreated", "Deleting", "DataRetained"}, reported); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// [D1] Cluster-scoped objects that were never adopted are deleted too, except those of another registry of the name.
func TestFinalizeLegacyObjects(t *testing.T) {
	for namespace, goes := range map[string]bool{"ns": true, "elsewhere": false} {
		m := newRegistry("demo")
		binding := legacyObject(m, &rbacv1.ClusterRoleBinding{}, "demo-auth-delegator", false)
		binding.Namespace, binding.Labels[resources.LabelNamespace] = "", namespace
		w := newTestEnv(t, nil, binding)
		w.requireWait(w.finalize(t.Context(), m), "status")
		w.requireWait(w.finalize(t.Context(), m), "status")
		if w.get(binding, "", "demo-auth-delegator") == goes {
			t.Errorf("binding of a registry in %s: goes %v", namespace, goes)
		}
	}
}

// [D1] ClusterRoleBindings of deleted registries are deleted, and no similar ones.
func TestLegacyCleaner(t *testing.T) {
	binding := func(name string, change func(*rbacv1.ClusterRoleBinding)) *rbacv1.ClusterRoleBinding {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-auth-delegator", Labels: map[string]string{
			resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf, resources.LabelApp: name, resources.LabelNamespace: "ns",
		}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: rbacproxy.DelegatorRole}}
		change(b)
		return b
	}
	as := func(*rbacv1.ClusterRoleBinding) {}
	labelled := func(kind schema.GroupVersionKind, namespace, name, registry string) *unstructured.Unstructured {
		u := wholeObject(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetLabels(binding(registry, func(*rbacv1.ClusterRoleBinding) {}).Labels)
		return u
	}
	w := newTestEnv(t, nil, newRegistry("alive"),
		labelled(capability.HTTPRoute, "routes", "model-registry-alive", "alive"), labelled(capability.HTTPRoute, "routes", "model-registry-gone", "gone"),
		labelled(capability.HTTPRoute, "routes", "mine", "gone"),
		labelled(capability.UserGroup, "", "alive-users", "alive"), labelled(capability.UserGroup, "", "gone-users", "gone"),
		binding("alive", as), binding("gone", as),
		binding("renamed", func(b *rbacv1.ClusterRoleBinding) { b.Name = "mine" }),
		binding("other-role", func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "view" }),
		binding("nowhere", func(b *rbacv1.ClusterRoleBinding) { delete(b.Labels, resources.LabelNamespace) }),
		binding("catalog", func(b *rbacv1.ClusterRoleBinding) { b.Labels[resources.LabelComponent] = "model-catalog" }))
	s := &legacyCleaner{apiReader: w.server, applier: w.Applier, clock: clocktesting.NewFakeClock(now)}
	w.requireNoError(s.Start(t.Context()))
	got := strings.Split(w.takeWrites(), "\n")
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

// After a restart a stale list may contain a deleted registry: objects without garbage collection are not created for it.
func TestStaleListOfRegistries(t *testing.T) {
	for name, m := range map[string]*v1beta1.ModelRegistry{"its binding and group": newRegistry("demo", registrytest.Proxied), "its data": newRegistry("demo", withGeneratedDatabase)} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, everything)
			for _, phase := range w.phases() {
				if phase.Run(t.Context(), m) != nil {
					break
				}
			}
			for _, o := range []client.Object{
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorName(m)}}, wholeObject(capability.UserGroup),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.CredentialsName(m)}},
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.ClaimName(m)}},
			} {
				if o.GetName() == "" {
					o.SetName(resources.UsersName(m))
				}
				if w.get(o, o.GetNamespace(), o.GetName()) {
					t.Errorf("%T %s is there for ever", o, o.GetName())
				}
			}
		})
	}
}
