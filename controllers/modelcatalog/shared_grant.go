package modelcatalog

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// sharedGrantName is the ReferenceGrant to every Service of a namespace that the original made for registries and the catalog.
const sharedGrantName = "allow-gateway-httproutes"

// removeSharedGrant removes the grant of the original where the catalog alone lived by it: its own one was written before. Where
// there are registries, their controller knows whether they need it still. It is looked for once: nothing makes another one.
func (r *catalogs) removeSharedGrant(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	past := &metav1.PartialObjectMetadata{}
	past.Name = sharedGrantName
	past.UID = c.UID
	if !r.seen(c).ReferenceGrants || r.state.isGood(c.UID, sharedGrantName, past) {
		return nil
	}
	grant := head(capability.ReferenceGrant)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: sharedGrantName}, grant)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("reading ReferenceGrant %s: %w", sharedGrantName, err)
	}
	if err == nil && (ours(grant) || grant.GetLabels()[labelCreatedBy] == createdBy) { // its labels name the component of registries
		alone, err := r.withoutRegistries(ctx, c.Namespace)
		if err != nil {
			return err
		}
		if alone {
			err = r.applier.Remove(ctx, c.UID, grant)
		}
		if err != nil && !apierrors.IsConflict(err) { // a conflict: another one has the name
			return err
		}
	}
	r.state.found(c.UID, sharedGrantName, past)
	return nil
}

// withoutRegistries says whether no registry lives in a namespace.
func (r *catalogs) withoutRegistries(ctx context.Context, namespace string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.Kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("listing model registries: %w", err)
	}
	return len(list.Items) == 0, nil
}
