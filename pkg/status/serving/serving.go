// Package serving evaluates whether a server is available: its Deployment, and the endpoints of its Service.
package serving

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Reasons of the condition Available.
const (
	ReasonAvailable   = "DeploymentAvailable"
	ReasonUnavailable = "DeploymentUnavailable"
	// ReasonStarting means that the server is starting, without a known failure.
	ReasonStarting = "DeploymentStarting"
	ReasonCooldown = "DeploymentCooldown"
)

const (
	// Cooldown is how long a Deployment must be available before the server counts as available.
	Cooldown = 5 * time.Second
	// dependencyGracePeriod is how long dependent objects of a Deployment may take until their absence counts as a failure.
	dependencyGracePeriod = time.Minute
)

// State is the state of the condition Available.
type State struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Retry is the remaining time of the Cooldown; zero for other reasons.
	Retry time.Duration
	// CheckPods is true if the pods may provide details: the Deployment is unavailable, or serves with a problem or unavailable replicas.
	CheckPods bool
}

// Unavailable returns the state of a server that is not available.
func Unavailable(message string) State {
	return State{Status: metav1.ConditionFalse, Reason: ReasonUnavailable, Message: message}
}

// Evaluate evaluates a Deployment and, if it is available, the endpoints of its Service. For a server that was available before, one
// available pod suffices.
func Evaluate(d *appsv1.Deployment, service string, now time.Time, wasAvailable bool, endpoints func() ([]discoveryv1.EndpointSlice, error)) (State, error) {
	serving := wasAvailable && d.Status.AvailableReplicas > 0
	problem := deploymentProblem(d)
	if problem != "" && !serving {
		s := Unavailable("Deployment is unavailable: " + problem)
		s.CheckPods = true
		if !RolloutFailed(d.Status) {
			s.Reason = ReasonStarting
		}
		return s, nil
	}
	endpointSlices, err := endpoints()
	switch remaining := Cooldown - now.Sub(availableSince(d)); {
	case err != nil:
		return State{}, err
	case len(endpointSlices) == 0:
		return WaitingFor(d, now, "Service endpoints not found: Service "+service+" has no EndpointSlice"), nil
	case !hasReadyEndpoint(endpointSlices):
		return WaitingFor(d, now, "Service endpoints not ready - no ready addresses available"), nil
	case remaining > 0 && !serving:
		s := Unavailable("Deployment only recently available")
		s.Reason, s.Retry = ReasonCooldown, min(remaining, Cooldown)
		return s, nil
	}
	s := State{Status: metav1.ConditionTrue, Reason: ReasonAvailable, Message: "Deployment is available"}
	s.CheckPods = d.Status.UnavailableReplicas != 0 || problem != ""
	return s, nil
}

// WaitingFor returns the state of a server that waits for dependent objects, which normally follow its Deployment within seconds.
func WaitingFor(d *appsv1.Deployment, now time.Time, message string) State {
	s := Unavailable(message)
	if now.Sub(availableSince(d)) < dependencyGracePeriod {
		s.Reason = ReasonStarting
	}
	return s
}

// deploymentProblem returns the problem in the conditions of a Deployment; empty if there is none.
func deploymentProblem(d *appsv1.Deployment) string {
	if c := conditions.DeploymentCondition(d, appsv1.DeploymentReplicaFailure); c.Status == corev1.ConditionTrue {
		return conditions.Rollout(d).Message
	}
	if c := conditions.DeploymentCondition(d, appsv1.DeploymentProgressing); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	switch c := conditions.DeploymentCondition(d, appsv1.DeploymentAvailable); c.Status {
	case "":
		return "the Deployment controller has not processed it yet"
	case corev1.ConditionTrue:
		return ""
	default:
		return c.Message
	}
}

func availableSince(d *appsv1.Deployment) time.Time {
	return conditions.DeploymentCondition(d, appsv1.DeploymentAvailable).LastTransitionTime.Time
}

// RolloutFailed reports whether the rollout exceeded its deadline or pods cannot be created, even if old pods are available.
func RolloutFailed(status appsv1.DeploymentStatus) bool {
	d := &appsv1.Deployment{Status: status}
	return conditions.ProgressDeadlineExceeded(d) || conditions.DeploymentCondition(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
}

// hasReadyEndpoint reports whether the EndpointSlices of a Service contain a ready address.
func hasReadyEndpoint(endpointSlices []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(endpointSlices, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
		})
	})
}

// Endpoints lists the EndpointSlices of a Service. EndpointSlices copy labels of the Service with a delay, so they are read from
// the API server if the cache has none.
func Endpoints(ctx context.Context, cached, live client.Reader, namespace, service string) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	for _, reader := range []client.Reader{cached, live} {
		err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
		if err != nil {
			return nil, fmt.Errorf("listing the endpoints of Service %s: %w", service, err)
		}
		if len(list.Items) > 0 {
			break
		}
	}
	return list.Items, nil
}
