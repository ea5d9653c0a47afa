package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
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
		r.deleteManaged(ctx, namespace, secretKind, hasLegacyLabel),
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

// hasServiceLabel and isConstraints, and hasLegacyLabel for Secrets, do not match objects that other controllers of the component manage.
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

const legacyCleanupRetry = time.Minute

// legacyCleaner deletes, once per process, the objects of the legacy controller that no reconcile adopts: those of runtimes and
// namespaces that were disabled while no operator ran. The cache does not hold them, because they lack the labels of this operator. The
// cleaner only deletes objects that have a runtime or Namespace as controller, or the name and label that the legacy controller gave them.
type legacyCleaner struct {
	*runtimeReconciler
	log logr.Logger
}

// Start implements manager.Runnable. It retries after an error, and always returns nil.
func (l *legacyCleaner) Start(ctx context.Context) error {
	servers.Retry(ctx, l.clock, legacyCleanupRetry, legacyCleanupRetry, l.deleteLegacyObjects, func(err error, after time.Duration) {
		l.log.Error(err, "Removing objects of the legacy operator failed; retrying", "after", after)
	})
	return nil
}

// deleteLegacyObjects deletes the legacy objects of all kinds that are not desired.
func (l *legacyCleaner) deleteLegacyObjects(ctx context.Context) error {
	labelByKind := map[schema.GroupVersionKind]string{
		deploymentKind: resources.LabelManagedBy, serviceKind: resources.LabelManagedBy, configMapKind: resources.LabelManagedBy, secretKind: resources.LabelManagedBy,
		autoscalerKind: resources.LabelInferenceService,
	}
	var errs []error
	for kind, label := range labelByKind {
		list, err := l.listLegacy(ctx, kind, label)
		errs = append(errs, err)
		for i := range list {
			errs = append(errs, l.deleteUnlessDesired(ctx, kind, &list[i]))
		}
	}
	return errors.Join(errs...)
}

// listLegacy returns the objects of a kind that have the given label and none of this operator.
func (l *legacyCleaner) listLegacy(ctx context.Context, kind schema.GroupVersionKind, label string) ([]metav1.PartialObjectMetadata, error) {
	selector, err := labels.Parse(label + ",!" + names.OperatorLabel)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if l.Namespaces.SingleNamespace() {
		options = append(options, client.InNamespace(l.Namespaces.OperatorNamespace))
	}
	return modelmesh.ListMetadata(ctx, l.live, kind, options...)
}

// deleteUnlessDesired deletes a legacy object that is not desired.
func (l *legacyCleaner) deleteUnlessDesired(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) error {
	if !l.isLegacyObject(kind, o) {
		return nil
	}
	desired, err := l.isDesired(ctx, kind, o)
	if err != nil || desired {
		return err
	}
	l.log.Info("Deleting an object of the legacy operator that is no longer desired", "kind", kind.Kind, "namespace", o.Namespace, "name", o.Name)
	o.SetGroupVersionKind(kind)
	return l.applier.DeleteOwned(ctx, controllerUID(o), o)
}

// isLegacyObject reports whether the legacy controller created an object for a runtime or a namespace. The label is not sufficient, because the
// Deployment of the legacy controller itself has the label too.
func (l *legacyCleaner) isLegacyObject(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	switch kind {
	case deploymentKind, autoscalerKind:
		return owner != nil && (owner.Kind == capability.ServingRuntime.Kind || owner.Kind == capability.ClusterServingRuntime.Kind) &&
			(kind == autoscalerKind || hasLegacyLabel(o) && o.Labels[resources.LabelService] != "")
	case serviceKind:
		return hasLegacyLabel(o) && o.Labels[resources.LabelService] != "" && owner != nil && owner.Kind == namespaceKind.Kind
	case configMapKind:
		return hasLegacyLabel(o) && o.Name == resources.ConstraintsName
	default:
		return hasLegacyLabel(o) && o.Name == l.Config.EtcdSecretName && o.Namespace != l.Namespaces.OperatorNamespace
	}
}

// hasLegacyController reports whether a legacy controller runs in a namespace. With NAMESPACE_SCOPE=true it serves that namespace without
// the label that enables it here, and would create its objects again.
func (l *legacyCleaner) hasLegacyController(ctx context.Context, namespace string) (bool, error) {
	var list appsv1.DeploymentList
	if err := l.live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"control-plane": resources.ControllerName}); err != nil {
		return false, fmt.Errorf("looking for a legacy controller: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 1) > 0 }), nil
}

// isDesired reports whether a reconcile of the namespace adopts the object, or a legacy controller or a reconcile needs it.
func (l *legacyCleaner) isDesired(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) (bool, error) {
	enabled, err := l.Namespaces.Enabled(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	if !enabled {
		return l.hasLegacyController(ctx, o.Namespace)
	}
	settings, err := l.Settings(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	runtimesByName, err := l.Runtimes(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	switch kind {
	case serviceKind:
		return o.Name == settings.ServiceName, nil
	case configMapKind, secretKind:
		return len(runtimesByName) > 0, nil
	}
	for name, rt := range runtimesByName {
		if rt.NeedsDeployment() && resources.DeploymentName(settings.ServiceName, name) == o.Name {
			scale, _ := pkgmodelmesh.ParseAutoscaling(rt.Object.GetAnnotations())
			return kind == deploymentKind || scale.Enabled, nil
		}
	}
	return false, nil
}
