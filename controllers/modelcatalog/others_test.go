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

// The deletion of an inactive Catalog deletes nothing of the active one, D23.
func TestFinalizeInactiveNamespace(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	other := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: sample().Namespace, Name: "other", UID: "other"}}
	if err := b.r.finalize(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if !b.get(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}) {
		t.Error("the ClusterRoleBinding of the active Catalog was deleted")
	}
}

// A legacy ClusterRoleBinding without a namespace label belongs to the active Catalog.
func TestFinalizeInactiveCatalog(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: map[string]string{resources.LabelCreatedBy: resources.CreatedBy}}}
	b := newTestEnv(t, sample(), binding)
	later := sample()
	later.Namespace, later.UID = "elsewhere", "later"
	if err := b.r.finalize(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if !b.get(binding) {
		t.Error("the ClusterRoleBinding was deleted")
	}
}

// The ClusterRoleBinding is watched by name: the removal of its labels enqueues the Catalog too.
func TestBindingIsWatchedByName(t *testing.T) {
	taken := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: names.Labels("modelregistry")}}
	other := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "demo-auth-delegator", Labels: names.Labels("modelregistry")}}
	if !catalogPredicate().Update(event.UpdateEvent{ObjectOld: taken, ObjectNew: taken}) || catalogPredicate().Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}) {
		t.Error("want the predicate to accept only the binding of the catalog")
	}
}

// The ClusterRoleBinding of a registry is not adopted, and the Catalog reports it.
func TestBindingOfARegistry(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"of this operator":       withOwner(names.Labels("modelregistry"), "model-registry"),
		"of the legacy operator": withOwner(map[string]string{}, "model-registry"),
		"of a user":              {"app": "model-catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: labels},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "theirs", Name: "model-catalog"}},
			}
			b := newTestEnv(t, sample(), binding)
			b.reconcileUntilStable()
			if !b.get(binding) || binding.Subjects[0].Namespace != "theirs" {
				t.Errorf("subjects %v", binding.Subjects)
			}
			c := sample()
			b.get(c)
			got, _ := conditions.Get(c.Status.Conditions, ConditionAvailable)
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, resources.DelegatorBinding) {
				t.Errorf("condition %v", got)
			}
		})
	}
}

func withOwner(labels map[string]string, component string) map[string]string {
	labels[resources.LabelCreatedBy], labels[resources.LabelComponent] = resources.CreatedBy, component
	return labels
}

// After a restart a stale list may contain a deleted Catalog: objects without garbage collection are not created for it.
func TestStaleListOfCatalogs(t *testing.T) {
	b := newTestEnv(t)
	for _, phase := range b.r.phases() {
		if err := phase.Run(t.Context(), sample()); err != nil {
			t.Logf("%s: %v", phase.Name, err)
			break
		}
	}
	if b.get(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}) {
		t.Error("the ClusterRoleBinding was not deleted")
	}
	if b.get(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}) {
		t.Error("the ConfigMap of the sources was not deleted")
	}
}
