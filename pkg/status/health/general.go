package health

import (
	"cmp"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// negative conditions are bad when they are True, beside those that conditions.Bad knows; see the API conventions of Kubernetes.
var negative = map[string]bool{"Unhealthy": true, "ReplicaFailure": true, "RayClusterReplicaFailure": true, "UnusedDatabase": true}

// neutral conditions report what is so by intention.
var neutral = map[string]bool{
	"QuotaReserved": true, "DeletingResources": true, "RayClusterSuspended": true, "RayClusterSuspending": true, "ScalingLimited": true,
}

// passing are reasons of a False condition that ends by itself: a server that has only just got ready.
var passing = map[string]bool{"DeploymentCooldown": true}

// main conditions sum up the others, best first.
var mains = []string{"Ready", "Available"}

// byCondition judges by one condition, and by one that reports whether a controller is at work; empty for none. Where the first is
// True, others may still need attention.
func byCondition(main, activity string) judge {
	return func(o object) Verdict {
		c := o.condition(main)
		switch {
		case c.Type == "":
			return Verdict{State: Unknown, Message: "no controller has reported on it yet"}
		case o.stale(c):
			return Verdict{State: Progressing, Reason: c.Reason, Message: "the last change is being taken up", Since: c.LastTransitionTime.Time}
		case c.Status == metav1.ConditionTrue:
			if moving := o.condition("Reconciling"); moving.Status == metav1.ConditionTrue && main != "Ready" {
				return verdictOf(moving, Progressing) // it serves, and not yet as the spec asks for
			}
			return attention(o, verdictOf(c, Healthy), main)
		}
		if o.condition(activity).Status == metav1.ConditionTrue || c.Status == metav1.ConditionUnknown || passing[c.Reason] {
			return verdictOf(c, Progressing)
		}
		return verdictOf(c, Failed)
	}
}

// attention looks for conditions that are bad although the main one is good.
func attention(o object, well Verdict, main string) Verdict {
	for _, c := range o.conditions() {
		bad := conditions.Bad(c) && (c.Status == metav1.ConditionTrue || !activity(c.Type))
		if negative[c.Type] {
			bad = c.Status == metav1.ConditionTrue
		}
		if bad && c.Type != main && !neutral[c.Type] {
			verdict := verdictOf(c, Degraded)
			verdict.Reason = cmp.Or(verdict.Reason, c.Type)
			return verdict
		}
	}
	return well
}

// activity recognises, by its name, a condition that is False at rest: a controller is at work, or something presses, while it is True. Issuing of
// cert-manager, UpgradeInProgress of KubeRay and MemoryPressure of nodes are such.
func activity(kind string) bool {
	return strings.HasSuffix(kind, "ing") || strings.HasSuffix(kind, "InProgress") || strings.HasSuffix(kind, "Pressure") || strings.HasSuffix(kind, "Unavailable")
}

// computedStates are those of kstatus in our words.
var computedStates = map[kstatus.Status]State{
	kstatus.CurrentStatus: Healthy, kstatus.InProgressStatus: Progressing, kstatus.FailedStatus: Failed, kstatus.UnknownStatus: Unknown,
}

// computed judges by the rules of kstatus.
func computed(o object) Verdict {
	result, err := kstatus.Compute(o.Unstructured)
	if err != nil {
		return odd()
	}
	verdict := Verdict{State: computedStates[result.Status]}
	if verdict.State != Healthy {
		verdict.Message = result.Message
	}
	for _, c := range result.Conditions {
		verdict.Reason = c.Reason
	}
	return verdict
}

// general judges a kind of which nothing is known: by kstatus, where it has no condition that sums up the others.
func general(o object) Verdict {
	verdict := computed(o)
	if verdict.State == Failed {
		return verdict
	}
	for _, main := range mains {
		if o.condition(main).Type != "" {
			return byCondition(main, "Progressing")(o)
		}
	}
	if verdict.State == Progressing {
		return verdict
	}
	return attention(o, Verdict{State: Healthy}, "")
}
