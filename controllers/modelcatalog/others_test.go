package modelcatalog

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// [D23] The deletion of a Catalog with an invalid name does not delete objects of the active one.
func TestFinalizeMisnamedCatalog(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	other := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: newCatalog().Namespace, Name: "other", UID: "other"}}
	if err := env.r.finalize(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if !env.get(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}) {
		t.Error("the ClusterRoleBinding of the active Catalog was deleted")
	}
}

// The ClusterRoleBinding is watched by name, so that the removal of its labels enqueues the Catalog.
func TestBindingIsWatchedByName(t *testing.T) {
	relabelled := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: names.Labels("modelregistry")}}
	other := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "demo-auth-delegator", Labels: names.Labels("modelregistry")}}
	if !catalogPredicate().Update(event.UpdateEvent{ObjectOld: relabelled, ObjectNew: relabelled}) || catalogPredicate().Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}) {
		t.Error("want the predicate to match only the ClusterRoleBinding of the catalog")
	}
}

// After a restart, a stale list may contain a deleted Catalog. Objects that are not garbage-collected are not created for such a Catalog.
func TestStaleListOfCatalogs(t *testing.T) {
	env := newTestEnv(t)
	for _, phase := range env.r.phases() {
		if err := phase.Run(t.Context(), newCatalog()); err != nil {
			t.Logf("%s: %v", phase.Name, err)
			break
		}
	}
	if env.get(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}) {
		t.Error("the ClusterRoleBinding was created for a deleted Catalog")
	}
	if env.get(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}) {
		t.Error("the ConfigMap of the sources was created for a deleted Catalog")
	}
}

// [D25] The Catalog's HTTPRoutes outside of the configured namespace are deleted. Those of another Catalog are kept.
func TestManagedHTTPRoutesInOtherNamespacesAreDeleted(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.served = capability.NewSet(capability.HTTPRoute)
	route := func(namespace, catalogNamespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(capability.HTTPRoute)
		u.SetNamespace(namespace)
		u.SetName(resources.Name)
		u.SetLabels(map[string]string{resources.LabelNamespace: catalogNamespace, names.OperatorLabel: names.OperatorName, names.ComponentLabel: ComponentName})
		return u
	}
	env.create(route("old-routes", "lab-registries"))
	env.create(route("others", "another"))
	env.reconcileUntilStable()
	if env.get(route("old-routes", "")) || !env.get(route("others", "")) {
		t.Errorf("HTTPRoute of the Catalog exists: %v, want false; HTTPRoute of another Catalog exists: %v, want true", env.get(route("old-routes", "")), env.get(route("others", "")))
	}
}

// [modelregistry-98] A missing object, a missing field and a field of another type result in no groups.
func TestAdminGroups(t *testing.T) {
	auth := func(groups any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": groups}}}
	}
	for name, test := range map[string]struct {
		auth *unstructured.Unstructured
		want string
	}{
		"two groups":               {auth([]any{"a", "", "b"}), "a,b"},
		"missing object":           {nil, ""},
		"missing field":            {&unstructured.Unstructured{Object: map[string]any{}}, ""},
		"string instead of a list": {auth("a"), ""},
		"number in the list":       {auth([]any{"a", int64(1)}), ""},
	} {
		if got := strings.Join(adminGroups(test.auth), ","); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// Without a take-over, a Deployment with another selector is recreated only if the Catalog controls it.
func TestOutdatedDeploymentIsReplacedIfControlled(t *testing.T) {
	catalogReference := *metav1.NewControllerRef(newCatalog(), aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
	another := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Other", Name: "other", UID: "other", Controller: new(true)}
	for name, test := range map[string]struct {
		owners   []metav1.OwnerReference
		replaced bool
	}{
		"controlled by the Catalog":    {[]metav1.OwnerReference{catalogReference}, true},
		"controlled by another object": {[]metav1.OwnerReference{another}, false},
		"not controlled":               {nil, false},
	} {
		outdated := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
		outdated.UID, outdated.Labels, outdated.OwnerReferences = "outdated", names.Labels(ComponentName), test.owners
		outdated.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "outdated"}}
		env := newTestEnv(t, newCatalog(), outdated)
		for range 2 {
			if _, err := env.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
		if replaced := mustGet(env, outdated).UID != "outdated"; replaced != test.replaced {
			t.Errorf("%s: replaced %t, want %t", name, replaced, test.replaced)
		}
	}
}
