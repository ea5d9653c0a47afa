package access

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// namespaceReconciler reconciles the RoleBindings of a namespace.
type namespaceReconciler struct {
	// cached reads MLflow objects, labelled the namespaces with WorkspaceLabel, bindings the RoleBindings by name.
	cached   client.Reader
	labelled cache.Cache
	bindings map[string]cache.Cache
	applier  *apply.Applier
	auth     *authWatcher
	report   *Report
	prefix   string
}

// decision is the action for a namespace.
type decision int

const (
	decideNothing decision = iota // the namespace is terminating, or Auth is invalid
	decideRequeue                 // Auth has not been read yet
	decideDelete                  // no RoleBinding is desired
	decideApply                   // both RoleBindings are desired
)

// decide returns the action for a namespace, which is nil without WorkspaceLabel.
func decide(namespace *metav1.PartialObjectMetadata, m *mlflowv1.MLflow, a auth) decision {
	switch {
	case namespace != nil && namespace.DeletionTimestamp != nil:
		return decideNothing // its content is deleted with it
	case namespace == nil || namespace.Labels[WorkspaceLabel] == "":
		return decideDelete
	case m == nil || m.DeletionTimestamp != nil:
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
	namespace, err := r.namespace(ctx, name)
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

// namespace returns the metadata of a namespace, or nil if it lacks WorkspaceLabel or does not exist.
func (r *namespaceReconciler) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return getOrNil(ctx, r.labelled, client.ObjectKey{Name: name}, namespaceMetadata(), "Namespace "+name)
}

// mlflow returns the MLflow that WorkspaceLabel of a namespace names, or nil.
func (r *namespaceReconciler) mlflow(ctx context.Context, namespace *metav1.PartialObjectMetadata) (*mlflowv1.MLflow, error) {
	if namespace == nil || namespace.Labels[WorkspaceLabel] == "" {
		return nil, nil
	}
	name := namespace.Labels[WorkspaceLabel]
	return getOrNil(ctx, r.cached, client.ObjectKey{Name: name}, &mlflowv1.MLflow{}, "MLflow "+name)
}

// binding returns the cached RoleBinding, or nil.
func (r *namespaceReconciler) binding(ctx context.Context, namespace, name string) (*rbacv1.RoleBinding, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return getOrNil(ctx, r.bindings[name], key, &rbacv1.RoleBinding{}, "RoleBinding "+key.String())
}

// getOrNil reads an object, or returns nil if it does not exist.
func getOrNil[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, obj T, description string) (T, error) {
	var none T
	err := reader.Get(ctx, key, obj)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %s: %w", description, err)
	}
	return obj, nil
}

// applyBindings applies the RoleBindings. A RoleBinding with another role is deleted first, because roleRef is immutable, unless it has
// a foreign controller.
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

// ignoreTransient returns nil if all errors are transient.
func ignoreTransient(err error) error {
	if apply.AllErrorsMatch(err, isTransient) {
		return nil
	}
	return err
}

// isTransient reports whether an error is caused by a terminating namespace or RoleBinding. The deletion event starts the next reconcile.
func isTransient(err error) bool {
	return apply.IsTerminating(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
