package mlflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func stateOf(m *mlflowv1.MLflow) []string {
	var out []string
	for _, c := range m.Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

// [D18] Conditions have the observed generation, and the messages keep the texts that clients compare.
func TestReportRollout(t *testing.T) {
	for name, c := range map[string]struct {
		state conditions.RolloutState
		cause string
		want  []string
		// server selects the server; the default is Tracking.
		server func(*mlflowv1.MLflow) resources.Server
	}{
		"ready": {state: conditions.RolloutState{Ready: true, Desired: 2, ReadyReplicas: 2}, want: []string{
			"Available=True DeploymentReady: MLflow deployment is ready and available",
			"Progressing=False ReconcileComplete: MLflow reconciliation completed successfully",
		}},
		"not ready": {state: conditions.RolloutState{Desired: 2, ReadyReplicas: 1}, want: []string{
			"Available=False DeploymentNotReady: MLflow deployment not ready: 1/2 replicas ready",
			"Progressing=True DeploymentProgressing: MLflow deployment not ready: 1/2 replicas ready",
		}},
		"not ready with a cause": {state: conditions.RolloutState{Desired: 1}, cause: "Secret db does not exist; create it", want: []string{
			"Available=False DeploymentNotReady: MLflow deployment not ready: 0/1 replicas ready: Secret db does not exist; create it",
			"Progressing=True DeploymentProgressing: MLflow deployment not ready: 0/1 replicas ready: Secret db does not exist; create it",
		}},
		"artifacts not ready": {state: conditions.RolloutState{Desired: 3, ReadyReplicas: 1}, server: resources.Artifacts, want: []string{
			"Available=False DeploymentNotReady: MLflow artifacts deployment not ready: 1/3 replicas ready",
			"Progressing=True DeploymentProgressing: MLflow artifacts deployment not ready: 1/3 replicas ready",
		}},
		"no replica for artifacts": {state: conditions.RolloutState{Ready: true}, server: resources.Artifacts, want: []string{
			"Available=False DeploymentNotReady: MLflow artifacts deployment scaled to zero replicas",
			"Progressing=True DeploymentProgressing: MLflow artifacts deployment scaled to zero replicas",
		}},
		"zero replicas": {state: conditions.RolloutState{Ready: true}, want: []string{
			"Available=False DeploymentNotReady: MLflow deployment scaled to zero replicas",
			"Progressing=True DeploymentProgressing: MLflow deployment scaled to zero replicas",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			switch {
			case c.state.Ready && c.state.Desired > 0:
				reportReady(m)
			case c.server != nil:
				reportRollout(m, c.server(m), c.state, c.cause)
			default:
				reportRollout(m, resources.Tracking(m), c.state, c.cause)
			}
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

// If Available is True, it stays True while a pod serves. Both conditions report the cause of the incomplete rollout.
func TestAvailableIsKeptWhileServerRollsOut(t *testing.T) {
	for name, c := range map[string]struct {
		serving bool
		before  metav1.ConditionStatus
		want    string
	}{
		"rollout":       {true, metav1.ConditionTrue, "Available=True DeploymentReady: MLflow is available; MLflow deployment not ready: 1/2 replicas ready: image"},
		"no pod serves": {false, metav1.ConditionTrue, "Available=False DeploymentNotReady: MLflow deployment not ready: 1/2 replicas ready: image"},
		"first start":   {true, metav1.ConditionFalse, "Available=False DeploymentNotReady: MLflow deployment not ready: 1/2 replicas ready: image"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{}
			setCondition(m, ConditionAvailable, c.before, "Before", "")
			reportRollout(m, resources.Tracking(m), conditions.RolloutState{Serving: c.serving, Desired: 2, ReadyReplicas: 1}, "image")
			want := []string{c.want, "Progressing=True DeploymentProgressing: MLflow deployment not ready: 1/2 replicas ready: image"}
			if diff := cmp.Diff(want, stateOf(m)); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailApply(t *testing.T) {
	cause := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		text string
	}{
		"workload": {&apply.Error{Kind: "Deployment", Namespace: "ns", Name: "mlflow", Err: cause}, "Failed to apply resources: apply Deployment/mlflow: no"},
		"joined":   {errors.Join(&apply.Error{Kind: "Service", Name: "mlflow", Err: cause}, &apply.Error{Kind: "Secret", Name: "mlflow", Err: cause}), "apply Service/mlflow: no"},
		"other":    {cause, "Failed to apply resources: no"},
		"foreign": {&apply.Error{Kind: "Service", Name: "mlflow", Err: &apply.ForeignError{Kind: "Service", Namespace: "ns", Name: "mlflow"}},
			"Service ns/mlflow exists and was not created by this operator; delete it or recreate it under another name"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{}
			failApply(m, c.err)
			available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			if available.Reason != ReasonApplyFailed || available.Status != metav1.ConditionFalse || !strings.Contains(available.Message, c.text) {
				t.Errorf("Available = %+v", available)
			}
		})
	}
}

func TestReportExposureError(t *testing.T) {
	cause := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		want []string
		url  string
	}{
		"route":        {&apply.Error{Kind: "HTTPRoute", Name: "mlflow", Err: cause}, []string{"RouteAccepted=False HttpRouteFailed: Failed to reconcile HttpRoute: no"}, ""},
		"console link": {&apply.Error{Kind: "ConsoleLink", Name: "mlflow", Err: cause}, []string{"ConsoleLinkReady=False ConsoleLinkFailed: Failed to reconcile ConsoleLink: no"}, "https://x"},
		"monitor":      {&apply.Error{Kind: "ServiceMonitor", Name: "mlflow", Err: cause}, []string{"ServiceMonitorReady=False ServiceMonitorFailed: Failed to reconcile ServiceMonitor: no"}, "https://x"},
		"budget":       {&apply.Error{Kind: "PodDisruptionBudget", Name: "mlflow", Err: cause}, []string{"DisruptionBudgetReady=False DisruptionBudgetFailed: Failed to reconcile PodDisruptionBudget: no"}, "https://x"},
		"service":      {&apply.Error{Kind: "Service", Name: "mlflow", Err: cause}, nil, "https://x"},
		"other":        {cause, nil, "https://x"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{Status: mlflowv1.MLflowStatus{URL: "https://x"}}
			_, reported := reportExposureError(m, c.err)
			if diff := cmp.Diff(c.want, stateOf(m)); diff != "" || m.Status.URL != c.url || reported != (c.want != nil) {
				t.Errorf("url %q, reported %t, conditions (-want +got):\n%s", m.Status.URL, reported, diff)
			}
		})
	}
}

// [D23] The condition exists only while the claim differs from the spec.
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
