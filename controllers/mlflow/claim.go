package mlflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// The claim holds a user's database and artifacts, so it is treated unlike every other child: it is created once, never
// respecified, and by default without an owner. An owner reference that were removed only on deletion would come too late
// for a foreground deletion, where the garbage collector removes dependents before it waits for finalizers.

// keepClaim creates the volume claim, or brings the marks, the owner and the size of a live one up to date.
// What the API server refuses of that is reported in a condition and keeps nothing else from being done.
func (r *objects) keepClaim(ctx context.Context, m *mlflowv1.MLflow, aside *troubles) error {
	if m.Spec.Storage == nil {
		reportClaim(m, "")
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := r.read(ctx, resources.ClaimName(m), claim, r.cached, r.live)
	if apierrors.IsNotFound(err) {
		reportClaim(m, "")
		return notApplied(m, r.applier.Apply(ctx, m, apply.Desired{resources.PVC(m, r.inputs())}))
	}
	if err != nil {
		return notApplied(m, &apply.Error{Kind: claimKind.Kind, Name: resources.ClaimName(m), Err: err})
	}
	difference := claimDifference(claim, m)
	if ownsClaim(claim) {
		err = r.adjustClaim(ctx, m, claim)
		aside.add("keeping the volume claim", err)
	}
	if err == nil || apierrors.IsConflict(err) {
		reportClaim(m, difference)
	}
	return nil
}

// adjustClaim brings a claim of ours up to date. A storage class that does not let it grow keeps nothing but its size as it is.
func (r *objects) adjustClaim(ctx context.Context, m *mlflowv1.MLflow, claim *corev1.PersistentVolumeClaim) error {
	reason, err := ReasonApplyFailed, r.applier.PatchExisting(ctx, claim, func() { markClaim(claim, m) })
	if err == nil {
		reason, err = ReasonExpansionRefused, r.applier.PatchExisting(ctx, claim, func() { growClaim(claim, m) })
	}
	if err == nil {
		reason, err = ReasonApplyFailed, r.applier.PatchExisting(ctx, claim, func() { common.SetStorageClassIfUnbound(claim, m.Spec.Storage.StorageClassName) })
	}
	if err != nil && !apierrors.IsConflict(err) {
		cause := err
		if failed, ok := errors.AsType[*apply.Error](err); ok {
			cause = failed.Err // the message names the object itself
		}
		setCondition(m, ConditionStorage, metav1.ConditionFalse, reason,
			fmt.Sprintf("PersistentVolumeClaim %s could not be changed: %v", claim.Name, cause))
	}
	return err
}

// ownsClaim reports whether a live claim was made by this operator or by the one it replaces. Any other claim of the name
// is used as it is and never changed.
func ownsClaim(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Labels[names.OperatorLabel] == names.OperatorName {
		return true
	}
	return claim.Labels[resources.LabelApp] == resources.BaseName && claim.Labels[resources.LabelComponent] == resources.BaseName ||
		slices.ContainsFunc(claim.OwnerReferences, resources.IsMLflow)
}

// markClaim gives a live claim of ours the marks and the owner that it should have.
func markClaim(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, names.Labels(ComponentName))
	claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool {
		return resources.IsMLflow(o) && (resources.Retains(m) || o.UID != m.UID)
	})
	if !resources.Retains(m) && len(claim.OwnerReferences) == 0 {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, mlflowv1.GroupVersion.WithKind("MLflow"))}
	}
}

// growClaim asks for the size of the spec where that is larger. The API server lets only a bound claim grow.
func growClaim(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	if common.IsUnbound(claim) {
		return
	}
	requests := claim.Spec.Resources.Requests
	if want, named := m.Spec.Storage.Resources.Requests[corev1.ResourceStorage]; named && want.Cmp(requests[corev1.ResourceStorage]) > 0 {
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		requests[corev1.ResourceStorage] = want
		claim.Spec.Resources.Requests = requests
	}
}

// claimDifference says in one line what of spec.storage the live claim cannot follow; empty when it follows.
func claimDifference(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) string {
	fix := "; a claim cannot change that: set the value of the claim, or move the data to a new claim"
	spec := m.Spec.Storage
	if common.IsUnbound(claim) {
		fix = "; " + common.UnboundHint(claim)
	}
	if claim.DeletionTimestamp != nil {
		return apply.Deleting(claimKind.Kind, claim).Error() + ", without its data: copy them while there are pods that use it"
	}
	have := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if want, named := spec.Resources.Requests[corev1.ResourceStorage]; named && (want.Cmp(have) < 0 || common.IsUnbound(claim) && want.Cmp(have) != 0) {
		return fmt.Sprintf("spec.storage.resources.requests.storage is %s and PersistentVolumeClaim %s has %s%s",
			want.String(), claim.Name, have.String(), fix)
	}
	if len(spec.AccessModes) > 0 && !slices.Equal(spec.AccessModes, claim.Spec.AccessModes) {
		return fmt.Sprintf("spec.storage.accessModes is %v and PersistentVolumeClaim %s has %v%s", spec.AccessModes, claim.Name, claim.Spec.AccessModes, fix)
	}
	if class := spec.StorageClassName; class != nil && *class != "" && claim.Spec.StorageClassName != nil && *class != *claim.Spec.StorageClassName {
		return fmt.Sprintf("spec.storage.storageClassName is %q and PersistentVolumeClaim %s has %q%s", *class, claim.Name, *claim.Spec.StorageClassName, fix)
	}
	return ""
}
