package modelcatalog

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
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

// A legacy ClusterRoleBinding without a namespace label belongs to the active Catalog.
func TestFinalizeInactiveCatalog(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: map[string]string{resources.LabelCreatedBy: resources.CreatedBy}}}
	env := newTestEnv(t, newCatalog(), binding)
	inactive := newCatalog()
	inactive.Namespace, inactive.UID = "elsewhere", "inactive"
	if err := env.r.finalize(t.Context(), inactive); err != nil {
		t.Fatal(err)
	}
	if !env.get(binding) {
		t.Error("the ClusterRoleBinding was deleted")
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

// The ClusterRoleBinding of a registry or a user is not adopted, and the Catalog reports it.
func TestForeignBinding(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"of a registry":                  withLegacyLabels(names.Labels("modelregistry"), "model-registry"),
		"of a registry, legacy operator": withLegacyLabels(map[string]string{}, "model-registry"),
		"of a user":                      {"app": "model-catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: labels},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "theirs", Name: "model-catalog"}},
			}
			env := newTestEnv(t, newCatalog(), binding)
			env.reconcileUntilStable()
			if !env.get(binding) || binding.Subjects[0].Namespace != "theirs" {
				t.Errorf("subjects %v", binding.Subjects)
			}
			c := newCatalog()
			env.get(c)
			got, _ := conditions.Get(c.Status.Conditions, ConditionAvailable)
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, resources.DelegatorBinding) {
				t.Errorf("condition %v", got)
			}
		})
	}
}

func withLegacyLabels(labels map[string]string, component string) map[string]string {
	labels[resources.LabelCreatedBy], labels[resources.LabelComponent] = resources.CreatedBy, component
	return labels
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
