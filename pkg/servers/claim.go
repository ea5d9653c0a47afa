package servers

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// ClaimSpec is the desired size and storage class of an existing claim, nil for any, and the paths of their fields in the spec.
type ClaimSpec struct {
	Size                  *resource.Quantity
	Class                 *string
	SizeField, ClassField string
}

// Difference returns why the claim cannot have the spec, or "": it is terminating, or a fixed field differs. A bound claim can be expanded.
func (s *ClaimSpec) Difference(claim *corev1.PersistentVolumeClaim) string {
	if claim.DeletionTimestamp != nil {
		return apply.NewTerminatingError(Claim.Kind, claim).Error() + ", without its data: copy the data while pods still use the claim"
	}
	size, class := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Spec.StorageClassName
	switch {
	case s.Size != nil && (s.Size.Cmp(size) < 0 || IsUnbound(claim) && s.Size.Cmp(size) > 0):
		return ClaimDifference(claim, s.SizeField, s.Size.String(), size.String())
	case s.Class != nil && class != nil && *s.Class != *class:
		return ClaimDifference(claim, s.ClassField, strconv.Quote(*s.Class), strconv.Quote(*class))
	}
	return ""
}

// ClaimDifference returns the message for a field whose desired value differs from that of the claim.
func ClaimDifference(claim *corev1.PersistentVolumeClaim, field, desired, current string) string {
	fix := "Kubernetes cannot change this field of a claim: set the field to the value of the claim, or move the data to a new claim"
	if IsUnbound(claim) {
		fix = fmt.Sprintf("the claim has no volume yet, and so no data: delete it with kubectl -n %s delete pvc %s, and the operator recreates it from the spec",
			claim.Namespace, claim.Name)
	}
	return fmt.Sprintf("%s is %s and PersistentVolumeClaim %s has %s; %s", field, desired, claim.Name, current, fix)
}

// IsUnbound reports whether a claim is waiting for its volume and so has no data.
func IsUnbound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

// SetStorageClassIfUnbound sets the storage class of an unbound claim without one, the only change of a class that the API server allows.
func SetStorageClassIfUnbound(claim *corev1.PersistentVolumeClaim, class *string) {
	if class != nil && *class != "" && claim.Spec.StorageClassName == nil && IsUnbound(claim) {
		claim.Spec.StorageClassName = class
	}
}
