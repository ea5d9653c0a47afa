package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// namespaceReconciler reconciles the RoleBindings of a namespace.
type namespaceReconciler struct {
	// cached reads MLflow objects, namespaces the namespaces with WorkspaceLabel, bindings the RoleBindings by name.
	cached     client.Reader
	namespaces cache.Cache
	bindings   map[string]cache.Cache
	applier    *apply.Applier
	auth       *authWatcher
	report     *Report
	prefix     string
}

// decision is the action for a namespace.
type decision int

const (
	decideNothing decision = iota // the namespace is terminating, or Auth is invalid
	decideRequeue                 // Auth has not been read yet
	decideDelete                  // no RoleBinding is desired
	decideApply                   // both RoleBindings are desired
)

// decide returns the action for a namespace. namespace is nil unless the namespace exists and has WorkspaceLabel.
func decide(namespace *metav1.PartialObjectMetadata, m *mlflowv1.MLflow, a auth) decision {
	switch {
	case namespace != nil && namespace.DeletionTimestamp != nil:
		return decideNothing // its content is deleted with it
	case namespace == nil || namespace.Labels[WorkspaceLabel] == "" || m == nil || m.DeletionTimestamp != nil:
		return decideDelete
	case a.State == authUnknown:
		return decideRequeue
	case a.State == authInvalid:
		return decideNothing
	case a.State != authKnown:
		return decideDelete
	default:
		return decideApply
	}
}

// Reconcile implements reconcile.Reconciler; the request names a namespace.
func (r *namespaceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcileNamespace(ctx, request.Name)
	if ctx.Err() == nil {
		r.report.record(request.Name, err)
	}
	return result, err
}

func (r *namespaceReconciler) reconcileNamespace(ctx context.Context, name string) (reconcile.Result, error) {
	namespace, err := objectmeta.Get(ctx, r.namespaces, namespaceKind, client.ObjectKey{Name: name})
	if err != nil {
		return reconcile.Result{}, err
	}
	m, err := r.mlflow(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	a := r.auth.current()
	switch decide(namespace, m, a) {
	case decideRequeue:
		return reconcile.Result{RequeueAfter: reconciler.RequeueSoon}, nil
	case decideDelete:
		return reconcile.Result{}, r.deleteBindings(ctx, name)
	case decideApply:
		err := r.applyBindings(ctx, m, name, desiredBindings(r.prefix, a.Groups))
		return reconcile.Result{}, ignoreTransient(err)
	case decideNothing:
	}
	return reconcile.Result{}, nil
}

// mlflow returns the MLflow that WorkspaceLabel of a namespace names, or nil.
func (r *namespaceReconciler) mlflow(ctx context.Context, namespace *metav1.PartialObjectMetadata) (*mlflowv1.MLflow, error) {
	if namespace == nil || namespace.Labels[WorkspaceLabel] == "" {
		return nil, nil
	}
	return getOrNil(ctx, r.cached, client.ObjectKey{Name: namespace.Labels[WorkspaceLabel]}, &mlflowv1.MLflow{}, "MLflow")
}

// binding returns the cached RoleBinding, or nil.
func (r *namespaceReconciler) binding(ctx context.Context, namespace, name string) (*rbacv1.RoleBinding, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return getOrNil(ctx, r.bindings[name], key, &rbacv1.RoleBinding{}, "RoleBinding")
}

// getOrNil reads an object, or returns nil if it does not exist.
func getOrNil[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, obj T, kind string) (none T, err error) {
	err = reader.Get(ctx, key, obj)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return obj, nil
}

// applyBindings applies the RoleBindings. A RoleBinding with another role is deleted first, because roleRef is immutable, unless the
// RoleBinding has a foreign controller.
func (r *namespaceReconciler) applyBindings(ctx context.Context, m *mlflowv1.MLflow, namespace string, bindings []desiredBinding) error {
	for _, b := range bindings {
		existing, err := r.binding(ctx, namespace, b.name)
		if err != nil {
			return err
		}
		if existing == nil || !b.hasOtherRole(existing) || hasForeignController(existing) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, m.UID, existing); err != nil {
			return err
		}
	}
	return r.applier.Apply(ctx, m, desired(namespace, bindings))
}

// deleteBindings deletes the RoleBindings of this operator and the legacy operator.
func (r *namespaceReconciler) deleteBindings(ctx context.Context, namespace string) error {
	r.applier.ForgetNamespace(namespace)
	var errs []error
	for _, name := range bindingNames {
		existing, err := r.binding(ctx, namespace, name)
		if err == nil && existing != nil && isManaged(existing) {
			err = r.applier.DeleteOwned(ctx, "", existing)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ignoreTransient returns nil if all errors are caused by a terminating namespace, or by a RoleBinding whose deletion has not timed out.
func ignoreTransient(err error) error {
	if apply.AllErrorsMatch(err, func(err error) bool {
		return apply.IsTerminating(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	}) {
		return nil
	}
	return err
}

// Names and labels of the legacy operator.
const (
	// WorkspaceLabel on a namespace contains the name of the MLflow for which the groups of Auth get access to the namespace.
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

// unique returns the names without duplicates, in the same order.
func unique(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// applyConfiguration returns the apply configuration. It contains the list of subjects even if empty, so that fieldOwner owns the list and
// an apply removes other subjects. A typed apply configuration would omit the empty list.
func (b desiredBinding) applyConfiguration(namespace string) runtime.ApplyConfiguration {
	subjects := make([]any, 0, len(b.groups))
	for _, group := range b.groups {
		subjects = append(subjects, map[string]any{"kind": rbacv1.GroupKind, "apiGroup": rbacv1.GroupName, "name": group})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": b.role},
		"subjects": subjects,
	}}
	u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	u.SetNamespace(namespace)
	u.SetName(b.name)
	u.SetLabels(map[string]string{managedByLabel: fieldOwner})
	return client.ApplyConfigurationFromUnstructured(u)
}

// hasOtherRole reports whether a RoleBinding has another roleRef, which is immutable.
func (b desiredBinding) hasOtherRole(live *rbacv1.RoleBinding) bool {
	return live.RoleRef != rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role}
}

// desired returns the objects to apply in a namespace. A RoleBinding that a user created under one of the names is adopted, because
// the label of the namespace requests both.
func desired(namespace string, all []desiredBinding) apply.Desired {
	var out apply.Desired
	for _, b := range all {
		out = append(out, apply.Object{
			Config:  b.applyConfiguration(namespace),
			AdoptIf: func(*unstructured.Unstructured) bool { return true },
		})
	}
	return out
}

// isManaged reports whether this operator or the legacy operator created or adopted a RoleBinding.
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
