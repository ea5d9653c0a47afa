package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// The volume is mounted by the pods that find something on it, and by no others:
// where it can be attached to one node only, who mounts it has to run there.

// withVolume mounts the volume claim of the spec, if it is used.
func withVolume(m *mlflowv1.MLflow, used bool) part {
	if !used {
		return part{}
	}
	claim := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	return part{
		volumes: []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName("mlflow-storage").WithPersistentVolumeClaim(claim)},
		mounts:  []*corev1ac.VolumeMountApplyConfiguration{mount("mlflow-storage", storagePath)},
	}
}

// serverUsesVolume reports whether the server keeps metadata, artifacts or archived traces in files, or may do so: nothing is known of a
// URI in a Secret. It reads the archive, also beside a server for artifacts.
func serverUsesVolume(m *mlflowv1.MLflow) bool {
	spec := &m.Spec
	if spec.Storage == nil {
		return false
	}
	serves := spec.ServeArtifacts && (spec.ArtifactsDestination == "" || isFile(spec.ArtifactsDestination))
	return metadataMayBeFiles(m) || mayBeFile(m, spec.ReadReplicaBackendStoreURI, spec.ReadReplicaBackendStoreURIFrom) ||
		serves || isFile(spec.DefaultArtifactRoot) || archivesToFiles(m)
}

// archiverUsesVolume reports whether the archival of traces reads or writes files.
func archiverUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (metadataMayBeFiles(m) || archivesToFiles(m))
}

// collectorUsesVolume reports whether garbage collection removes something from files by itself. Artifacts that are served are removed
// by their server; those below a root of files, by the collector.
func collectorUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (backendMayBeFile(m) || isFile(m.Spec.DefaultArtifactRoot))
}

// forManyNodes reports whether the volume can be mounted on several nodes at once.
func forManyNodes(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && slices.Contains(m.Spec.Storage.AccessModes, corev1.ReadWriteMany)
}

func metadataMayBeFiles(m *mlflowv1.MLflow) bool {
	return backendMayBeFile(m) || mayBeFile(m, m.Spec.RegistryStoreURI, m.Spec.RegistryStoreURIFrom)
}

// backendMayBeFile is true also for an MLflow that was stored before the backend
// became mandatory, whose database is on its volume.
func backendMayBeFile(m *mlflowv1.MLflow) bool {
	uri := m.Spec.BackendStoreURI
	if uri == "" {
		uri = defaultBackend
	}
	return mayBeFile(m, uri, m.Spec.BackendStoreURIFrom)
}

// mayBeFile is false beside a server for artifacts, with which stores are none, those in Secrets neither.
func mayBeFile(m *mlflowv1.MLflow, uri string, from *corev1.SecretKeySelector) bool {
	return !Splits(m) && (from != nil || strings.HasPrefix(uri, "sqlite"))
}

func archivesToFiles(m *mlflowv1.MLflow) bool {
	return Archives(m) && isFile(m.Spec.TraceArchival.Location)
}

func isFile(uri string) bool { return strings.HasPrefix(uri, "file://") }
