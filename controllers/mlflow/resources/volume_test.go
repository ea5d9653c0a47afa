package resources

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// A pod mounts the volume only if it finds something there, and is bound to its node only then [mlflow-22]. [mlflow-96]
func TestPodsThatMountTheVolume(t *testing.T) {
	const server, collector, archiver, migration = "server", "mlflow-gc", "mlflow-trace-archival", "migration"
	from := mlflowtest.SecretKey("db", "uri")
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		mount  []string
	}{
		"no files":                            {func(*mlflowv1.MLflowSpec) {}, nil},
		"backend":                             {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite:////mlflow/x.db" }, []string{server, collector, archiver, migration}},
		"backend with a driver":               {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "sqlite+pysqlite:////x.db" }, []string{server, collector, archiver, migration}},
		"backend in a Secret":                 {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI, s.BackendStoreURIFrom = "", from }, []string{server, collector, archiver, migration}},
		"no backend":                          {func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "" }, []string{server, collector, archiver, migration}},
		"registry":                            {func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = "sqlite:////mlflow/x.db" }, []string{server, archiver, migration}},
		"registry in a Secret":                {func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURIFrom = from }, []string{server, archiver, migration}},
		"read replica":                        {func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "sqlite:////mlflow/x.db" }, []string{server, migration}},
		"artifacts that are served":           {func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "file:///mlflow/a" }, []string{server, migration}},
		"artifacts where they are by default": {func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "" }, []string{server, migration}},
		"artifacts that are not served": {func(s *mlflowv1.MLflowSpec) {
			s.ArtifactsDestination, s.ServeArtifacts, s.DefaultArtifactRoot = "", false, "s3://b"
		}, nil},
		"root of artifacts": {func(s *mlflowv1.MLflowSpec) { s.DefaultArtifactRoot = "file:///mlflow/roots" }, []string{server, collector, migration}},
		"archive":           {func(s *mlflowv1.MLflowSpec) { s.TraceArchival.Location = "file:///mlflow/t" }, []string{server, archiver, migration}},
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
				if bound, want := spec.Affinity != nil, slices.Contains(c.mount, pod) && pod != server && pod != migration; bound != want {
					t.Errorf("%s is bound to the node of the server: %t, want %t", pod, bound, want)
				}
			}
			recreated := deploymentOf(t, m, in).Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
			if recreated != slices.Contains(c.mount, server) {
				t.Errorf("recreated: %t", recreated)
			}
		})
	}
}

// mounts reports whether a pod has the volume where the server looks for it.
func mounts(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(v corev1.VolumeMount) bool { return v.Name == "mlflow-storage" && v.MountPath == storagePath }) &&
		slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "mlflow-pvc"
		})
}
