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

func withForceAnnotation(m *mlflowv1.MLflow) *mlflowv1.MLflow {
	m.Annotations = map[string]string{migration.ForceAnnotation: "yes"}
	return m
}

// If the manager crashes or the API server rejects a request once, at any write, a forced migration still results in the same
// MLflow and children, and in one migration Job [mlflow-46] [mlflow-47] [D12] [D13].
func TestFaultsDuringReconcile(t *testing.T) {
	for name, setup := range map[string]func(testing.TB) *fakeapi.Server{
		"a new server": func(t testing.TB) *fakeapi.Server { return newServer(t, withForceAnnotation(mlflowWithAllChildren())) },
		"a running server": func(t testing.TB) *fakeapi.Server {
			s := reconciledServer(t, newServer(t, mlflowWithAllChildren()))
			if err := s.Update(t.Context(), withForceAnnotation(getMLflow(t, s))); err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) { scenario(t, setup).SurvivesFaults(t) })
	}
}

func scenario(t testing.TB, setup func(testing.TB) *fakeapi.Server) fakeapi.Scenario {
	return fakeapi.Scenario{
		Server: setup,
		Start: func(s *fakeapi.Server) func() error {
			_, reconcile := newReconciler(t, s)
			return func() error { _, err := reconcile(); return err }
		},
		Kubernetes: func(s *fakeapi.Server) { runWorkloads(t, s) },
		Done: func(s *fakeapi.Server) bool {
			m := getMLflow(t, s)
			_, forced := m.Annotations[migration.ForceAnnotation]
			return !forced && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) &&
				conditions.IsTrue(m.Status.Conditions, migration.ConditionMigration) && m.Status.Version == settings.Version
		},
	}
}

// reconciledServer reconciles until the server runs.
func reconciledServer(t testing.TB, s *fakeapi.Server) *fakeapi.Server {
	t.Helper()
	_, reconcile := newReconciler(t, s)
	done := scenario(t, nil).Done
	for range 20 {
		if _, err := reconcile(); err != nil {
			t.Fatal(err)
		}
		if done(s) {
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

// runWorkloads simulates the Kubernetes controllers: Deployments get their replicas, and Jobs succeed.
func runWorkloads(t testing.TB, s client.Client) { workloads{}.run(t, s) }

// workloads selects the results of the simulated controllers.
type workloads struct {
	// unready keeps the replicas of the servers unready.
	unready bool
	// migrationFails and checkFails make the migration Job and the check Job fail permanently.
	migrationFails, checkFails bool
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
		if isCheck := job.Name == "mlflow-migration-check"; w.migrationFails && !isCheck || w.checkFails && isCheck {
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

// A foreign Job with the name of the migration Job is reported and not changed. Once it is deleted, the database is migrated.
func TestForeignJobBlocksMigration(t *testing.T) {
	foreignJob := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-mg-3140-g1"}}
	w := newFixture(t, mlflowWithAllChildren(), foreignJob)
	last, err := w.reconcileUntilStable()
	if err != nil || last.RequeueAfter != reconciler.RequeueUnavailable {
		t.Errorf("unexpected requeue after %s or error %v", last.RequeueAfter, err)
	}
	const wantMessage = "Job opendatahub/mlflow-mg-3140-g1 exists and was not created by this operator; delete it or recreate it under another name"
	if c := w.condition(migration.ConditionMigration); c.Reason != migration.ReasonMigrationError || !strings.Contains(c.Message, wantMessage) {
		t.Errorf("Migration=%s %s: %s", c.Status, c.Reason, c.Message)
	}
	if !w.get(foreignJob.Name, foreignJob) || len(foreignJob.Labels)+len(foreignJob.OwnerReferences) > 0 {
		t.Errorf("the foreign Job was changed: %+v", foreignJob.ObjectMeta)
	}
	if err := w.server.Delete(t.Context(), foreignJob); err != nil {
		t.Fatal(err)
	}
	reconciledServer(t, w.server)
}
