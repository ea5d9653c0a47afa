package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// The check Job equals the migration Job, except for the fields below.
func TestCheckJob(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			m, in := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { *s = c.Spec }), c.inputs(t)
			objects, err := apply.Render(apply.Desired{{Config: CheckJob(m, in, "this")}}, "mlflow", m)
			if err != nil {
				t.Fatal(err)
			}
			got := &batchv1.Job{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, got); err != nil {
				t.Fatal(err)
			}
			_, want := jobOf(t, m, in, "")
			want.Name = "mlflow-migration-check"
			metav1.SetMetaDataAnnotation(&want.ObjectMeta, CheckForAnnotation, "this")
			delete(want.Labels, LabelMigrationJob)
			delete(want.Spec.Template.Labels, LabelMigrationJob)
			want.Spec.ActiveDeadlineSeconds, want.Spec.TTLSecondsAfterFinished = new(int64(checkDeadlineSeconds)), nil
			pod := &want.Spec.Template.Spec
			pod.Containers[0].Args = []string{`exec python3.12 -c "$MIGRATION_PYTHON_SCRIPT" check`}
			pod.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
			}
			pod.Volumes = deleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
			pod.Containers[0].VolumeMounts = deleteFunc(pod.Containers[0].VolumeMounts, func(v corev1.VolumeMount) bool { return v.MountPath == storagePath })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func deleteFunc[T any](all []T, remove func(T) bool) (kept []T) {
	for _, element := range all {
		if !remove(element) {
			kept = append(kept, element)
		}
	}
	return kept
}

// The check connects to each database server and changes nothing.
func TestCheckProgram(t *testing.T) {
	const backend, registry, supported = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI", "SUPPORTED_MLFLOW_VERSION"
	for name, c := range map[string]struct {
		env     map[string]string
		code    int
		stdout  string
		failure string
	}{
		"an empty database":               {map[string]string{backend: uri("postgresql", "a")}, 0, "connect a\nbackend store: at revision None\n", ""},
		"database at a known revision":    {map[string]string{backend: uri("postgresql", "a"), "FAKE_REVISION": "old"}, 0, "connect a\nbackend store: at revision old\n", ""},
		"a revision of a newer MLflow":    {map[string]string{backend: uri("postgresql", "a"), "FAKE_REVISION": "unknown"}, 17, "connect a\n", "the backend store is at revision unknown, which MLflow 3.14.0 of this image does not know: its newest is head"},
		"revision that the image repairs": {map[string]string{backend: uri("postgresql", "a"), "FAKE_REVISION": "unknown", "FAKE_GAP": "yes"}, 0, "connect a\nbackend store: at revision unknown\n", ""},
		"separate registry store": {map[string]string{backend: uri("sqlite", "a"), registry: uri("mysql+pymysql", "b")}, 0,
			"backend store: a file, which is not opened\nconnect b\nregistry store: at revision None\n", ""},
		"wrong password":     {map[string]string{backend: uri("postgresql", "a"), "FAKE_ERROR": "password authentication failed "}, 16, "", "a database cannot be opened or read: ConnectionError, login"},
		"version is too old": {map[string]string{backend: uri("sqlite", "a"), supported: "9.9.9"}, 10, "", "this image holds MLflow 3.14.0, the oldest supported is 9.9.9"},
		"backend in files":   {map[string]string{backend: "file:///hunter2"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := migrationRun{Code: c.code, Stdout: c.stdout, Termination: c.failure}
			if c.failure != "" {
				want.Stderr = c.failure + "\n"
			}
			got := runMigration(t, c.env, "check")
			got.Termination = withoutReport(got.Termination)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
