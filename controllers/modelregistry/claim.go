package modelregistry

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// refusedSize is a size that the API server did not grant to a claim. It is not asked for again until claim or size change.
type refusedSize struct{ version, size, because string }

// What the database in a claim was made with: its Secret may be lost, and the spec say something else since.
const (
	annotationUser     = "modelregistry.opendatahub.io/database-user"
	annotationDatabase = "modelregistry.opendatahub.io/database"
)

// ownerOfData are the annotations of the claim.
func (r *registries) ownerOfData(m *v1beta1.ModelRegistry) map[string]string {
	known, _ := r.stored.Get(m.UID) // which keepCredentials has read
	return map[string]string{annotationUser: known.user, annotationDatabase: known.database}
}

// claim reads a claim from the cache, which holds those that bear our label, or from the API server.
func (r *registries) claim(ctx context.Context, key client.ObjectKey) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := r.cached.Get(ctx, key, claim)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, claim)
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	return claim, nil
}

// keepClaim makes the volume claim, or puts the marks of the one that is there right and lets it grow. It returns what of
// spec.postgres.storage the claim does not follow.
func (r *registries) keepClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	claim, err := r.claim(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.ClaimName(m)})
	if apierrors.IsNotFound(err) {
		r.wrote.Forget(m.UID)
		fresh := resources.ClaimFor(m)
		if config, ok := fresh.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration); ok {
			config.WithAnnotations(r.ownerOfData(m)).WithAnnotations(database.Empty())
		}
		return "", r.applier.Create(ctx, m, fresh)
	}
	if err != nil {
		return "", err
	}
	wrote, err := r.wroteClaim(ctx, m, claim)
	if err != nil {
		return "", err
	}
	r.wrote.Set(m.UID, wrote)
	if isOurData(claim) {
		if err := r.applier.Adjust(ctx, claim, func() {
			adjustData(claim, m)
			annotations := maps.Clone(claim.Annotations)
			if annotations == nil {
				annotations = map[string]string{}
			}
			maps.Copy(annotations, r.ownerOfData(m))
			wrote.Annotate(annotations)
			claim.Annotations = annotations
		}); err != nil {
			return "", err
		}
	}
	return r.growClaim(ctx, m.UID, claim, m.Spec.Postgres.Storage, "spec.postgres.storage")
}

// growClaim raises the size of a claim of ours to the one that a field of the spec asks for. It returns what of it the claim does not
// follow, and why.
func (r *registries) growClaim(ctx context.Context, owner types.UID, claim *corev1.PersistentVolumeClaim, wish *v1beta1.PostgresStorage, field string) (string, error) {
	if claim.DeletionTimestamp != nil {
		return apply.Deleting(claimKind.Kind, claim).Error() + ", without its data: copy them while there are pods that use it", nil
	}
	if wish == nil {
		return "", nil
	}
	if class := claim.Spec.StorageClassName; wish.StorageClassName != nil && class != nil && *class != *wish.StorageClassName {
		return fmt.Sprintf("PersistentVolumeClaim %s has storage class %s, and that cannot become %s: set %s.storageClassName back, or move the data",
			claim.Name, *class, *wish.StorageClassName, field), nil
	}
	if wish.Size == nil {
		return "", nil
	}
	return r.growTo(ctx, owner, claim, *wish.Size, field)
}

// growTo raises the request of a claim. A size that was refused is not asked for again while the claim stays as it is.
func (r *registries) growTo(ctx context.Context, owner types.UID, claim *corev1.PersistentVolumeClaim, wish resource.Quantity, field string) (string, error) {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch wish.Cmp(size) {
	case 0:
		return "", nil
	case -1:
		return fmt.Sprintf("PersistentVolumeClaim %s asks for %s and cannot shrink to %s: set %s.size back, or move the data",
			claim.Name, &size, &wish, field), nil
	}
	if !isOurData(claim) {
		return fmt.Sprintf("PersistentVolumeClaim %s was not made by this operator and stays at %s: raise it to %s by hand", claim.Name, &size, &wish), nil
	}
	asked := refusedSize{version: claim.ResourceVersion, size: wish.String()}
	refusals, _ := r.refusals.Get(owner)
	if before, ok := refusals[field]; ok && before.version == asked.version && before.size == asked.size {
		return before.because, nil
	}
	err := r.applier.Adjust(ctx, claim, func() {
		requests := maps.Clone(claim.Spec.Resources.Requests)
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		requests[corev1.ResourceStorage] = wish
		claim.Spec.Resources.Requests = requests
	})
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		delete(refusals, field)
		return "", err
	}
	asked.because = fmt.Sprintf("PersistentVolumeClaim %s cannot grow to %s: %v", claim.Name, &wish, err)
	if refusals == nil {
		refusals = map[string]refusedSize{}
		r.refusals.Set(owner, refusals)
	}
	refusals[field] = asked
	return asked.because, nil
}

// reportClaim shows what of the spec the live claims do not follow, and hides the condition when they follow.
func reportClaim(m *v1beta1.ModelRegistry, difference string) {
	if difference == "" {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, difference)
}
