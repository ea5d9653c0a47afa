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

// Names and labels that the originals used.
const (
	// WorkspaceLabel on a namespace names the MLflow whose users get access.
	WorkspaceLabel = "opendatahub.io/global-mlflow-workspace"
	// ViewBinding and EditBinding are the RoleBindings in such a namespace.
	ViewBinding = "odh-group-mlflow-view"
	EditBinding = "odh-group-mlflow-edit"

	viewRole       = "mlflow-view"
	editRole       = "mlflow-edit"
	managedByLabel = "app.kubernetes.io/managed-by"
	fieldOwner     = "mlflow-operator"
)

// bindingNames are the names of all RoleBindings of a namespace.
var bindingNames = []string{ViewBinding, EditBinding}

// wanted is one RoleBinding as it shall be.
type desiredBinding struct {
	name, role string
	groups     []string
}

// wantedIn lists the RoleBindings of a namespace. All groups may look; administrators may also change.
func desiredBindings(prefix string, g groups) []desiredBinding {
	return []desiredBinding{
		{ViewBinding, prefix + viewRole, unique(slices.Concat(g.Allowed, g.Admin))},
		{EditBinding, prefix + editRole, g.Admin},
	}
}

// unique drops repetitions and keeps the order.
func unique(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// config is the apply configuration. The list of subjects is there even when it is empty: what we do not name we do not
// own, and others could add to it. The typed configuration cannot say that.
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

// refersElsewhere says that a RoleBinding is of another role, which cannot be changed.
func (w desiredBinding) hasOtherRole(live *rbacv1.RoleBinding) bool {
	return live.RoleRef != rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role}
}

// desired puts the RoleBindings of a namespace in the form that is applied. A binding of one of the names that a user made
// is taken over: who labels the namespace asks for these two.
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

// isOurs says whether we or the original made or took over a RoleBinding. Only then may it be removed.
func isManaged(live *rbacv1.RoleBinding) bool {
	if hasForeignController(live) {
		return false
	}
	return live.Labels[names.OperatorLabel] == names.OperatorName || live.Labels[managedByLabel] == fieldOwner ||
		slices.ContainsFunc(live.OwnerReferences, resources.IsMLflow) ||
		slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == fieldOwner })
}

// belongsToAnother says that something else than an MLflow controls a RoleBinding.
func hasForeignController(live *rbacv1.RoleBinding) bool {
	controller := metav1.GetControllerOfNoCopy(live)
	return controller != nil && !resources.IsMLflow(*controller)
}
