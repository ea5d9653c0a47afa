package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// IsUnbound reports whether a claim is waiting for its volume and so has no data.
func IsUnbound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

// SetStorageClassIfUnbound sets the storage class of an unbound claim without one, the only change that the API server allows.
func SetStorageClassIfUnbound(claim *corev1.PersistentVolumeClaim, class *string) {
	if class != nil && *class != "" && claim.Spec.StorageClassName == nil && IsUnbound(claim) {
		claim.Spec.StorageClassName = class
	}
}

// UnboundHint returns how to change class or size of an unbound claim.
func UnboundHint(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("the claim has no volume yet, and so no data: delete it with kubectl -n %s delete pvc %s, and it is created as the spec says",
		claim.Namespace, claim.Name)
}
