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
type namespaces struct {
	// cached reads MLflow objects, labelled holds the namespaces with our label, bindings the RoleBindings of our names.
	cached   client.Reader
	labelled cache.Cache
	bindings map[string]cache.Cache
	applier  *apply.Applier
	auth     *authFollower
	report   *report
	prefix   string
}

// decision is what a namespace calls for.
type decision int

const (
	leaveAlone decision = iota // nothing may be done, or is known
	askAgain                   // Auth is still being read
	cleanUp                    // no RoleBinding of ours is wanted
	bind                       // both are
)

// decide needs no request. A nil namespace has no label, or does not exist.
func decide(namespace *metav1.PartialObjectMetadata, m *mlflowv1.MLflow, a auth) decision {
	switch {
	case namespace != nil && namespace.DeletionTimestamp != nil:
		return leaveAlone // the namespace takes everything with it, and admits nothing new
	case namespace == nil || namespace.Labels[WorkspaceLabel] == "":
		return cleanUp
	case m == nil || m.DeletionTimestamp != nil:
		return cleanUp
	case a.State == authUnknown:
		return askAgain
	case a.State == authInvalid:
		return leaveAlone
	case a.State != authKnown:
		return cleanUp
	default:
		return bind
	}
}

// Reconcile implements reconcile.Reconciler; the request names a namespace.
func (r *namespaces) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.settle(ctx, request.Name)
	if ctx.Err() == nil {
		r.report.note(request.Name, err)
	}
	return result, err
}

func (r *namespaces) settle(ctx context.Context, name string) (reconcile.Result, error) {
	namespace, err := r.namespace(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	m, err := r.mlflow(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	a := r.auth.now()
	switch decide(namespace, m, a) {
	case askAgain:
		return reconcile.Result{RequeueAfter: unknownRetry}, nil
	case cleanUp:
		return reconcile.Result{}, r.cleanUp(ctx, name)
	case bind:
		err := r.bind(ctx, m, name, wantedIn(r.prefix, a.Groups))
		return reconcile.Result{}, ignorePassing(err)
	case leaveAlone:
	}
	return reconcile.Result{}, nil
}

// namespace returns nil for one that has not our label, or does not exist.
func (r *namespaces) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return read(ctx, r.labelled, client.ObjectKey{Name: name}, namespaceHead(), "Namespace "+name)
}

// mlflow returns the MLflow that a namespace asks for, nil when there is none.
func (r *namespaces) mlflow(ctx context.Context, namespace *metav1.PartialObjectMetadata) (*mlflowv1.MLflow, error) {
	if namespace == nil || namespace.Labels[WorkspaceLabel] == "" {
		return nil, nil
	}
	name := namespace.Labels[WorkspaceLabel]
	return read(ctx, r.cached, client.ObjectKey{Name: name}, &mlflowv1.MLflow{}, "MLflow "+name)
}

// binding returns a RoleBinding as the cache has it, nil when there is none.
func (r *namespaces) binding(ctx context.Context, namespace, name string) (*rbacv1.RoleBinding, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return read(ctx, r.bindings[name], key, &rbacv1.RoleBinding{}, "RoleBinding "+key.String())
}

// read returns nil when there is no such object.
func read[T client.Object](ctx context.Context, from client.Reader, key client.ObjectKey, into T, what string) (T, error) {
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
func (r *namespaces) bind(ctx context.Context, m *mlflowv1.MLflow, namespace string, want []wanted) error {
	for _, w := range want {
		live, err := r.binding(ctx, namespace, w.name)
		if err != nil {
			return err
		}
		if live == nil || !w.refersElsewhere(live) || belongsToAnother(live) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, m.UID, live); err != nil {
			return err
		}
	}
	return r.applier.Apply(ctx, m, desired(namespace, want))
}

// cleanUp removes what we or the original made, and nothing else.
func (r *namespaces) cleanUp(ctx context.Context, namespace string) error {
	r.applier.ForgetNamespace(namespace)
	var errs []error
	for _, name := range bindingNames {
		live, err := r.binding(ctx, namespace, name)
		if err == nil && live != nil && isOurs(live) {
			err = r.applier.DeleteOwned(ctx, "", live)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ignorePassing drops what ends by itself.
func ignorePassing(err error) error {
	if apply.AllErrorsMatch(err, isPassing) {
		return nil
	}
	return err
}

// isPassing: a namespace that is being deleted admits nothing new, and the end of a RoleBinding that is being deleted is an
// event, which is missed only after a minute.
func isPassing(err error) bool {
	return apply.IsTerminating(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
