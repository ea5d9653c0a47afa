package resources

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// jobOf returns the rendered migration Job, unstructured and as a Go type.
func jobOf(t *testing.T, m *mlflowv1.MLflow, in Inputs, force string) (*unstructured.Unstructured, *batchv1.Job) {
	t.Helper()
	objects, err := apply.Render(apply.Desired{{Config: MigrationJob(m, in, force)}}, "mlflow", m)
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, job); err != nil {
		t.Fatal(err)
	}
	return objects[0], job
}

func envByName(job *batchv1.Job) map[string][]corev1.EnvVar {
	byName := map[string][]corev1.EnvVar{}
	for _, v := range job.Spec.Template.Spec.Containers[0].Env {
		byName[v.Name] = append(byName[v.Name], v)
	}
	return byName
}

// The golden files contain the complete Job, except for the text of the program.
func TestMigrationJobGolden(t *testing.T) { // [mlflow-38]
	for _, c := range goldenCases(t) {
		if !slices.Contains([]string{"minimal-plain", "remote-secrets", "everything-about-the-pod", "ca-both-bare", "both-jobs-openshift-with-ca"}, c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { *s = c.Spec })
			m.Generation = 1
			object, job := jobOf(t, m, c.inputs(t), "")
			if v := envByName(job)[envMigrationProgram]; len(v) != 1 || v[0].Value != migrationProgram {
				t.Error("the migration program is not in the environment of the Job")
			}
			golden(t, "migration/"+c.Name, []*unstructured.Unstructured{object})
		})
	}
}

func TestMigrationJobSettings(t *testing.T) {
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.Migration = &mlflowv1.MigrationConfig{TTLSecondsAfterFinished: new(int32(7200)), ActiveDeadlineSeconds: new(int64(90))}
		s.PodLabels = map[string]string{"app": "mlflow", "app.kubernetes.io/instance": "other", "component": "mlflow", "team": "a"}
		s.ReadReplicaBackendStoreURI = "postgresql://replica"
		s.Env = []corev1.EnvVar{{Name: envReadReplica, Value: "twice"}, {Name: envReadReplica, Value: "thrice"}, {Name: envMigrationProgram, Value: "rm"}, {Name: envSupportedVersion, Value: "1"}}
		s.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
		s.PodAnnotations = map[string]string{"prometheus.io/scrape": "true"}
	})
	_, job := jobOf(t, m, platformInputs["openshift"], "token")
	spec := job.Spec
	if *spec.TTLSecondsAfterFinished != 7200 || *spec.ActiveDeadlineSeconds != 90 || *spec.BackoffLimit != 3 {
		t.Errorf("[D9] [mlflow-38] ttl %d, deadline %d, attempts %d", *spec.TTLSecondsAfterFinished, *spec.ActiveDeadlineSeconds, *spec.BackoffLimit)
	}
	pod := spec.Template
	if pod.Labels["team"] != "a" || pod.Labels["component"] != "mlflow-migration" || pod.Labels["app"] != "" || pod.Labels["app.kubernetes.io/instance"] != "mlflow" {
		t.Errorf("[D17] labels %v", pod.Labels)
	}
	if len(pod.Annotations) != 0 || len(pod.Spec.ResourceClaims) != 0 || len(pod.Spec.Containers) != 1 || len(pod.Spec.Containers[0].Resources.Claims) != 0 {
		t.Errorf("[mlflow-38] got pod %+v", pod)
	}
	if job.Annotations[ForcedByAnnotation] != "token" {
		t.Errorf("[D10] annotations %v", job.Annotations)
	}
	for name, want := range map[string]string{envReadReplica: "", envMigrationProgram: migrationProgram, envSupportedVersion: "3.14.0"} {
		if v := envByName(job)[name]; len(v) != 1 || v[0].Value != want {
			t.Errorf("[mlflow-38] %s occurs %d times, want once with value %q", name, len(v), want)
		}
	}
	rule := spec.PodFailurePolicy.Rules[0]
	if rule.Action != batchv1.PodFailurePolicyActionFailJob || !slices.Equal(rule.OnExitCodes.Values, []int32{10, 11, 12, 13, 14, 17}) ||
		*rule.OnExitCodes.ContainerName != "db-migrate" || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("[D15] rule %+v", rule)
	}
}

func TestMigrationJobName(t *testing.T) {
	for _, c := range []struct {
		name, version string
		generation    int64
		want          string
	}{
		{"mlflow", "3.14.0", 1, "mlflow-mg-3140-g1"},
		{"mlflow", "v3.14.0-RC.1", 12, "mlflow-mg-3140rc1-g12"},
		{"mlflow", "", 1, "mlflow-mg-unknown-g1"},
		{"of-the-whole-company-and-its-friends-and-more", "3.14.0", 123456789, "mlflow-of-the-whole-company-and-its-friends-mg-3140-g123456789"},
	} {
		m := withName(mlflowtest.MLflow(), c.name)
		m.Generation = c.generation
		got := MigrationJobName(m, Inputs{Version: c.version})
		if got != c.want || len(got) > maxJobNameLength {
			t.Errorf("%q (%d), want %q", got, len(got), c.want)
		}
	}
}

// Only fields that identify the migrated databases change the hash.
func TestStoresHash(t *testing.T) {
	hash := func(change ...func(*mlflowv1.MLflowSpec)) string {
		return StoresHash(mlflowtest.MLflow(change...))
	}
	base := hash()
	for name, change := range map[string]func(*mlflowv1.MLflowSpec){
		"replicas": func(s *mlflowv1.MLflowSpec) { s.Replicas = new(int32(3)) },
		"replica":  func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "postgresql://r" },
		"env":      func(s *mlflowv1.MLflowSpec) { s.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
	} {
		if hash(change) != base {
			t.Errorf("[D12] a change of %s changes the hash", name)
		}
	}
	ref := func(name, key string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
	}
	seen := map[string]string{base: "nothing"}
	for name, change := range map[string]func(*mlflowv1.MLflowSpec){
		"backend":  func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "postgresql://other" },
		"registry": func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = "postgresql://other" },
		"secret":   func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = ref("db", "uri") },
		"key":      func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = ref("db", "url") },
		"name":     func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = ref("other", "uri") },
	} {
		h := hash(change)
		if seen[h] != "" {
			t.Errorf("[D11] changes of %s and %s have the same hash", name, seen[h])
		}
		seen[h] = name
	}
}
