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
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// refusedSize is a size that the API server did not grant to a claim. It is not asked for again until claim or size change.
type refusedSize struct {
	claim         types.UID
	version, size string
	because       string
}

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

// keepClaim makes the volume claim, or puts the marks of the one that is there right and lets it grow. Nothing else of its spec
// can change, which a condition says.
func (r *registries) keepClaim(ctx context.Context, m *v1beta1.ModelRegistry) error {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: resources.ClaimName(m)}
	err := r.cached.Get(ctx, key, claim)
	if apierrors.IsNotFound(err) { // the cache holds those that bear our label
		err = r.live.Get(ctx, key, claim)
	}
	if apierrors.IsNotFound(err) {
		reportClaim(m, "")
		fresh := resources.ClaimFor(m)
		if config, ok := fresh.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration); ok {
			config.WithAnnotations(r.ownerOfData(m))
		}
		return r.applier.Create(ctx, m, fresh)
	}
	if err != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	if isOurData(claim) {
		if err := r.applier.Adjust(ctx, claim, func() {
			adjustData(claim, m)
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotationUser, r.ownerOfData(m)[annotationUser])
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotationDatabase, r.ownerOfData(m)[annotationDatabase])
		}); err != nil {
			return err
		}
	}
	because, err := r.growClaim(ctx, m, claim)
	reportClaim(m, because)
	return err
}

// growClaim raises the size of a claim of ours to the one that the spec asks for. It returns what of spec.postgres.storage the claim
// does not follow, and why.
func (r *registries) growClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim) (string, error) {
	if claim.DeletionTimestamp != nil {
		return apply.Deleting(claimKind.Kind, claim).Error() + ", without its data: copy them while there are pods that use it", nil
	}
	wish := m.Spec.Postgres.Storage
	if wish == nil {
		return "", nil
	}
	if class := claim.Spec.StorageClassName; wish.StorageClassName != nil && class != nil && *class != *wish.StorageClassName {
		return fmt.Sprintf("PersistentVolumeClaim %s has storage class %s, and that cannot become %s: set spec.postgres.storage.storageClassName back, or move the data",
			claim.Name, *class, *wish.StorageClassName), nil
	}
	if wish.Size == nil {
		return "", nil
	}
	return r.growTo(ctx, m, claim, *wish.Size)
}

// growTo raises the request of a claim. A size that was refused is not asked for again while the claim stays as it is.
func (r *registries) growTo(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim, wish resource.Quantity) (string, error) {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch wish.Cmp(size) {
	case 0:
		return "", nil
	case -1:
		return fmt.Sprintf("PersistentVolumeClaim %s asks for %s and cannot shrink to %s: set spec.postgres.storage.size back, or move the data",
			claim.Name, &size, &wish), nil
	}
	if !isOurData(claim) {
		return fmt.Sprintf("PersistentVolumeClaim %s was not made by this operator and stays at %s: raise it to %s by hand", claim.Name, &size, &wish), nil
	}
	asked := refusedSize{claim: claim.UID, version: claim.ResourceVersion, size: wish.String()}
	if before, ok := r.refusals.Get(m.UID); ok && before.claim == asked.claim && before.version == asked.version && before.size == asked.size {
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
		r.refusals.Forget(m.UID)
		return "", err
	}
	asked.because = fmt.Sprintf("PersistentVolumeClaim %s cannot grow to %s: %v", claim.Name, &wish, err)
	r.refusals.Set(m.UID, asked)
	return asked.because, nil
}

// reportClaim shows what of spec.postgres.storage the live claim does not follow, and hides the condition when it follows.
func reportClaim(m *v1beta1.ModelRegistry, difference string) {
	if difference == "" {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, difference)
}
