package resources

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const defaultClaimSize = "2Gi"

// PersistentVolumeClaim returns the claim of the spec. With the default policy Retain it has no owner, so that it outlives the MLflow.
func PersistentVolumeClaim(m *mlflowv1.MLflow, in Inputs) apply.Object {
	config := corev1ac.PersistentVolumeClaim(ClaimName(m), in.Namespace).
		WithLabels(Labels(NameOf(m))).
		WithSpec(claimSpec(m))
	ownership := apply.Unowned
	if !Retains(m) {
		ownership = apply.Controlled
	}
	return apply.Object{Config: config, Ownership: ownership}
}

// claimSpec returns spec.storage with defaults.
func claimSpec(m *mlflowv1.MLflow) *corev1ac.PersistentVolumeClaimSpecApplyConfiguration {
	spec := m.Spec.Storage.DeepCopy()
	if class := spec.StorageClassName; class != nil && *class == "" && spec.VolumeName == "" && spec.Selector == nil {
		spec.StorageClassName = nil // "" means the default class, as in Helm charts and in the legacy operator, unless a volume is selected
	}
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	requests := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultClaimSize)}
	maps.Copy(requests, spec.Resources.Requests)
	spec.Resources.Requests = requests
	return resources.MustApply[corev1ac.PersistentVolumeClaimSpecApplyConfiguration](spec)
}

// Retains reports whether the claim outlives its MLflow, which is the default.
func Retains(m *mlflowv1.MLflow) bool { return m.Spec.StorageRetentionPolicy != mlflowv1.StorageDelete }

// withVolume mounts the volume if it is used: a pod that mounts it may have to run on the node of the server.
func withVolume(m *mlflowv1.MLflow, used bool) part {
	if !used {
		return part{}
	}
	claim := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	return mounted(corev1ac.Volume().WithName("mlflow-storage").WithPersistentVolumeClaim(claim), mount("mlflow-storage", storagePath))
}

// serverUsesVolume reports whether the tracking server may store metadata, artifacts or archived traces in files. It reads the archive even if
// there is an artifacts server.
func serverUsesVolume(m *mlflowv1.MLflow) bool {
	spec := &m.Spec
	serves := spec.ServeArtifacts && (spec.ArtifactsDestination == "" || isFile(spec.ArtifactsDestination))
	return spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore, envReadReplica) ||
		serves || isFile(spec.DefaultArtifactRoot) || archivesToFiles(m))
}

// archivalUsesVolume reports whether trace archival may read or write files.
func archivalUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore) || archivesToFiles(m))
}

// garbageCollectionUsesVolume reports whether garbage collection accesses files directly. It removes artifacts in a local artifact root itself,
// and served artifacts through the server.
func garbageCollectionUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore) || isFile(m.Spec.DefaultArtifactRoot))
}

// mayUseFiles reports whether one of the stores may be a file. A URI in a Secret is unknown; with an artifacts server no store is a file.
func mayUseFiles(m *mlflowv1.MLflow, variables ...string) bool {
	return !HasArtifactsServer(m) && slices.ContainsFunc(Stores(m), func(s Store) bool {
		return slices.Contains(variables, s.variable) && (s.From != nil || strings.HasPrefix(s.URI, "sqlite"))
	})
}

func archivesToFiles(m *mlflowv1.MLflow) bool {
	return Archives(m) && isFile(m.Spec.TraceArchival.Location)
}

var hasScheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*):`)

// isFile reports whether MLflow treats a location as a local path: without a scheme, or with the scheme file in any case.
func isFile(location string) bool {
	scheme := hasScheme.FindStringSubmatch(location)
	return location != "" && (scheme == nil || strings.EqualFold(scheme[1], "file"))
}
