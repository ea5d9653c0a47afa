// Package serving judges whether a Deployment serves behind its Service.
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
	// ReasonStarting means that the server is on its way, and that nothing is known to be wrong.
	ReasonStarting = "DeploymentStarting"
	ReasonCooldown = "DeploymentCooldown"
)

const (
	// Cooldown is how long a Deployment has to be available before it counts.
	Cooldown = 5 * time.Second
	// grace is how long what follows a Deployment may take until it counts as a failure.
	grace = time.Minute
)

// State is what the condition Available says.
type State struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Retry is when to check again although no event follows; zero for never.
	Retry time.Duration
	// AskPods: the pods may say more, of a Deployment that serves about those of its present spec.
	AskPods bool
}

// Unavailable is the state of a server that does not answer.
func Unavailable(message string) State {
	return State{Status: metav1.ConditionFalse, Reason: ReasonUnavailable, Message: message}
}

// Judge judges a Deployment and the endpoints of its Service, which are read once the Deployment is available. One that was available
// before stays so while any pod of it serves, whatever becomes of the others.
func Judge(d *appsv1.Deployment, service string, now time.Time, before bool, endpoints func() ([]discoveryv1.EndpointSlice, error)) (State, error) {
	serves := before && d.Status.AvailableReplicas > 0
	problem := deploymentProblem(d)
	if problem != "" && !serves {
		s := Unavailable("Deployment is unavailable: " + problem)
		s.AskPods = true
		if !GivenUp(d.Status) {
			s.Reason = ReasonStarting
		}
		return s, nil
	}
	all, err := endpoints()
	switch left := Cooldown - now.Sub(availableSince(d)); {
	case err != nil:
		return State{}, err
	case len(all) == 0:
		return Following(d, now, "Service endpoints not found: Service "+service+" has no EndpointSlice"), nil
	case !anyReady(all):
		return Following(d, now, "Service endpoints not ready - no ready addresses available"), nil
	case left > 0 && !serves:
		s := Unavailable("Deployment only recently available")
		s.Reason, s.Retry = ReasonCooldown, min(left, Cooldown)
		return s, nil
	}
	s := State{Status: metav1.ConditionTrue, Reason: ReasonAvailable, Message: "Deployment is available"}
	s.AskPods = d.Status.UnavailableReplicas != 0 || problem != ""
	return s, nil
}

// Following is the state of a server that lacks something which follows its Deployment within moments.
func Following(d *appsv1.Deployment, now time.Time, message string) State {
	s := Unavailable(message)
	if now.Sub(availableSince(d)) < grace {
		s.Reason = ReasonStarting
	}
	return s
}

// deploymentProblem is what the conditions of a Deployment say against it; empty when it is available.
func deploymentProblem(d *appsv1.Deployment) string {
	if c := conditions.OfDeployment(d, appsv1.DeploymentReplicaFailure); c.Status == corev1.ConditionTrue {
		return conditions.Rollout(d).Message
	}
	if c := conditions.OfDeployment(d, appsv1.DeploymentProgressing); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	switch c := conditions.OfDeployment(d, appsv1.DeploymentAvailable); c.Status {
	case "":
		return "the Deployment controller has not processed it yet"
	case corev1.ConditionTrue:
		return ""
	default:
		return c.Message
	}
}

func availableSince(d *appsv1.Deployment) time.Time {
	return conditions.OfDeployment(d, appsv1.DeploymentAvailable).LastTransitionTime.Time
}

// GivenUp reports whether the Deployment controller makes no progress or cannot create pods, whatever of it serves.
func GivenUp(status appsv1.DeploymentStatus) bool {
	d := &appsv1.Deployment{Status: status}
	return conditions.OutOfTime(d) || conditions.OfDeployment(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
}

// anyReady reports whether a Service leads to a pod that is ready, by its EndpointSlices.
func anyReady(all []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(all, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
		})
	})
}

// Endpoints lists the EndpointSlices of a Service. They copy the labels of their Service a moment after it got ours, so the API server
// is queried for what the cache does not show.
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
