package access

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Names and labels of the legacy operators.
const (
	// WorkspaceLabel on a namespace contains the name of the MLflow whose users get access.
	WorkspaceLabel = "opendatahub.io/global-mlflow-workspace"
	// ViewBinding and EditBinding are the names of the RoleBindings in such a namespace.
	ViewBinding = "odh-group-mlflow-view"
	EditBinding = "odh-group-mlflow-edit"

	viewRole       = "mlflow-view"
	editRole       = "mlflow-edit"
	managedByLabel = "app.kubernetes.io/managed-by"
	fieldOwner     = "mlflow-operator"
)

var bindingNames = []string{ViewBinding, EditBinding}

// desiredBinding is the desired state of a RoleBinding.
type desiredBinding struct {
	name, role string
	groups     []string
}

// desiredBindings returns the RoleBindings of a namespace: view for all groups, edit for the admin groups.
func desiredBindings(prefix string, g groups) []desiredBinding {
	return []desiredBinding{
		{ViewBinding, prefix + viewRole, unique(slices.Concat(g.Allowed, g.Admin))},
		{EditBinding, prefix + editRole, g.Admin},
	}
}

// unique removes duplicates and keeps the order.
func unique(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// applyConfiguration returns the apply configuration. It contains the list of subjects even if empty, so that the list is owned and
// others cannot add to it; the typed configuration would omit it.
func (w desiredBinding) applyConfiguration(namespace string) runtime.ApplyConfiguration {
	subjects := make([]any, 0, len(w.groups))
	for _, group := range w.groups {
		subjects = append(subjects, map[string]any{"kind": rbacv1.GroupKind, "apiGroup": rbacv1.GroupName, "name": group})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": w.role},
		"subjects": subjects,
	}}
	u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	u.SetNamespace(namespace)
	u.SetName(w.name)
	u.SetLabels(map[string]string{managedByLabel: fieldOwner})
	return client.ApplyConfigurationFromUnstructured(u)
}

// hasOtherRole reports whether a RoleBinding has another roleRef, which is immutable.
func (w desiredBinding) hasOtherRole(live *rbacv1.RoleBinding) bool {
	return live.RoleRef != rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role}
}

// desired returns the objects to apply in a namespace. A RoleBinding that a user created under one of the names is adopted, because
// the label of the namespace requests both.
func desired(namespace string, all []desiredBinding) apply.Desired {
	var out apply.Desired
	for _, w := range all {
		out = append(out, apply.Object{
			Config:  w.applyConfiguration(namespace),
			AdoptIf: func(*unstructured.Unstructured) bool { return true },
		})
	}
	return out
}

// isManaged reports whether this operator or the legacy operator created or adopted a RoleBinding. Only such a RoleBinding may be deleted.
func isManaged(live *rbacv1.RoleBinding) bool {
	if hasForeignController(live) {
		return false
	}
	return live.Labels[names.OperatorLabel] == names.OperatorName || live.Labels[managedByLabel] == fieldOwner ||
		slices.ContainsFunc(live.OwnerReferences, resources.IsMLflow) ||
		slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == fieldOwner })
}

// hasForeignController reports whether an object other than an MLflow controls a RoleBinding.
func hasForeignController(live *rbacv1.RoleBinding) bool {
	controller := metav1.GetControllerOfNoCopy(live)
	return controller != nil && !resources.IsMLflow(*controller)
}
