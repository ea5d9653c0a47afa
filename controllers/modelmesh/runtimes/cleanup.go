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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// cleanUp removes what we made in a namespace that is not served. What another client made under the same names stays.
func (r *runtimeReconciler) deleteAll(ctx context.Context, namespace string) error {
	r.pool.Forget(namespace)
	r.stream.Forget(namespace)
	left, err := r.pruneDeployments(ctx, namespace, nil)
	if !left {
		err = errors.Join(err, r.pruneGuards(ctx, namespace, nil))
	}
	err = errors.Join(err,
		r.deleteManaged(ctx, namespace, serviceKind, hasServiceLabel),
		r.deleteManaged(ctx, namespace, configMapKind, isConstraints),
		r.deleteManaged(ctx, namespace, secretKind, isLegacy),
	)
	if namespace != r.Namespaces.OperatorNamespace { // there the Secrets are read for all namespaces
		r.namespaceEtcd.Forget(namespace)
		r.storage.Forget(namespace)
		r.tls.Forget(namespace)
	}
	r.reporter.forgetDeleted(namespace, nil)
	r.MissingReferences.Forget(namespace)
	r.Causes.Forget(namespace)
	r.idleRuntimes.DeleteFunc(func(runtime types.NamespacedName) bool { return runtime.Namespace == namespace })
	r.headlessServices.Delete(namespace)
	r.grantedAccounts.Delete(namespace)
	r.applier.ForgetNamespace(namespace)
	return err
}

// sweep removes Deployments and autoscalers of ours that no runtime wants: those of runtimes that are switched off, and those of a
// Service that has got another name. It tells whether Deployments of ours are left, be it for a moment.
func (r *runtimeReconciler) pruneDeployments(ctx context.Context, namespace string, kept map[string]bool) (left bool, err error) {
	unwanted := func(o metav1.Object) bool { return !kept[o.GetName()] }
	errs := []error{r.deleteManaged(ctx, namespace, autoscalerKind, unwanted)}
	list := &appsv1.DeploymentList{}
	if err := r.Cached.List(ctx, list, client.InNamespace(namespace), managedLabels(), client.UnsafeDisableDeepCopy); err != nil {
		return true, errors.Join(append(errs, fmt.Errorf("listing our Deployments: %w", err))...)
	}
	for i := range list.Items {
		if d := &list.Items[i]; !kept[d.Name] && hasServiceLabel(d) {
			errs = append(errs, r.applier.DeleteOwned(ctx, controllerUID(d), d))
		}
	}
	return len(list.Items) > 0, errors.Join(errs...)
}

// ours selects what this component wrote.
func managedLabels() client.MatchingLabels { return names.Labels(modelmesh.ComponentName) }

// isOurs tells whether this component wrote an object.
func isManaged(o metav1.Object) bool { return apply.IsOurs(o, modelmesh.ComponentName) }

// ofMesh and isConstraints, and for Secrets originals, tell our own objects apart from those of other parts of the component: Services
// and Deployments of runtimes, the ConfigMap and the Secret that pods read.
func hasServiceLabel(o metav1.Object) bool { return o.GetLabels()[resources.LabelService] != "" }

func isConstraints(o metav1.Object) bool { return o.GetName() == resources.ConstraintsName }

// ownerOf is the uid of the object that another one was made for; empty where no owner reference names one.
func controllerUID(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// unguard removes the guards that are not wanted any more.
func (r *runtimeReconciler) pruneGuards(ctx context.Context, namespace string, wanted apply.Desired) error {
	if r.Namespaces.SingleNamespace() {
		return nil
	}
	unwanted := func(kind schema.GroupVersionKind, name string) func(metav1.Object) bool {
		return func(o metav1.Object) bool {
			return o.GetName() == name && !slices.ContainsFunc(wanted, func(w apply.Object) bool {
				k, _, err := w.Key()
				return err == nil && k == kind
			})
		}
	}
	return errors.Join(
		r.deleteManaged(ctx, namespace, policyKind, unwanted(policyKind, resources.PolicyName)),
		r.deleteManaged(ctx, namespace, configMapKind, unwanted(configMapKind, authproxy.RulesConfigMap)),
	)
}

const legacyCleanupRetry = time.Minute

// leftovers removes, once, what the original made for runtimes and namespaces that were switched off while no manager ran: memory
// does not show it, because it lacks our labels, and nothing is wanted in its place that would be applied over it. Only objects that
// a runtime or a Namespace controls, or that have the names and the labels of the original, are touched. It runs on the leader.
type legacyCleaner struct {
	*runtimeReconciler
	log logr.Logger
}

// Start implements manager.Runnable. It never fails: what cannot be done now is tried again.
func (l *legacyCleaner) Start(ctx context.Context) error {
	for {
		err := l.deleteLegacyObjects(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		l.log.Error(err, "Removing what the original left; trying again", "after", legacyCleanupRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(legacyCleanupRetry):
		}
	}
}

// sweepAll looks at each kind once.
func (l *legacyCleaner) deleteLegacyObjects(ctx context.Context) error {
	of := map[schema.GroupVersionKind]string{
		deploymentKind: resources.LabelManagedBy, serviceKind: resources.LabelManagedBy, configMapKind: resources.LabelManagedBy, secretKind: resources.LabelManagedBy,
		autoscalerKind: resources.LabelInferenceService,
	}
	var errs []error
	for kind, label := range of {
		list, err := l.listLegacy(ctx, kind, label)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range list {
			errs = append(errs, l.deleteUnlessDesired(ctx, kind, &list[i]))
		}
	}
	return errors.Join(errs...)
}

// list returns the objects of a kind that have a label of the original and none of ours.
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

// consider removes one object when it is the original's and is not wanted.
func (l *legacyCleaner) deleteUnlessDesired(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) error {
	if !l.isLegacyObject(kind, o) {
		return nil
	}
	wanted, err := l.isDesired(ctx, kind, o)
	if err != nil || wanted {
		return err
	}
	l.log.Info("Removing what the original left and is not wanted", "kind", kind.Kind, "namespace", o.Namespace, "name", o.Name)
	o.SetGroupVersionKind(kind)
	return l.applier.DeleteOwned(ctx, controllerUID(o), o)
}

// isOriginals tells whether the original made an object for a runtime or a namespace. Its own Deployment and others of its
// installation have the same label.
func (l *legacyCleaner) isLegacyObject(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	switch kind {
	case deploymentKind, autoscalerKind:
		return owner != nil && (owner.Kind == capability.ServingRuntime.Kind || owner.Kind == capability.ClusterServingRuntime.Kind) &&
			(kind == autoscalerKind || isLegacy(o) && o.Labels[resources.LabelService] != "")
	case serviceKind:
		return isLegacy(o) && o.Labels[resources.LabelService] != "" && owner != nil && owner.Kind == namespaceKind.Kind
	case configMapKind:
		return isLegacy(o) && o.Name == resources.ConstraintsName
	default:
		return isLegacy(o) && o.Name == l.Config.EtcdSecretName && o.Namespace != l.Namespaces.OperatorNamespace
	}
}

// wants tells whether a reconcile of the namespace takes the object over, or has other reasons to keep it.
func (l *legacyCleaner) isDesired(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) (bool, error) {
	on, err := l.Namespaces.Enabled(ctx, o.Namespace)
	if err != nil || !on {
		return false, err
	}
	settings, err := l.Settings(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	templates, err := l.Runtimes(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	switch kind {
	case serviceKind:
		return o.Name == settings.ServiceName, nil
	case configMapKind, secretKind:
		return len(templates) > 0, nil
	}
	for name, rt := range templates {
		if rt.NeedsDeployment() && resources.DeploymentName(settings.ServiceName, name) == o.Name {
			scale, _ := mm.ParseAutoscaling(rt.Object.GetAnnotations())
			return kind == deploymentKind || scale.Enabled, nil
		}
	}
	return false, nil
}
