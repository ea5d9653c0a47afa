package mlflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
)

func stateOf(m *mlflowv1.MLflow) []string {
	var out []string
	for _, c := range m.Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

// [D18] Conditions belong to a generation, and the message keeps the words that clients know.
func TestReportRollout(t *testing.T) {
	for name, c := range map[string]struct {
		state conditions.RolloutState
		cause string
		want  []string
	}{
		"ready": {conditions.RolloutState{Ready: true, Desired: 2, ReadyReplicas: 2}, "", []string{
			"Available=True DeploymentReady: MLflow deployment is ready and available",
			"Progressing=False ReconcileComplete: MLflow reconciliation completed successfully",
		}},
		"not ready": {conditions.RolloutState{Desired: 2, ReadyReplicas: 1}, "", []string{
			"Available=False DeploymentNotReady: MLflow deployment not ready: 1/2 replicas ready",
			"Progressing=True DeploymentProgressing: MLflow deployment not ready: 1/2 replicas ready",
		}},
		"not ready for a reason": {conditions.RolloutState{Desired: 1}, "Secret db does not exist; create it", []string{
			"Available=False DeploymentNotReady: MLflow deployment not ready: 0/1 replicas ready: Secret db does not exist; create it",
			"Progressing=True DeploymentProgressing: MLflow deployment not ready: 0/1 replicas ready: Secret db does not exist; create it",
		}},
		"zero replicas": {conditions.RolloutState{Ready: true}, "", []string{
			"Available=False DeploymentNotReady: MLflow deployment scaled to zero replicas",
			"Progressing=True DeploymentProgressing: MLflow deployment scaled to zero replicas",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			reportRollout(m, c.state, c.cause)
			if diff := cmp.Diff(c.want, stateOf(m)); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			for _, condition := range m.Status.Conditions {
				if condition.ObservedGeneration != 7 {
					t.Errorf("%s.observedGeneration = %d, want 7", condition.Type, condition.ObservedGeneration)
				}
			}
		})
	}
}

func TestFailApply(t *testing.T) {
	cause := errors.New("no")
	for name, c := range map[string]struct {
		err    error
		reason string
		text   string
		url    string
		types  int
	}{
		"workload":     {&apply.Error{Kind: "Deployment", Namespace: "ns", Name: "mlflow", Err: cause}, "ApplyFailed", "Failed to apply resources: apply Deployment/mlflow: no", "https://x", 2},
		"route":        {&apply.Error{Kind: "HTTPRoute", Name: "mlflow", Err: cause}, "HttpRouteFailed", "Failed to reconcile HttpRoute: no", "", 1},
		"console link": {&apply.Error{Kind: "ConsoleLink", Name: "mlflow", Err: cause}, "ConsoleLinkFailed", "Failed to reconcile ConsoleLink: no", "https://x", 1},
		"joined":       {errors.Join(&apply.Error{Kind: "Service", Name: "mlflow", Err: cause}, &apply.Error{Kind: "HTTPRoute", Name: "mlflow", Err: cause}), "ApplyFailed", "apply Service/mlflow: no", "https://x", 2},
		"other":        {cause, "ApplyFailed", "Failed to apply resources: no", "https://x", 2},
		"foreign": {&apply.Error{Kind: "Service", Name: "mlflow", Err: &apply.ForeignError{Kind: "Service", Namespace: "ns", Name: "mlflow"}}, "ApplyFailed",
			"Service ns/mlflow exists and was not made by this operator; delete or rename it", "https://x", 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{Status: mlflowv1.MLflowStatus{URL: "https://x"}}
			failApply(m, c.err)
			available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			if available.Reason != c.reason || available.Status != metav1.ConditionFalse || !strings.Contains(available.Message, c.text) {
				t.Errorf("Available = %+v", available)
			}
			if len(m.Status.Conditions) != c.types || m.Status.URL != c.url {
				t.Errorf("conditions %v, url %q", stateOf(m), m.Status.URL)
			}
		})
	}
}

// [D23] The condition about the claim exists only while there is something to say.
func TestReportClaim(t *testing.T) {
	m := &mlflowv1.MLflow{}
	reportClaim(m, "")
	if len(m.Status.Conditions) != 0 {
		t.Errorf("conditions = %v, want none", stateOf(m))
	}
	reportClaim(m, "too small")
	if diff := cmp.Diff([]string{"StorageInSync=False ClaimDiffers: too small"}, stateOf(m)); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
	reportClaim(m, "")
	if len(m.Status.Conditions) != 0 {
		t.Errorf("conditions = %v, want none", stateOf(m))
	}
}
