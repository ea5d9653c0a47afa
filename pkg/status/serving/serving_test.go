package serving

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// availableDeployment returns a Deployment that has been available for a time, with additional conditions.
func availableDeployment(since time.Duration, more ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Status.Conditions = append(more, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	})
	return d
}

func deploymentCondition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: status, Message: message}
}

func endpoints(ready *bool, addresses ...string) []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{
		Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready},
	}}}}
}

func evaluateDeployment(t *testing.T, d *appsv1.Deployment, endpointSlices []discoveryv1.EndpointSlice) State {
	t.Helper()
	return evaluateWithHistory(t, d, false, endpointSlices)
}

func evaluateWithHistory(t *testing.T, d *appsv1.Deployment, wasAvailable bool, endpointSlices []discoveryv1.EndpointSlice) State {
	t.Helper()
	s, err := Evaluate(d, "demo", now, wasAvailable, func() ([]discoveryv1.EndpointSlice, error) { return endpointSlices, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Evaluate returns the state of the condition Available for a server that was not available before.
func TestEvaluate(t *testing.T) {
	ready := endpoints(new(true), "10.0.0.1")
	unavailable := &appsv1.Deployment{}
	unavailable.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "Deployment does not have minimum availability.")}
	partlyAvailable := availableDeployment(time.Hour)
	partlyAvailable.Status.UnavailableReplicas = 2
	for name, c := range map[string]struct {
		deployment     *appsv1.Deployment
		endpointSlices []discoveryv1.EndpointSlice
		want           string // status reason message
	}{
		"available":                        {availableDeployment(time.Hour), ready, "True DeploymentAvailable Deployment is available"},
		"endpoint without ready condition": {availableDeployment(time.Hour), endpoints(nil, "10.0.0.1"), "True DeploymentAvailable Deployment is available"},
		"unavailable":                      {unavailable, ready, "False DeploymentStarting Deployment is unavailable: Deployment does not have minimum availability."},
		"new Deployment":                   {&appsv1.Deployment{}, ready, "False DeploymentStarting Deployment is unavailable: the Deployment controller has not processed it yet"},
		"progress deadline exceeded":       {availableDeployment(time.Hour, deploymentCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "too slow")), ready, "False DeploymentUnavailable Deployment is unavailable: too slow"},
		"pods cannot be created":           {availableDeployment(time.Hour, deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota")), ready, "False DeploymentUnavailable Deployment is unavailable: pods cannot be created: quota"},
		"rolling out":                      {partlyAvailable, ready, "True DeploymentAvailable Deployment is available"},
		"no EndpointSlice":                 {availableDeployment(time.Hour), nil, "False DeploymentUnavailable Service endpoints not found: Service demo has no EndpointSlice"},
		"no ready endpoint":                {availableDeployment(time.Hour), endpoints(new(false), "10.0.0.1"), "False DeploymentUnavailable Service endpoints not ready - no ready addresses available"},
		"no EndpointSlice yet":             {availableDeployment(time.Second), nil, "False DeploymentStarting Service endpoints not found: Service demo has no EndpointSlice"},
		"endpoint without address":         {availableDeployment(time.Hour), endpoints(new(true)), "False DeploymentUnavailable Service endpoints not ready - no ready addresses available"},
		"within the cooldown":              {availableDeployment(time.Second), ready, "False DeploymentCooldown Deployment only recently available"},
		"after the cooldown":               {availableDeployment(5 * time.Second), ready, "True DeploymentAvailable Deployment is available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := evaluateDeployment(t, c.deployment, c.endpointSlices)
			if got := string(s.Status) + " " + s.Reason + " " + s.Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if (s.Retry > 0) != (s.Reason == ReasonCooldown) || s.Retry > Cooldown {
				t.Errorf("got Retry %s for reason %s", s.Retry, s.Reason)
			}
			if partial := c.deployment == partlyAvailable; s.CheckPods != (partial || strings.HasPrefix(s.Message, "Deployment is unavailable")) {
				t.Errorf("got CheckPods %t, want %t", s.CheckPods, !s.CheckPods)
			}
		})
	}
	if s := evaluateDeployment(t, availableDeployment(-time.Hour), ready); s.Retry > Cooldown {
		t.Errorf("available since a future time: got Retry %s, want at most %s", s.Retry, Cooldown)
	}
}

// Available stays True while an available pod is a ready endpoint: during a failed rollout, and with fewer available replicas than desired.
func TestAvailableWhilePodServes(t *testing.T) {
	ready := endpoints(new(true), "10.0.0.1")
	unavailable := &appsv1.Deployment{}
	unavailable.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "Deployment does not have minimum availability.")}
	stuck := availableDeployment(time.Hour, deploymentCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "too slow"))
	quotaExceeded := availableDeployment(time.Hour, deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota"))
	for name, c := range map[string]struct {
		deployment     *appsv1.Deployment
		available      int32
		wasAvailable   bool
		endpointSlices []discoveryv1.EndpointSlice
		want           string // status reason
		checkPods      bool
	}{
		"fewer replicas than desired": {unavailable, 1, true, ready, "True DeploymentAvailable", true},
		"failed rollout":              {stuck, 1, true, ready, "True DeploymentAvailable", true},
		"pods cannot be created":      {quotaExceeded, 1, true, ready, "True DeploymentAvailable", true},
		"within the cooldown":         {availableDeployment(time.Second), 2, true, ready, "True DeploymentAvailable", false},
		"no available pod":            {unavailable, 0, true, ready, "False DeploymentStarting", true},
		"first start":                 {unavailable, 1, false, ready, "False DeploymentStarting", true},
		"no ready endpoint":           {stuck, 1, true, endpoints(new(false), "10.0.0.1"), "False DeploymentUnavailable", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.deployment.DeepCopy()
			d.Status.AvailableReplicas = c.available
			s := evaluateWithHistory(t, d, c.wasAvailable, c.endpointSlices)
			if got := string(s.Status) + " " + s.Reason; got != c.want || s.CheckPods != c.checkPods {
				t.Errorf("got %s (%s), CheckPods %t; want %s, %t", got, s.Message, s.CheckPods, c.want, c.checkPods)
			}
		})
	}
}

// Endpoints are read only for an available Deployment, and errors are returned.
func TestEvaluateReadsEndpointsOfAvailableDeployment(t *testing.T) {
	listErr := errors.New("timeout")
	failingEndpoints := func() ([]discoveryv1.EndpointSlice, error) { return nil, listErr }
	if _, err := Evaluate(&appsv1.Deployment{}, "demo", now, false, failingEndpoints); err != nil {
		t.Error(err)
	}
	if _, err := Evaluate(availableDeployment(time.Hour), "demo", now, false, failingEndpoints); !errors.Is(err, listErr) {
		t.Errorf("got error %v, want %v", err, listErr)
	}
}
