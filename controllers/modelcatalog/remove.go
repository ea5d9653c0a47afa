package modelcatalog

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// deleteUndesired deletes objects without an owner reference that are no longer desired, and legacy objects.
func (r *catalogReconciler) deleteUndesired(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in := r.inputsOf(c)
	errs := []error{r.deleteLegacyObjects(ctx, c, in)}
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

// finalize deletes the ClusterRoleBinding and the HTTPRoute, which garbage collection cannot delete, including legacy ones. Objects of
// another Catalog are kept. A Catalog with an invalid name was never active and has no such objects.
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
	return errors.Join(errs...)
}

// deleteUnownedByName reads an object from the API server, and deletes it if it belongs to this Catalog.
func (r *catalogReconciler) deleteUnownedByName(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, key client.ObjectKey) error {
	return r.Applier.DeleteIf(ctx, c.UID, kind, key, func(found *metav1.PartialObjectMetadata) (bool, error) {
		namespace, hasNamespace := found.Labels[resources.LabelNamespace]
		if !isManagedOrLegacy(found) || hasNamespace {
			return isManagedOrLegacy(found) && namespace == c.Namespace, nil
		}
		// Legacy objects have no namespace label: they belong to the active Catalog.
		list := &aihubv1alpha1.CatalogList{}
		if err := r.Cached.List(ctx, list); err != nil {
			return false, fmt.Errorf("listing Catalogs: %w", err)
		}
		active := activeCatalog(list.Items, r.stateOf(c.UID).platform.Namespace)
		return active == nil || active.UID == c.UID, nil
	})
}
