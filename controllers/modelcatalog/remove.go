package modelcatalog

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// deleteUndesired deletes legacy objects, and objects without an owner reference that are no longer desired.
func (r *catalogReconciler) deleteUndesired(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in := r.inputsOf(c)
	errs := []error{r.takeOver.Prune(ctx, c, nil)}
	if !resources.HasAuthProxy(c) {
		errs = append(errs, r.deleteUnowned(ctx, c, servers.ClusterRoleBinding, ""))
	}
	if in.Served.Has(capability.HTTPRoute) {
		desiredNamespace := ""
		if in.ViaGateway() {
			desiredNamespace = in.Gateway.RouteNamespace
		}
		errs = append(errs, r.deleteUnowned(ctx, c, capability.HTTPRoute, desiredNamespace))
	}
	return errors.Join(errs...)
}

// deleteUnowned deletes the managed objects of a kind of this Catalog, except in desiredNamespace. They have no owner reference to a Catalog.
func (r *catalogReconciler) deleteUnowned(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, desiredNamespace string) error {
	return r.Applier.DeleteByLabels(ctx, c.UID, kind, map[string]string{resources.LabelNamespace: c.Namespace}, func(o client.Object) bool {
		return desiredNamespace != "" && o.GetNamespace() == desiredNamespace
	})
}

// finalize deletes the ClusterRoleBinding and the HTTPRoute, which garbage collection cannot delete. Objects of another Catalog are kept. A
// Catalog with an invalid name was never active and has no such objects.
func (r *catalogReconciler) finalize(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if c.Name != aihubv1alpha1.CatalogName {
		return nil
	}
	if err := r.waitForPlatform(c); err != nil {
		return err
	}
	in := r.inputsOf(c)
	errs := []error{r.deleteUnownedByName(ctx, c, servers.ClusterRoleBinding, client.ObjectKey{Name: resources.DelegatorBinding})}
	if in.Served.Has(capability.HTTPRoute) {
		errs = append(errs,
			r.deleteUnownedByName(ctx, c, capability.HTTPRoute, client.ObjectKey{Namespace: in.Gateway.RouteNamespace, Name: resources.Name}),
			r.deleteUnowned(ctx, c, capability.HTTPRoute, ""))
	}
	return errors.Join(append(errs, r.takeOver.Finalize(ctx, c))...)
}

// deleteUnownedByName reads an object from the API server, and deletes it if it belongs to this Catalog.
func (r *catalogReconciler) deleteUnownedByName(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, key client.ObjectKey) error {
	return r.Applier.DeleteIf(ctx, c.UID, kind, key, func(found *metav1.PartialObjectMetadata) (bool, error) {
		return resources.IsManaged(found) && found.Labels[resources.LabelNamespace] == c.Namespace, nil
	})
}

// deleteOutdated deletes outdated Deployments, after it has applied the other objects to remove owner references to the Deployments. It
// returns a Wait until the Deployments are deleted. A later reconcile creates the new ones.
func (r *catalogReconciler) deleteOutdated(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	var outdated []*appsv1.Deployment
	for _, object := range desired.InStages(apply.Workloads) {
		live, err := r.Deployment(ctx, c.Namespace, object.Key().Name)
		if err != nil {
			return err
		}
		if isOutdated(live) && isReplaceable(object, live, c) {
			outdated = append(outdated, live)
		}
	}
	if len(outdated) == 0 {
		return nil
	}
	if err := r.Applier.Apply(ctx, c, desired.InStages(apply.Prerequisites, apply.Exposure)); err != nil {
		return r.reportApplyError(c, err)
	}
	for _, d := range outdated {
		if err := r.Applier.DeleteOwned(ctx, c.UID, d, apply.Foreground); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "Deployment " + outdated[0].Name + " to be deleted", Retry: reconciler.RequeueSoon}
}

// isOutdated reports whether a Deployment cannot be updated: its selector is immutable, and the strategy of the database cannot change while
// fields of RollingUpdate are stored.
func isOutdated(d *appsv1.Deployment) bool {
	selector := &metav1.LabelSelector{MatchLabels: resources.Selector(d.Name)}
	return d.Spec.Selector != nil && !equality.Semantic.DeepEqual(d.Spec.Selector, selector) || d.Name == resources.DatabaseName && d.Spec.Strategy.RollingUpdate != nil
}

// isReplaceable reports whether the take-over adopts a Deployment or, without a take-over, whether the Catalog controls it. For others,
// Apply reports the conflict.
func isReplaceable(desired apply.Object, live *appsv1.Deployment, c *aihubv1alpha1.Catalog) bool {
	if desired.AdoptIf == nil {
		return resources.IsManaged(live) && metav1.IsControlledBy(live, c)
	}
	metadata := &unstructured.Unstructured{}
	metadata.SetLabels(live.Labels)
	metadata.SetAnnotations(live.Annotations)
	metadata.SetOwnerReferences(live.OwnerReferences)
	return desired.AdoptIf(metadata)
}
