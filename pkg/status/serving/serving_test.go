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

// running is a Deployment that has been available for a time, with more conditions.
func running(since time.Duration, more ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Status.Conditions = append(more, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	})
	return d
}

func deploymentCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: status, Message: message}
}

func endpoints(ready *bool, addresses ...string) []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{
		Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready},
	}}}}
}

func evaluateDeployment(t *testing.T, d *appsv1.Deployment, slices []discoveryv1.EndpointSlice) State {
	t.Helper()
	return judgedAfter(t, d, false, slices)
}

func judgedAfter(t *testing.T, d *appsv1.Deployment, before bool, slices []discoveryv1.EndpointSlice) State {
	t.Helper()
	s, err := Evaluate(d, "demo", now, before, func() ([]discoveryv1.EndpointSlice, error) { return slices, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The condition Available, for every state of a server that is starting or rolling out.
func TestAvailableCondition(t *testing.T) {
	ready := endpoints(new(true), "10.0.0.1")
	stopped := &appsv1.Deployment{}
	stopped.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "Deployment does not have minimum availability.")}
	partly := running(time.Hour)
	partly.Status.UnavailableReplicas = 2
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		slices     []discoveryv1.EndpointSlice
		want       string // status reason message
	}{
		"available":            {running(time.Hour), ready, "True DeploymentAvailable Deployment is available"},
		"no condition":         {running(time.Hour), endpoints(nil, "10.0.0.1"), "True DeploymentAvailable Deployment is available"},
		"stopped":              {stopped, ready, "False DeploymentStarting Deployment is unavailable: Deployment does not have minimum availability."},
		"new":                  {&appsv1.Deployment{}, ready, "False DeploymentStarting Deployment is unavailable: the Deployment controller has not processed it yet"},
		"stuck":                {running(time.Hour, deploymentCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "too slow")), ready, "False DeploymentUnavailable Deployment is unavailable: too slow"},
		"no pods":              {running(time.Hour, deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota")), ready, "False DeploymentUnavailable Deployment is unavailable: pods cannot be created: quota"},
		"rolling out":          {partly, ready, "True DeploymentAvailable Deployment is available"},
		"no endpoints":         {running(time.Hour), nil, "False DeploymentUnavailable Service endpoints not found: Service demo has no EndpointSlice"},
		"none ready":           {running(time.Hour), endpoints(new(false), "10.0.0.1"), "False DeploymentUnavailable Service endpoints not ready - no ready addresses available"},
		"no EndpointSlice yet": {running(time.Second), nil, "False DeploymentStarting Service endpoints not found: Service demo has no EndpointSlice"},
		"no address":           {running(time.Hour), endpoints(new(true)), "False DeploymentUnavailable Service endpoints not ready - no ready addresses available"},
		"only just":            {running(time.Second), ready, "False DeploymentCooldown Deployment only recently available"},
		"long enough now":      {running(5 * time.Second), ready, "True DeploymentAvailable Deployment is available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := evaluateDeployment(t, c.deployment, c.slices)
			if got := string(s.Status) + " " + s.Reason + " " + s.Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if (s.Retry > 0) != (s.Reason == ReasonCooldown) || s.Retry > Cooldown {
				t.Errorf("retry %s", s.Retry)
			}
			if partial := c.deployment == partly; s.CheckPods != (partial || strings.HasPrefix(s.Message, "Deployment is unavailable")) {
				t.Errorf("asks the pods: %v", s.CheckPods)
			}
		})
	}
	if s := evaluateDeployment(t, running(-time.Hour), ready); s.Retry > Cooldown {
		t.Errorf("a clock that is behind makes the server wait for %s", s.Retry)
	}
}

// Available stays True while a pod serves: in a rollout that is stuck, when a node is lost, and with more replicas.
func TestAvailableWhilePodServes(t *testing.T) {
	ready := endpoints(new(true), "10.0.0.1")
	below := &appsv1.Deployment{}
	below.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "Deployment does not have minimum availability.")}
	stuck := running(time.Hour, deploymentCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "too slow"))
	quota := running(time.Hour, deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota"))
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		serving    int32
		before     bool
		slices     []discoveryv1.EndpointSlice
		want       string // status reason
		asks       bool
	}{
		"more replicas":              {below, 1, true, ready, "True DeploymentAvailable", true},
		"a stuck rollout":            {stuck, 1, true, ready, "True DeploymentAvailable", true},
		"no room for the next pod":   {quota, 1, true, ready, "True DeploymentAvailable", true},
		"all available a moment ago": {running(time.Second), 2, true, ready, "True DeploymentAvailable", false},
		"no pod":                     {below, 0, true, ready, "False DeploymentStarting", true},
		"the first start":            {below, 1, false, ready, "False DeploymentStarting", true},
		"a pod without an endpoint":  {stuck, 1, true, endpoints(new(false), "10.0.0.1"), "False DeploymentUnavailable", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.deployment.DeepCopy()
			d.Status.AvailableReplicas = c.serving
			s := judgedAfter(t, d, c.before, c.slices)
			if got := string(s.Status) + " " + s.Reason; got != c.want || s.CheckPods != c.asks {
				t.Errorf("%s (%s), asks the pods: %t; want %s, %t", got, s.Message, s.CheckPods, c.want, c.asks)
			}
		})
	}
}

// Endpoints are read once they matter, and an error is not taken for their absence.
func TestJudgeReadsEndpointsLast(t *testing.T) {
	boom := errors.New("boom")
	broken := func() ([]discoveryv1.EndpointSlice, error) { return nil, boom }
	if _, err := Evaluate(&appsv1.Deployment{}, "demo", now, false, broken); err != nil {
		t.Error(err)
	}
	if _, err := Evaluate(running(time.Hour), "demo", now, false, broken); !errors.Is(err, boom) {
		t.Errorf("ended with %v", err)
	}
}
