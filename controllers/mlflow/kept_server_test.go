package mlflow

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func checkFailed(m *mlflowv1.MLflow) bool {
	c, _ := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
	return c.Reason == migration.ReasonMigrationCheckFailed && c.Status == metav1.ConditionFalse
}

// While a check fails, the running server keeps its ServiceAccount, permissions and ConfigMap. They are deleted once the new spec is
// rolled out.
func TestKeptServerKeepsWhatItsPodsNeed(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	expect := func(state string, kept bool, subjects ...string) {
		t.Helper()
		binding := &rbacv1.ClusterRoleBinding{}
		if err := w.server.Get(t.Context(), client.ObjectKey{Name: "mlflow"}, binding); err != nil {
			t.Fatal(err)
		}
		var accounts []string
		for _, subject := range binding.Subjects {
			accounts = append(accounts, subject.Name)
		}
		if !slices.Equal(accounts, subjects) {
			t.Errorf("%s: the ClusterRoleBinding has the subjects %v, want %v", state, accounts, subjects)
		}
		for name, o := range map[string]client.Object{"mlflow-sa": &corev1.ServiceAccount{}, "mlflow-trace-archival-config": &corev1.ConfigMap{}} {
			if w.get(name, o) != kept {
				t.Errorf("%s: %T %s exists: %t, want %t", state, o, name, !kept, kept)
			}
		}
	}
	w.edit(func(s *mlflowv1.MLflowSpec) {
		s.Image, s.ServiceAccountName, s.TraceArchival = &mlflowv1.ImageConfig{Image: "broken"}, "tracking", nil
	})
	w.reconcileUntil("checked", workloads{checkFails: true}, checkFailed)
	expect("check failed", true, "tracking", "mlflow-sa")

	w.setImage("fixed")
	w.reconcileUntil("ready with another image", workloads{}, migratedAndReady)
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	expect("rolled out", false, "tracking")
}

// The route of the artifacts server takes over paths of the tracking server, so it is not created before the Deployment.
func TestArtifactsRouteWaitsForDeployment(t *testing.T) {
	m := mlflowWithArtifactsServer()
	m.Spec.ServeArtifacts, m.Spec.ArtifactsServer.Enabled = true, false
	w := newFixture(t, m)
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	w.edit(func(s *mlflowv1.MLflowSpec) {
		s.BackendStoreURI, s.ServeArtifacts, s.ArtifactsServer.Enabled = "postgresql://other/x", false, true
	})
	w.reconcileUntil("checked", workloads{checkFails: true}, checkFailed)
	route := framework.Unstructured(capability.HTTPRoute, "", "")
	if w.get("mlflow-artifacts", route) || getMLflow(t, w.server).Status.ArtifactsURL != "" {
		t.Errorf("the artifacts server is published by a route and %q, although it has no Deployment", getMLflow(t, w.server).Status.ArtifactsURL)
	}
	if c := w.condition(ConditionAvailable); c.Status != metav1.ConditionTrue || c.Message != messageReady {
		t.Errorf("the running server serves, but Available=%s %s: %s", c.Status, c.Reason, c.Message)
	}
	w.edit(func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "postgresql://correct/x" })
	w.reconcileUntil("ready with another store", workloads{}, migratedAndReady)
	if !w.get("mlflow-artifacts", route) || getMLflow(t, w.server).Status.ArtifactsURL == "" {
		t.Error("the artifacts server is not published after the migration")
	}
}

// A disabled artifacts server keeps its route until the tracking server serves artifacts. Without a Gateway, routes are always pruned.
func TestRoutesOfKeptServerAreNotPruned(t *testing.T) {
	in := platformInputs["openshift"]
	if kinds := prunableKinds(in, false); slices.Contains(kinds, capability.HTTPRoute) || !slices.Contains(prunableKinds(in, true), capability.HTTPRoute) {
		t.Errorf("while an earlier server is kept, the kinds %v are pruned", kinds)
	}
	in.GatewayNamespace = ""
	served := capability.NewSet(capability.HTTPRoute)
	if in.Served = served; !slices.Contains(prunableKinds(in, false), capability.HTTPRoute) {
		t.Error("routes are kept, although no Gateway publishes servers")
	}
}

// While a ready server is kept running, an error of the operator does not set Available to False.
func TestErrorsOfCheckKeepServerAvailable(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	expect := func(state string, available metav1.ConditionStatus) {
		t.Helper()
		if _, err := w.reconcileOnce(); err == nil {
			t.Errorf("%s: want an error", state)
		}
		if c := w.condition(ConditionAvailable); c.Status != available {
			t.Errorf("%s: Available=%s %s: %s", state, c.Status, c.Reason, c.Message)
		}
		if c := w.condition(migration.ConditionMigration); c.Status != metav1.ConditionUnknown || c.Reason != migration.ReasonMigrationError {
			t.Errorf("%s: Migration=%s %s: %s", state, c.Status, c.Reason, c.Message)
		}
	}
	w.setImage("other")
	reader := w.APIReader
	w.APIReader = failingLists{reader}
	expect("failed list", metav1.ConditionTrue)
	expect("failed list again", metav1.ConditionTrue)
	w.APIReader = reader
	w.refuse = func(kind, name string) error {
		if kind == "Job" && name == "mlflow-migration-check" {
			return apierrors.NewInternalError(errors.New("quota exceeded"))
		}
		return nil
	}
	expect("refused check", metav1.ConditionTrue)
	expect("refused check again", metav1.ConditionTrue)
	d := &appsv1.Deployment{}
	w.get("mlflow", d)
	d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.Conditions = 0, 0, nil
	if err := w.server.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	expect("refused check of an unready server", metav1.ConditionFalse)
	w.refuse = func(string, string) error { return nil }
	w.reconcileUntil("migrated", workloads{}, migratedAndReady)

	w.setImage("third")
	w.reconcileUntil("checked", workloads{}, func(*mlflowv1.MLflow) bool {
		return w.get("mlflow-migration-check", &batchv1.Job{})
	})
	w.refuse = func(kind, name string) error {
		if kind == "Job" && name != "mlflow-migration-check" {
			return apierrors.NewInternalError(errors.New("quota exceeded"))
		}
		return nil
	}
	for range 5 {
		runWorkloads(t, w.server)
		_, _ = w.reconcileOnce() // the last ones fail
	}
	expect("refused migration Job", metav1.ConditionFalse)
}

// failingLists fails each List.
type failingLists struct{ client.Reader }

func (failingLists) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("connection refused")
}
