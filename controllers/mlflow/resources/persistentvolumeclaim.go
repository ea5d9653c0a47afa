package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const defaultClaimSize = "2Gi"

// PVC is the volume claim of the spec. Under Retain, the default, it has
// no owner: it outlives the MLflow and is found again by its labels.
func PVC(m *mlflowv1.MLflow, in Inputs) apply.Object {
	config := corev1ac.PersistentVolumeClaim(ClaimName(m), in.Namespace).
		WithLabels(Labels(NameOf(m))).
		WithSpec(claimSpec(m))
	ownership := apply.Unowned
	if !Retains(m) {
		ownership = apply.Controlled
	}
	return apply.Object{Config: config, Ownership: ownership}
}

// claimSpec is spec.storage with the defaults for what it leaves open.
func claimSpec(m *mlflowv1.MLflow) *corev1ac.PersistentVolumeClaimSpecApplyConfiguration {
	spec := resources.MustApply[corev1ac.PersistentVolumeClaimSpecApplyConfiguration](m.Spec.Storage)
	if len(spec.AccessModes) == 0 {
		spec.WithAccessModes(corev1.ReadWriteOnce)
	}
	if _, found := m.Spec.Storage.Resources.Requests[corev1.ResourceStorage]; !found {
		setSize(spec, resource.MustParse(defaultClaimSize))
	}
	return spec
}

// setSize requests a size and leaves other requests and limits alone.
func setSize(spec *corev1ac.PersistentVolumeClaimSpecApplyConfiguration, size resource.Quantity) {
	if spec.Resources == nil {
		spec.WithResources(corev1ac.VolumeResourceRequirements())
	}
	if spec.Resources.Requests == nil {
		spec.Resources.WithRequests(corev1.ResourceList{})
	}
	(*spec.Resources.Requests)[corev1.ResourceStorage] = size
}

// Retains reports whether the claim outlives its MLflow; only an explicit Delete says otherwise.
func Retains(m *mlflowv1.MLflow) bool { return m.Spec.StorageRetentionPolicy != mlflowv1.StorageDelete }
