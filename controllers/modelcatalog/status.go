package modelcatalog

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionAvailable is the one that every Catalog has; servingcert.Condition and
// reference.Condition come where there is something to say.
const ConditionAvailable = "Available"

// Reasons of the condition.
const (
	ReasonAvailable   = "DeploymentAvailable"
	ReasonUnavailable = "DeploymentUnavailable"
	ReasonCooldown    = "DeploymentCooldown"
	// ReasonStarting says that the catalog is on its way, and that nothing is known to be wrong.
	ReasonStarting      = "DeploymentStarting"
	ReasonConfiguration = "ConfigurationError"
	ReasonNotInCharge   = "AnotherCatalogActive"
	ReasonMisplaced     = "NotAllowedHere"
	ReasonForbidden     = "Forbidden"
)

// cooldown is how long a Deployment has to be available before it counts.
const cooldown = 5 * time.Second

// grace is how long what follows a Deployment may take until it counts as a failure.
const grace = time.Minute

// availability is the condition that an observation amounts to.
type availability struct {
	status          metav1.ConditionStatus
	reason, message string
	// retry is when to look again though no event tells; zero for never.
	retry time.Duration
	// ask says that the pods know more.
	ask bool
}

func unavailable(message string) availability {
	return availability{status: metav1.ConditionFalse, reason: ReasonUnavailable, message: message}
}

// assess judges the Deployment, nil when there is none, and the endpoints of its Service.
func assess(d *appsv1.Deployment, slices []discoveryv1.EndpointSlice, now time.Time) availability {
	if d == nil {
		return unavailable("Deployment not found")
	}
	available := deploymentCondition(d, appsv1.DeploymentAvailable)
	if problem := deploymentProblem(d, available); problem != "" {
		a := unavailable("Deployment is unavailable: " + problem)
		a.ask = true
		if !conditions.GivenUp(d.Status) {
			a.reason = ReasonStarting
		}
		return a
	}
	early := now.Sub(available.LastTransitionTime.Time) < grace
	if len(slices) == 0 {
		return following(early, "Service endpoints not found: Service "+baseName+" has no EndpointSlice")
	}
	if !conditions.AnyReady(slices) {
		return following(early, "Service endpoints not ready - no ready addresses available")
	}
	if left := cooldown - now.Sub(available.LastTransitionTime.Time); left > 0 {
		return availability{
			status: metav1.ConditionFalse, reason: ReasonCooldown, message: "Deployment only recently available", retry: min(left, cooldown),
		}
	}
	// While a rollout replaces the pod that serves, the pods tell what keeps the next one.
	return availability{
		status: metav1.ConditionTrue, reason: ReasonAvailable, message: "Deployment is available", ask: d.Status.UnavailableReplicas != 0,
	}
}

// following is what is missing after the Deployment has become available. Endpoints follow within moments.
func following(early bool, message string) availability {
	a := unavailable(message)
	if early {
		a.reason = ReasonStarting
	}
	return a
}

// deploymentProblem is what the conditions of a Deployment say against it; empty when it is available.
func deploymentProblem(d *appsv1.Deployment, available *appsv1.DeploymentCondition) string {
	if c := deploymentCondition(d, appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return conditions.Rollout(d).Message
	}
	if c := deploymentCondition(d, appsv1.DeploymentProgressing); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	switch {
	case available == nil:
		return "it has not been taken up yet"
	case available.Status != corev1.ConditionTrue:
		return available.Message
	default:
		return ""
	}
}

func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &d.Status.Conditions[i]
}

// explain adds what the pods tell to an availability that asks for it: a container that waits for something that does not
// come, or the nearest other cause.
func explain(a availability, pods []corev1.Pod) availability {
	if !a.ask {
		return a
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, statuses := range [][]corev1.ContainerStatus{pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses} {
			text := waitingContainer(statuses)
			switch {
			case text == "":
			case a.status == metav1.ConditionTrue:
				a.message += "; pods of its present spec are not: " + text
				return a
			default:
				return availability{status: metav1.ConditionFalse, reason: ReasonConfiguration, message: text}
			}
		}
	}
	if a.status == metav1.ConditionTrue {
		return a
	}
	if cause := conditions.Diagnose(pods); cause != "" {
		return unavailable("Deployment is unavailable: " + cause)
	}
	return a
}

// waitingContainer names the first container that waits for longer than its start takes.
func waitingContainer(statuses []corev1.ContainerStatus) string {
	for _, s := range statuses {
		w := s.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		message := w.Message
		if message == "" || w.Reason == "CrashLoopBackOff" { // its message counts the seconds
			message = w.Reason
		}
		return fmt.Sprintf("container %s waiting: %s", s.Name, message)
	}
	return ""
}
