package mlflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// The claim holds data of a user. An existing claim is never applied. By default it has no owner, because removing the ownerReference on
// deletion would be too late: in a foreground deletion the garbage collector deletes dependents before finalizers run.

// reconcileClaim creates the claim, or updates the labels, owner, size and storage class of an existing managed one. Without spec.storage
// it changes only labels and owner. A rejected update is reported in ConditionStorage and blocks nothing else.
func (r *mlflowReconciler) reconcileClaim(ctx context.Context, m *mlflowv1.MLflow, nonFatal *nonFatalErrors) error {
	if m.Spec.Storage == nil {
		err := r.releaseClaim(ctx, m)
		nonFatal.add("releasing the PersistentVolumeClaim", err)
		if err == nil || apierrors.IsConflict(err) {
			reportClaim(m, "")
		}
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	found, err := r.Find(ctx, client.ObjectKey{Namespace: r.inputs().Namespace, Name: resources.ClaimName(m)}, claim)
	if err == nil && !found {
		reportClaim(m, "")
		return reportApplyError(m, r.Applier.Apply(ctx, m, apply.Desired{resources.PersistentVolumeClaim(m, r.inputs())}))
	}
	if err != nil {
		return reportApplyError(m, &apply.Error{Kind: servers.Claim.Kind, Name: resources.ClaimName(m), Err: err})
	}
	difference := claimDifference(claim, m)
	if isManagedClaim(claim) {
		err = r.updateClaim(ctx, m, claim)
		nonFatal.add("updating the PersistentVolumeClaim", err)
	}
	if err == nil || apierrors.IsConflict(err) {
		reportClaim(m, difference)
	}
	return nil
}

// releaseClaim removes the owner of a managed claim that spec.storage no longer configures, unless the claim must be deleted with the
// MLflow. A claim of the legacy operator, which the cache does not contain, is looked up once per MLflow and process.
func (r *mlflowReconciler) releaseClaim(ctx context.Context, m *mlflowv1.MLflow) error {
	if !resources.Retains(m) {
		return nil
	}
	claim, key := &corev1.PersistentVolumeClaim{}, client.ObjectKey{Namespace: r.inputs().Namespace, Name: resources.ClaimName(m)}
	err := r.Cached.Get(ctx, key, claim)
	if _, lookedUp := r.claimLookups.Get(m.UID); apierrors.IsNotFound(err) && !lookedUp {
		err = r.APIReader.Get(ctx, key, claim)
	}
	if err == nil && isManagedClaim(claim) {
		err = r.updateClaim(ctx, m, claim)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.claimLookups.Set(m.UID, struct{}{})
	return nil
}

// updateClaim updates a managed claim. The metadata has its own patch, so that a rejected expansion does not block it.
func (r *mlflowReconciler) updateClaim(ctx context.Context, m *mlflowv1.MLflow, claim *corev1.PersistentVolumeClaim) error {
	reason, err := ReasonApplyFailed, r.Applier.PatchExisting(ctx, claim, func() { setClaimMetadata(claim, m) })
	if err == nil && m.Spec.Storage != nil {
		reason, err = ReasonExpansionRefused, r.Applier.PatchExisting(ctx, claim, func() { expandClaim(claim, m) })
	}
	if err == nil && m.Spec.Storage != nil {
		reason, err = ReasonApplyFailed, r.Applier.PatchExisting(ctx, claim, func() { servers.SetStorageClassIfUnbound(claim, m.Spec.Storage.StorageClassName) })
	}
	if err != nil && !apierrors.IsConflict(err) {
		cause := err
		if failed, ok := errors.AsType[*apply.Error](err); ok {
			cause = failed.Err // the message below names the object
		}
		setCondition(m, ConditionStorage, metav1.ConditionFalse, reason,
			fmt.Sprintf("PersistentVolumeClaim %s could not be changed: %v", claim.Name, cause))
	}
	return err
}

// isManagedClaim reports whether this operator or the legacy operator created the claim. Any other claim of that name is mounted
// but never changed.
func isManagedClaim(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Labels[names.OperatorLabel] == names.OperatorName {
		return true
	}
	return claim.Labels[resources.LabelApp] == resources.BaseName && claim.Labels[resources.LabelComponent] == resources.BaseName ||
		slices.ContainsFunc(claim.OwnerReferences, resources.IsMLflow)
}

// setClaimMetadata sets the operator labels, and the owner according to the retention policy.
func setClaimMetadata(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	claim.Labels = labels.Merge(claim.Labels, names.Labels(ComponentName))
	claim.OwnerReferences = servers.DataOwnerReferences(claim, m, mlflowv1.GroupVersion.WithKind("MLflow"), resources.Retains(m))
}

// expandClaim requests the size of the spec if it is larger. The API server accepts an expansion only of a bound claim.
func expandClaim(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) {
	if servers.IsUnbound(claim) {
		return
	}
	requests := claim.Spec.Resources.Requests
	if desired, set := m.Spec.Storage.Resources.Requests[corev1.ResourceStorage]; set && desired.Cmp(requests[corev1.ResourceStorage]) > 0 {
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		requests[corev1.ResourceStorage] = desired
		claim.Spec.Resources.Requests = requests
	}
}

// claimDifference returns why the claim cannot be updated to match spec.storage, or "".
func claimDifference(claim *corev1.PersistentVolumeClaim, m *mlflowv1.MLflow) string {
	storage := m.Spec.Storage
	spec := servers.ClaimSpec{Class: storage.StorageClassName, SizeField: "spec.storage.resources.requests.storage", ClassField: "spec.storage.storageClassName"}
	if size, set := storage.Resources.Requests[corev1.ResourceStorage]; set {
		spec.Size = &size
	}
	if ptr.Deref(spec.Class, "") == "" {
		spec.Class = nil // "" means the default class
	}
	difference := spec.Difference(claim)
	if difference == "" && len(storage.AccessModes) > 0 && !slices.Equal(storage.AccessModes, claim.Spec.AccessModes) {
		difference = servers.ClaimDifference(claim, "spec.storage.accessModes", fmt.Sprint(storage.AccessModes), fmt.Sprint(claim.Spec.AccessModes))
	}
	return difference
}
