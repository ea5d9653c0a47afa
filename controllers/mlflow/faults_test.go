package mlflow

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

func forced(m *mlflowv1.MLflow) *mlflowv1.MLflow {
	m.Annotations = map[string]string{migration.ForceAnnotation: "yes"}
	return m
}

// If the manager crashes or the API server rejects a request once, at any write, a forced migration ends with the same
// MLflow, children and one migration Job [mlflow-46] [mlflow-47] [D12] [D13].
func TestFaultsDuringReconcile(t *testing.T) {
	for name, begin := range map[string]func(testing.TB) *fakeapi.Server{
		"a new server": func(t testing.TB) *fakeapi.Server { return newServer(t, forced(mlflowWithAllChildren())) },
		"a running server": func(t testing.TB) *fakeapi.Server {
			s := reconciledServer(t, newServer(t, mlflowWithAllChildren()))
			if err := s.Update(t.Context(), forced(getMLflow(t, s))); err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) { scenario(t, begin).SurvivesFaults(t) })
	}
}

func scenario(t testing.TB, begin func(testing.TB) *fakeapi.Server) fakeapi.Scenario {
	return fakeapi.Scenario{
		Server: begin,
		Start: func(s *fakeapi.Server) func() error {
			_, reconcile := startOn(t, s)
			return func() error { _, err := reconcile(); return err }
		},
		Kubernetes: func(s *fakeapi.Server) { runWorkloads(t, s) },
		Done: func(s *fakeapi.Server) bool {
			m := getMLflow(t, s)
			_, marked := m.Annotations[migration.ForceAnnotation]
			return !marked && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) &&
				conditions.IsTrue(m.Status.Conditions, migration.ConditionMigration) && m.Status.Version == settings.Version
		},
	}
}

// reconciledServer reconciles until the server runs.
func reconciledServer(t testing.TB, s *fakeapi.Server) *fakeapi.Server {
	t.Helper()
	_, reconcile := startOn(t, s)
	sc := scenario(t, nil)
	for range 20 {
		if _, err := reconcile(); err != nil {
			t.Fatal(err)
		}
		if sc.Done(s) {
			return s
		}
		runWorkloads(t, s)
	}
	t.Fatalf("the server does not become available: %+v", getMLflow(t, s).Status.Conditions)
	return nil
}

func getMLflow(t testing.TB, s client.Client) *mlflowv1.MLflow {
	t.Helper()
	m := &mlflowv1.MLflow{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: mlflowv1.SingletonName}, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// runWorkloads does the work of the Kubernetes controllers: each Deployment gets its replicas, and Jobs succeed.
func runWorkloads(t testing.TB, s client.Client) { workloads{}.run(t, s) }

// workloads selects the results of these controllers.
type workloads struct {
	// unready: no replica of the server becomes ready.
	unready bool
	// failing: the migration fails permanently. checkFails: the check before it does.
	failing, checkFails bool
}

func (w workloads) run(t testing.TB, s client.Client) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := s.List(t.Context(), list, client.InNamespace(settings.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas}
		if !w.unready {
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = *d.Spec.Replicas, *d.Spec.Replicas
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
		}
		if err := s.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for _, job := range jobs(t, s) {
		if migration.PhaseOf(&job) != migration.JobRunning {
			continue
		}
		if checks := job.Name == "mlflow-migration-check"; w.failing && !checks || w.checkFails && checks {
			job.Status.Conditions = []batchv1.JobCondition{{
				Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonPodFailurePolicy,
				Message: "Container db-migrate for pod opendatahub/x failed with exit code 11 matching FailJob rule at index 0",
			}}
		} else {
			job.Status.Succeeded = 1
		}
		if err := s.Status().Update(t.Context(), &job); err != nil {
			t.Fatal(err)
		}
	}
}

func jobs(t testing.TB, s client.Client, options ...client.ListOption) []batchv1.Job {
	t.Helper()
	list := &batchv1.JobList{}
	if err := s.List(t.Context(), list, options...); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func migrationJobs(t testing.TB, s client.Client) []batchv1.Job {
	t.Helper()
	return jobs(t, s, client.MatchingLabels{resources.LabelMigrationJob: "true"})
}

// A Job that has the name of the migration and is foreign is reported in a condition and not changed; once it is deleted, the database is
// migrated.
func TestForeignJobHasTheName(t *testing.T) {
	stray := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-mg-3140-g1"}}
	w := newFixture(t, mlflowWithAllChildren(), stray)
	last, err := w.reconcileUntilStable()
	if err != nil || last.RequeueAfter != reconciler.RequeueUnavailable {
		t.Errorf("unexpected requeue after %s or error %v", last.RequeueAfter, err)
	}
	const text = "Job opendatahub/mlflow-mg-3140-g1 exists and was not created by this operator; delete it or recreate it under another name"
	if c := w.condition(migration.ConditionMigration); c.Reason != migration.ReasonMigrationError || !strings.Contains(c.Message, text) {
		t.Errorf("Migration=%s %s: %s", c.Status, c.Reason, c.Message)
	}
	if !w.get(stray.Name, stray) || len(stray.Labels)+len(stray.OwnerReferences) > 0 {
		t.Errorf("the Job is taken over: %+v", stray.ObjectMeta)
	}
	if err := w.server.Delete(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	reconciledServer(t, w.server)
}
