package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Unbound reports whether a claim waits for its volume, so that there are no data in it.
func IsUnbound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

// ClassForUnbound gives a claim that waits for its volume the storage class of a spec, if it has none: the API server allows that alone.
func SetStorageClassIfUnbound(claim *corev1.PersistentVolumeClaim, class *string) {
	if class != nil && *class != "" && claim.Spec.StorageClassName == nil && IsUnbound(claim) {
		claim.Spec.StorageClassName = class
	}
}

// UnboundFix says how a claim that waits for its volume gets another class or size.
func UnboundHint(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("the claim has no volume yet, and so no data: delete it with kubectl -n %s delete pvc %s, and it is created as the spec says",
		claim.Namespace, claim.Name)
}
