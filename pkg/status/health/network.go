package health

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claim(o object) Verdict {
	switch phase := o.text("status", "phase"); phase {
	case "Bound":
		return Verdict{State: Healthy, Reason: phase, Message: o.text("status", "capacity", "storage")}
	case "Lost":
		return Verdict{State: Failed, Reason: phase, Message: "its volume is gone; restore it, or the data is lost"}
	default:
		return Verdict{State: Progressing, Reason: "Pending", Message: "it has no volume yet, which some classes give when a pod uses it first"}
	}
}

func service(o object) Verdict {
	if o.text("spec", "type") == "LoadBalancer" && len(o.list("status", "loadBalancer", "ingress")) == 0 {
		return Verdict{State: Progressing, Reason: "Pending", Message: "it has no address from a load balancer yet"}
	}
	return Verdict{State: Healthy}
}

func route(o object) Verdict {
	verdict := takenUp(o.list("status", "ingress"), "Admitted")
	switch verdict.State {
	case Idle:
		verdict.Message = "no router has taken it up"
	case Healthy:
		verdict.Message = o.text("spec", "host")
	}
	return verdict
}

func httpRoute(o object) Verdict {
	verdict := takenUp(o.list("status", "parents"), "Accepted", "ResolvedRefs")
	if verdict.State == Idle {
		verdict.Message = "no gateway has taken it up"
	}
	return verdict
}

// takenUp looks at what each router or gateway says: none of the conditions may be False.
func takenUp(parents []object, conditions ...string) Verdict {
	for _, parent := range parents {
		for _, c := range parent.conditions("conditions") {
			if slices.Contains(conditions, c.Type) && c.Status == metav1.ConditionFalse {
				return verdictOf(c, Failed)
			}
		}
	}
	if len(parents) == 0 {
		return Verdict{State: Idle}
	}
	return Verdict{State: Healthy}
}

func autoscaler(o object) Verdict {
	for _, c := range o.conditions() {
		if c.Status == metav1.ConditionFalse && (c.Type == "AbleToScale" || c.Type == "ScalingActive") {
			if c.Reason == "ScalingDisabled" {
				return verdictOf(c, Idle)
			}
			return verdictOf(c, Degraded)
		}
	}
	return Verdict{State: Healthy, Message: fmt.Sprintf("%d replicas of %d to %d",
		o.number("status", "currentReplicas"), o.numberOr(1, "spec", "minReplicas"), o.number("spec", "maxReplicas"))}
}

func kueueWorkload(o object) Verdict {
	if c := o.condition("Finished"); c.Status == metav1.ConditionTrue {
		if c.Reason == "Failed" { // the job in it
			return verdictOf(c, Failed)
		}
		return verdictOf(c, Healthy)
	}
	if c := o.condition("Admitted"); c.Status == metav1.ConditionTrue {
		return verdictOf(c, Healthy)
	}
	if c := o.condition("QuotaReserved"); c.Type != "" {
		return verdictOf(c, Idle)
	}
	return Verdict{State: Idle, Reason: "Pending", Message: "it waits in its queue"}
}
