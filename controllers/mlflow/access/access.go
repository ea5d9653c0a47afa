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
)

// namespaces reconciles the RoleBindings of one namespace at a time.
type namespaceReconciler struct {
	// cached reads MLflow objects, labelled holds the namespaces with our label, bindings the RoleBindings of our names.
	cached   client.Reader
	labelled cache.Cache
	bindings map[string]cache.Cache
	applier  *apply.Applier
	auth     *authWatcher
	report   *failureReport
	prefix   string
}

// decision is what a namespace calls for.
type decision int

const (
	decideNothing decision = iota // nothing may be done, or is known
	decideRequeue                 // Auth is still being read
	decideDelete                  // no RoleBinding of ours is wanted
	decideApply                   // both are
)

// decide needs no request. A nil namespace has no label, or does not exist.
func decide(namespace *metav1.PartialObjectMetadata, m *mlflowv1.MLflow, a auth) decision {
	switch {
	case namespace != nil && namespace.DeletionTimestamp != nil:
		return decideNothing // the namespace takes everything with it, and admits nothing new
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
		return reconcile.Result{RequeueAfter: authRequeueAfter}, nil
	case decideDelete:
		return reconcile.Result{}, r.deleteBindings(ctx, name)
	case decideApply:
		err := r.applyBindings(ctx, m, name, desiredBindings(r.prefix, a.Groups))
		return reconcile.Result{}, ignoreTransient(err)
	case decideNothing:
	}
	return reconcile.Result{}, nil
}

// namespace returns nil for one that has not our label, or does not exist.
func (r *namespaceReconciler) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return getOrNil(ctx, r.labelled, client.ObjectKey{Name: name}, namespaceMetadata(), "Namespace "+name)
}

// mlflow returns the MLflow that a namespace asks for, nil when there is none.
func (r *namespaceReconciler) mlflow(ctx context.Context, namespace *metav1.PartialObjectMetadata) (*mlflowv1.MLflow, error) {
	if namespace == nil || namespace.Labels[WorkspaceLabel] == "" {
		return nil, nil
	}
	name := namespace.Labels[WorkspaceLabel]
	return getOrNil(ctx, r.cached, client.ObjectKey{Name: name}, &mlflowv1.MLflow{}, "MLflow "+name)
}

// binding returns a RoleBinding as the cache has it, nil when there is none.
func (r *namespaceReconciler) binding(ctx context.Context, namespace, name string) (*rbacv1.RoleBinding, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return getOrNil(ctx, r.bindings[name], key, &rbacv1.RoleBinding{}, "RoleBinding "+key.String())
}

// read returns nil when there is no such object.
func getOrNil[T client.Object](ctx context.Context, from client.Reader, key client.ObjectKey, into T, what string) (T, error) {
	var none T
	err := from.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %s: %w", what, err)
	}
	return into, nil
}

// bind writes the RoleBindings. One of another role makes room first, unless it has a foreign controller.
func (r *namespaceReconciler) applyBindings(ctx context.Context, m *mlflowv1.MLflow, namespace string, want []desiredBinding) error {
	for _, w := range want {
		live, err := r.binding(ctx, namespace, w.name)
		if err != nil {
			return err
		}
		if live == nil || !w.hasOtherRole(live) || hasForeignController(live) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, m.UID, live); err != nil {
			return err
		}
	}
	return r.applier.Apply(ctx, m, desired(namespace, want))
}

// cleanUp removes what we or the original made, and nothing else.
func (r *namespaceReconciler) deleteBindings(ctx context.Context, namespace string) error {
	r.applier.ForgetNamespace(namespace)
	var errs []error
	for _, name := range bindingNames {
		live, err := r.binding(ctx, namespace, name)
		if err == nil && live != nil && isManaged(live) {
			err = r.applier.DeleteOwned(ctx, "", live)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ignorePassing drops what ends by itself.
func ignoreTransient(err error) error {
	if apply.OnlyErrors(err, isTransient) {
		return nil
	}
	return err
}

// isPassing: a namespace that is being deleted admits nothing new, and the end of a RoleBinding that is being deleted is an
// event, which is missed only after a minute.
func isTransient(err error) bool {
	return apply.IsTerminating(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
