package resources

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// The server and CronJobs mount the volume only if they use files. The migration pod mounts it if the server does. A CronJob runs on the
// node of the server only if it mounts the volume. [mlflow-22] [mlflow-96]
func TestPodsThatMountTheVolume(t *testing.T) {
	const server, gc, archival, migration = "server", "mlflow-gc", "mlflow-trace-archival", "migration"
	from := mlflowtest.SecretKey("db", "uri")
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		mount  []string
	}{
		"no files":                          {func(*mlflowv1.MLflowSpec) {}, nil},
		"backend":                           {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite:////mlflow/x.db" }, []string{server, gc, archival, migration}},
		"backend with a driver":             {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite+pysqlite:////x.db" }, []string{server, gc, archival, migration}},
		"backend in a Secret":               {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI, s.BackendStoreURIFrom = "", from }, []string{server, gc, archival, migration}},
		"no backend":                        {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "" }, []string{server, gc, archival, migration}},
		"registry":                          {func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = "sqlite:////mlflow/x.db" }, []string{server, archival, migration}},
		"registry in a Secret":              {func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURIFrom = from }, []string{server, archival, migration}},
		"read replica":                      {func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "sqlite:////mlflow/x.db" }, []string{server, migration}},
		"served artifacts":                  {func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "file:///mlflow/a" }, []string{server, migration}},
		"artifacts in the default location": {func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "" }, []string{server, migration}},
		"artifacts not served": {func(s *mlflowv1.MLflowSpec) {
			s.ArtifactsDestination, s.ServeArtifacts, s.DefaultArtifactRoot = "", false, "s3://b"
		}, nil},
		"artifact root": {func(s *mlflowv1.MLflowSpec) { s.DefaultArtifactRoot = "file:///mlflow/roots" }, []string{server, gc, migration}},
		"archive":       {func(s *mlflowv1.MLflowSpec) { s.TraceArchival.Location = "file:///mlflow/t" }, []string{server, archival, migration}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) { s.Storage = &corev1.PersistentVolumeClaimSpec{} }, c.change)
			in := platformInputs["plain"]
			pods := podsOf(t, m, in)
			_, job := jobOf(t, m, in, "")
			pods[migration] = job.Spec.Template.Spec
			for pod := range pods {
				spec := pods[pod]
				if got, want := mounts(&spec), slices.Contains(c.mount, pod); got != want {
					t.Errorf("%s mounts the volume: %t, want %t", pod, got, want)
				}
				if hasAffinity, want := spec.Affinity != nil, slices.Contains(c.mount, pod) && pod != server && pod != migration; hasAffinity != want {
					t.Errorf("%s has an affinity to the server: %t, want %t", pod, hasAffinity, want)
				}
			}
			recreated := deploymentOf(t, m, in).Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
			if recreated != slices.Contains(c.mount, server) {
				t.Errorf("strategy Recreate: %t", recreated)
			}
		})
	}
}

// mounts reports whether a pod mounts the volume at storagePath.
func mounts(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(v corev1.VolumeMount) bool { return v.Name == "mlflow-storage" && v.MountPath == storagePath }) &&
		slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "mlflow-pvc"
		})
}
