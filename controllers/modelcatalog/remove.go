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
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

// removeUnwanted removes what garbage collection does not see: what older releases left, and what stands outside of the
// namespace and is no longer wanted.
func (r *catalogReconciler) deleteUnwanted(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in := r.inputsOf(c)
	errs := []error{r.deleteLegacyObjects(ctx, c, in)}
	if !resources.HasProxy(c) {
		errs = append(errs, r.deleteUnowned(ctx, c, registry.ClusterRoleBinding, ""))
	}
	if in.HTTPRoutes {
		keep := ""
		if in.GatewayMode() {
			keep = in.Gateway.RouteNamespace
		}
		errs = append(errs, r.deleteUnowned(ctx, c, capability.HTTPRoute, keep))
	}
	return errors.Join(errs...)
}

// removeOutside removes our objects of a kind that has no owner, of this Catalog, but for those in the namespace that is kept.
func (r *catalogReconciler) deleteUnowned(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, keep string) error {
	return r.applier.DeleteByLabels(ctx, c.UID, kind, map[string]string{resources.LabelNamespace: c.Namespace}, func(o client.Object) bool {
		return keep != "" && o.GetNamespace() == keep
	})
}

// finalize removes what garbage collection cannot: the binding of cluster scope and the HTTPRoute in another namespace, also
// those of an older release. What belongs to the Catalog of another namespace stays, and a Catalog whose name never let it be in
// charge has made nothing.
func (r *catalogReconciler) finalize(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if c.Name != aihubv1alpha1.CatalogName {
		return nil
	}
	if err := r.waitForPlatform(c); err != nil {
		return err
	}
	in := r.inputsOf(c)
	errs := []error{r.deleteUnownedByName(ctx, c, registry.ClusterRoleBinding, client.ObjectKey{Name: resources.DelegatorBinding})}
	if in.HTTPRoutes {
		errs = append(errs,
			r.deleteUnownedByName(ctx, c, capability.HTTPRoute, client.ObjectKey{Namespace: in.Gateway.RouteNamespace, Name: resources.Name}),
			r.deleteUnowned(ctx, c, capability.HTTPRoute, ""))
	}
	return errors.Join(errs...)
}

// removeLive removes one object by name, as the API server has it.
func (r *catalogReconciler) deleteUnownedByName(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, key client.ObjectKey) error {
	return r.applier.DeleteIf(ctx, c.UID, kind, key, func(found *metav1.PartialObjectMetadata) (bool, error) {
		of, said := found.Labels[resources.LabelNamespace]
		if !isManagedOrLegacy(found) || said {
			return isManagedOrLegacy(found) && of == c.Namespace, nil
		}
		// An older release did not say whose it is: the one in charge keeps it.
		list := &aihubv1alpha1.CatalogList{}
		if err := r.cached.List(ctx, list); err != nil {
			return false, fmt.Errorf("listing Catalogs: %w", err)
		}
		first := activeCatalog(list.Items, r.stateOf(c.UID).platform.Namespace)
		return first == nil || first.UID == c.UID, nil
	})
}
