package mlflow

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// The claim holds a user's database and artifacts, so it is treated unlike every other child: it is created once, never
// respecified, and by default without an owner. An owner reference that were removed only on deletion would come too late
// for a foreground deletion, where the garbage collector removes dependents before it waits for finalizers.

// ownsClaim reports whether a live claim was made by this operator or by the one it replaces. Any other claim of the name
// is used as it is and never changed.
func ownsClaim(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Labels[names.OperatorLabel] == names.OperatorName {
		return true
	}
	return claim.Labels[resources.LabelApp] == resources.BaseName && claim.Labels[resources.LabelComponent] == resources.BaseName ||
		slices.ContainsFunc(claim.OwnerReferences, isMLflow)
}

// markClaim gives a live claim of ours the marks and the owner that it should have.
func markClaim(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, names.Labels(ComponentName))
	claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool {
		return isMLflow(o) && (resources.Retains(m) || o.UID != m.UID)
	})
	if !resources.Retains(m) && len(claim.OwnerReferences) == 0 {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, mlflowv1.GroupVersion.WithKind("MLflow"))}
	}
}

// growClaim asks for the size of the spec where that is larger.
func growClaim(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	if want := wantedSize(m); want != nil && want.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) > 0 {
		if claim.Spec.Resources.Requests == nil {
			claim.Spec.Resources.Requests = corev1.ResourceList{}
		}
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = *want
	}
}

// claimDifference says in one line what of spec.storage the live claim cannot follow; empty when it follows.
func claimDifference(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) string {
	const fix = "; a claim cannot change that: set the value of the claim, or move the data to a new claim"
	spec := m.Spec.Storage
	if spec == nil {
		return ""
	}
	if claim.DeletionTimestamp != nil {
		return apply.Deleting(claimKind.Kind, claim).Error() + ", without its data: copy them while there are pods that use it"
	}
	have := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if want := wantedSize(m); want != nil && want.Cmp(have) < 0 {
		return fmt.Sprintf("spec.storage.resources.requests.storage is %s and PersistentVolumeClaim %s has %s%s", want, claim.Name, have.String(), fix)
	}
	if len(spec.AccessModes) > 0 && !slices.Equal(spec.AccessModes, claim.Spec.AccessModes) {
		return fmt.Sprintf("spec.storage.accessModes is %v and PersistentVolumeClaim %s has %v%s", spec.AccessModes, claim.Name, claim.Spec.AccessModes, fix)
	}
	if class := spec.StorageClassName; class != nil && claim.Spec.StorageClassName != nil && *class != *claim.Spec.StorageClassName {
		return fmt.Sprintf("spec.storage.storageClassName is %q and PersistentVolumeClaim %s has %q%s", *class, claim.Name, *claim.Spec.StorageClassName, fix)
	}
	return ""
}

// wantedSize is the size that the spec names, nil when it names none.
func wantedSize(m *mlflowv1.MLflow) *resource.Quantity {
	if m.Spec.Storage == nil {
		return nil
	}
	if size, ok := m.Spec.Storage.Resources.Requests[corev1.ResourceStorage]; ok {
		return &size
	}
	return nil
}

func isMLflow(o metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(o.APIVersion)
	return err == nil && group.Group == mlflowv1.GroupVersion.Group && o.Kind == "MLflow"
}
