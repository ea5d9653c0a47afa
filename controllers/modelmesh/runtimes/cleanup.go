package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// deleteAll deletes the managed objects and the state of a disabled or unused namespace.
func (r *runtimeReconciler) deleteAll(ctx context.Context, namespace string) error {
	r.pool.Forget(namespace)
	r.etcdWatcher.Forget(namespace)
	deploymentsFound, err := r.pruneDeployments(ctx, namespace, nil)
	if !deploymentsFound {
		err = errors.Join(err, r.pruneGuards(ctx, namespace, nil))
	}
	err = errors.Join(err,
		r.deleteManaged(ctx, namespace, serviceKind, hasServiceLabel),
		r.deleteManaged(ctx, namespace, configMapKind, isConstraints),
		r.deleteManaged(ctx, namespace, secretKind, resources.HasManagedByLabel),
	)
	if namespace != r.Namespaces.OperatorNamespace { // its Secrets are read for all namespaces
		r.namespaceEtcd.Forget(namespace)
		r.storage.Forget(namespace)
		r.tls.Forget(namespace)
	}
	r.MissingReferences.Forget(namespace)
	r.NotServingCauses.Forget(namespace)
	r.caches.Delete(namespace)
	r.applier.ForgetNamespace(namespace)
	return err
}

// pruneDeployments deletes managed Deployments and autoscalers, such as those of disabled runtimes and of a renamed Service, unless keep
// has their name or the UID of their controller. It reports whether managed Deployments may have existed.
func (r *runtimeReconciler) pruneDeployments(ctx context.Context, namespace string, keep map[string]bool) (found bool, err error) {
	unwanted := func(o metav1.Object) bool { return !keep[o.GetName()] && !keep[string(controllerUID(o))] }
	errs := []error{r.deleteManaged(ctx, namespace, autoscalerKind, unwanted)}
	list := &appsv1.DeploymentList{}
	if err := r.Cached.List(ctx, list, client.InNamespace(namespace), managedLabels(), client.UnsafeDisableDeepCopy); err != nil {
		return true, errors.Join(append(errs, fmt.Errorf("listing the managed Deployments: %w", err))...)
	}
	for i := range list.Items {
		if d := &list.Items[i]; unwanted(d) && hasServiceLabel(d) {
			errs = append(errs, r.applier.DeleteOwned(ctx, controllerUID(d), d))
		}
	}
	return len(list.Items) > 0, errors.Join(errs...)
}

// managedLabels selects the objects of this component.
func managedLabels() client.MatchingLabels { return names.Labels(modelmesh.ComponentName) }

// isManaged reports whether an object belongs to this component.
func isManaged(o metav1.Object) bool { return apply.HasComponentLabels(o, modelmesh.ComponentName) }

// hasServiceLabel and isConstraints, and resources.HasManagedByLabel for Secrets, do not match objects that other controllers of the
// component manage.
func hasServiceLabel(o metav1.Object) bool { return o.GetLabels()[resources.LabelService] != "" }

func isConstraints(o metav1.Object) bool { return o.GetName() == resources.ConstraintsName }

// controllerUID returns the UID in the controller reference of an object, or "".
func controllerUID(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// pruneGuards deletes the guards that are not desired.
func (r *runtimeReconciler) pruneGuards(ctx context.Context, namespace string, desired apply.Desired) error {
	if r.Namespaces.SingleNamespace() {
		return nil
	}
	unwanted := func(kind schema.GroupVersionKind, name string) func(metav1.Object) bool {
		return func(o metav1.Object) bool {
			return o.GetName() == name && !slices.ContainsFunc(desired, func(object apply.Object) bool {
				return object.Key().GroupVersionKind == kind
			})
		}
	}
	return errors.Join(
		r.deleteManaged(ctx, namespace, policyKind, unwanted(policyKind, resources.PolicyName)),
		r.deleteManaged(ctx, namespace, configMapKind, unwanted(configMapKind, authproxy.RulesConfigMap)),
	)
}
