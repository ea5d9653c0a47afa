package modelcatalog

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// leftovers are what older releases made and nothing uses any more.
var leftovers = []place{{claimKind, databaseName}, {configMapKind, formerSources}, {secretKind, cookieSecret}}

// removeUnwanted removes what garbage collection does not see: what older releases left, and what stands outside of the
// namespace and is no longer wanted.
func (r *catalogs) removeUnwanted(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	var errs []error
	for _, p := range leftovers {
		found, err := r.metadataOf(ctx, p.kind, client.ObjectKey{Namespace: c.Namespace, Name: p.name})
		if err == nil && found != nil && madeHere(found) {
			err = r.applier.Remove(ctx, c.UID, found)
		}
		errs = append(errs, err)
	}
	in := r.seen(c).Inputs
	if !proxied(c) {
		errs = append(errs, r.removeOutside(ctx, c, clusterBindingKind, ""))
	}
	if in.HTTPRoutes {
		keep := ""
		if in.gatewayMode() {
			keep = in.Gateway.RouteNamespace
		}
		errs = append(errs, r.removeOutside(ctx, c, capability.HTTPRoute, keep))
	}
	errs = append(errs, r.removeSharedGrant(ctx, c))
	return errors.Join(errs...)
}

// madeHere reports whether this operator or the one before it made an object.
func madeHere(o metav1.Object) bool {
	return ours(o) || o.GetLabels()[labelCreatedBy] == createdBy && !ofAnother(o)
}

// ofAnother says whether its labels name another component as the one that an object was made for: those of registries bear the
// same created-by, and a registry may be called as the catalog is.
func ofAnother(o metav1.Object) bool {
	former, said := o.GetLabels()[labelComponent]
	return apply.OfAnother(o, ComponentName) || said && former != baseName && former != databaseName
}

// removeOutside removes our objects of a kind that has no owner, of this Catalog, but for those in the namespace that is kept.
// They come from the cache.
func (r *catalogs) removeOutside(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, keep string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.cached.List(ctx, list, client.MatchingLabels(names.Labels(ComponentName)))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		found := &list.Items[i]
		found.SetGroupVersionKind(kind)
		if (keep != "" && found.Namespace == keep) || found.Labels[labelNamespace] != c.Namespace {
			continue
		}
		errs = append(errs, r.applier.Remove(ctx, c.UID, found))
	}
	return errors.Join(errs...)
}

// finalize removes what garbage collection cannot: the binding of cluster scope and the HTTPRoute in another namespace, also
// those of an older release. What belongs to the Catalog of another namespace stays, and a Catalog whose name never let it be in
// charge has made nothing.
func (r *catalogs) finalize(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if c.Name != aihubv1alpha1.CatalogName {
		return nil
	}
	if err := r.awaitHub(); err != nil {
		return err
	}
	in := r.look(c)
	errs := []error{
		r.removeLive(ctx, c, clusterBindingKind, client.ObjectKey{Name: delegatorBinding}),
	}
	if in.HTTPRoutes {
		errs = append(errs,
			r.removeLive(ctx, c, capability.HTTPRoute, client.ObjectKey{Namespace: in.Gateway.RouteNamespace, Name: baseName}),
			r.removeOutside(ctx, c, capability.HTTPRoute, ""))
	}
	return errors.Join(errs...)
}

// removeLive removes one object by name, as the API server has it.
func (r *catalogs) removeLive(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, key client.ObjectKey) error {
	found := head(kind)
	err := r.live.Get(ctx, key, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	of, said := found.Labels[labelNamespace]
	if !madeHere(found) || said && of != c.Namespace {
		return nil
	}
	if !said { // an older release did not say whose it is: the one in charge keeps it
		list := &aihubv1alpha1.CatalogList{}
		if err := r.cached.List(ctx, list); err != nil {
			return fmt.Errorf("listing Catalogs: %w", err)
		}
		if first := inCharge(list.Items, r.seen(c).namespace); first != nil && first.UID != c.UID {
			return nil
		}
	}
	return r.applier.Remove(ctx, c.UID, found)
}
