package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func TestClaim(t *testing.T) {
	rwo, rwx := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
	for name, c := range map[string]struct {
		given, want corev1.PersistentVolumeClaimSpec
	}{
		"[mlflow-22] empty": {corev1.PersistentVolumeClaimSpec{},
			corev1.PersistentVolumeClaimSpec{AccessModes: rwo, Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("2Gi")}}},
		"[mlflow-22] size, class and modes": {
			corev1.PersistentVolumeClaimSpec{AccessModes: rwx, StorageClassName: new("fast"), Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("20Gi")}},
			corev1.PersistentVolumeClaimSpec{AccessModes: rwx, StorageClassName: new("fast"), Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("20Gi")}}},
		"[D23] an empty class means the default class": {corev1.PersistentVolumeClaimSpec{StorageClassName: new("")},
			corev1.PersistentVolumeClaimSpec{AccessModes: rwo, Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("2Gi")}}},
		"[D23] a limit without a request": {
			corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Limits: mlflowtest.StorageRequest("9Gi")}},
			corev1.PersistentVolumeClaimSpec{AccessModes: rwo, Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("2Gi"), Limits: mlflowtest.StorageRequest("9Gi")}}},
		"[D23] statically provisioned volume": {
			corev1.PersistentVolumeClaimSpec{StorageClassName: new(""), VolumeName: "disk", VolumeMode: new(corev1.PersistentVolumeFilesystem),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "tracking"}}},
			corev1.PersistentVolumeClaimSpec{StorageClassName: new(""), VolumeName: "disk", VolumeMode: new(corev1.PersistentVolumeFilesystem),
				Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "tracking"}},
				AccessModes: rwo, Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("2Gi")}}},
		"[D23] from a snapshot": {
			corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "s"},
				VolumeAttributesClassName: new("gold")},
			corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "s"},
				VolumeAttributesClassName: new("gold"), AccessModes: rwo, Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("2Gi")}}},
	} {
		t.Run(name, func(t *testing.T) {
			given := c.given.DeepCopy()
			claim := typed[corev1.PersistentVolumeClaim](t, mlflowtest.MLflow(mlflowtest.WithStorage(c.given)), platformInputs["plain"], "PersistentVolumeClaim", "mlflow-pvc")
			if diff := cmp.Diff(c.want, claim.Spec); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*given, c.given); diff != "" {
				t.Errorf("Build modified the spec (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("[mlflow-22] no claim without spec.storage", func(t *testing.T) {
		if mlflowtest.Object(buildObjects(t, mlflowtest.MLflow(), platformInputs["plain"]), "PersistentVolumeClaim", "mlflow-pvc") != nil {
			t.Error("got a claim without spec.storage")
		}
	})
}

func TestClaimOwner(t *testing.T) {
	for policy, owned := range map[mlflowv1.StorageRetentionPolicy]bool{"": false, mlflowv1.StorageRetain: false, mlflowv1.StorageDelete: true} {
		t.Run("[D23] "+string(policy), func(t *testing.T) {
			m := mlflowtest.MLflow(mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}), func(s *mlflowv1.MLflowSpec) { s.StorageRetentionPolicy = policy })
			claim := mlflowtest.Object(buildObjects(t, m, platformInputs["plain"]), "PersistentVolumeClaim", "mlflow-pvc")
			if metav1.IsControlledBy(claim, m) != owned {
				t.Errorf("owner references with retention policy %q: %v", policy, claim.GetOwnerReferences())
			}
		})
	}
}

// A pod mounts the volume if a location is a local path. MLflow treats a location without a scheme as a local path.
func TestVolumeForLocalPaths(t *testing.T) {
	for location, want := range map[string]bool{
		"file:///mlflow/a": true, "file:/mlflow/a": true, "FILE:///mlflow/a": true, "file://localhost/mlflow/a": true, "/mlflow/a": true, "./mlruns": true,
		"mlruns": true, "/mlflow/a:b": true, "": false, "s3://bucket/path": false, "S3://bucket": false, "gs://b": false, "mlflow-artifacts:/": false,
		"dbfs:/x": false, "abfss://c@a.dfs.core.windows.net/x": false, "https://example.com/file:/x": false,
	} {
		if got := isFile(location); got != want {
			t.Errorf("%q: local path %t, want %t", location, got, want)
		}
		m := mlflowtest.MLflow(mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
			s.BackendStoreURI, s.ServeArtifacts, s.Storage = "postgresql://db/x", true, &corev1.PersistentVolumeClaimSpec{}
			s.ArtifactsDestination, s.TraceArchival.Location = location, "s3://bucket/traces"
		})
		if got := serverUsesVolume(m); got != (want || location == "") {
			t.Errorf("artifacts in %q: server uses the volume %t", location, got)
		}
		m.Spec.ArtifactsDestination, m.Spec.TraceArchival.Location = "s3://bucket", location
		if serverUsesVolume(m) != want || archivalUsesVolume(m) != want {
			t.Errorf("trace archive in %q: server uses the volume %t, archival %t", location, serverUsesVolume(m), archivalUsesVolume(m))
		}
	}
}
