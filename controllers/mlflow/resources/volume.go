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

// PVC is the volume claim of the spec. Under Retain, the default, it has
// no owner: it outlives the MLflow and is found again by its labels.
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

// claimSpec is spec.storage with the defaults for what it leaves open.
func claimSpec(m *mlflowv1.MLflow) *corev1ac.PersistentVolumeClaimSpecApplyConfiguration {
	spec := m.Spec.Storage.DeepCopy()
	if class := spec.StorageClassName; class != nil && *class == "" && spec.VolumeName == "" && spec.Selector == nil {
		spec.StorageClassName = nil // the default class, as in charts and in the operator that is replaced; nothing else names a volume
	}
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	requests := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultClaimSize)}
	maps.Copy(requests, spec.Resources.Requests)
	spec.Resources.Requests = requests
	return resources.MustApply[corev1ac.PersistentVolumeClaimSpecApplyConfiguration](spec)
}

// Retains reports whether the claim outlives its MLflow; only an explicit Delete says otherwise.
func Retains(m *mlflowv1.MLflow) bool { return m.Spec.StorageRetentionPolicy != mlflowv1.StorageDelete }

// The volume is mounted by the pods that find something on it, and by no others:
// where it can be attached to one node only, who mounts it has to run there.

// withVolume mounts the volume claim of the spec, if it is used.
func withVolume(m *mlflowv1.MLflow, used bool) part {
	if !used {
		return part{}
	}
	claim := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	return mounted(corev1ac.Volume().WithName("mlflow-storage").WithPersistentVolumeClaim(claim), mount("mlflow-storage", storagePath))
}

// serverUsesVolume reports whether the server keeps metadata, artifacts or archived traces in files, or may do so. It reads the archive,
// also beside a server for artifacts.
func serverUsesVolume(m *mlflowv1.MLflow) bool {
	spec := &m.Spec
	serves := spec.ServeArtifacts && (spec.ArtifactsDestination == "" || isFile(spec.ArtifactsDestination))
	return spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore, envReadReplica) ||
		serves || isFile(spec.DefaultArtifactRoot) || archivesToFiles(m))
}

// archiverUsesVolume reports whether the archival of traces reads or writes files.
func archivalUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore) || archivesToFiles(m))
}

// collectorUsesVolume reports whether garbage collection removes something from files by itself. Artifacts that are served are removed
// by their server; those below a root of files, by the collector.
func garbageCollectionUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore) || isFile(m.Spec.DefaultArtifactRoot))
}

// mayBeFiles reports whether one of the stores in some variables is a file, or may be one: nothing is known of a URI in a Secret. Beside
// a server for artifacts none is, those in Secrets neither.
func mayUseFiles(m *mlflowv1.MLflow, variables ...string) bool {
	return !HasArtifactsServer(m) && slices.ContainsFunc(Stores(m), func(s Store) bool {
		return slices.Contains(variables, s.variable) && (s.From != nil || strings.HasPrefix(s.URI, "sqlite"))
	})
}

func archivesToFiles(m *mlflowv1.MLflow) bool {
	return Archives(m) && isFile(m.Spec.TraceArchival.Location)
}

var hasScheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*):`)

// isFile reports whether MLflow takes a location for a local path: one without a scheme, or with the scheme file, whatever its case and
// number of slashes.
func isFile(location string) bool {
	scheme := hasScheme.FindStringSubmatch(location)
	return location != "" && (scheme == nil || strings.EqualFold(scheme[1], "file"))
}
