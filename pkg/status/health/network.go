package health

import (
	"fmt"

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

// route looks at what each router says.
func route(o object) Verdict {
	ingresses := o.list("status", "ingress")
	for _, ingress := range ingresses {
		for _, c := range ingress.conditions("conditions") {
			if c.kind == "Admitted" && c.is(metav1.ConditionFalse) {
				return c.verdict(Failed)
			}
		}
	}
	if len(ingresses) == 0 {
		return Verdict{State: Idle, Message: "no router has taken it up"}
	}
	return Verdict{State: Healthy, Message: o.text("spec", "host")}
}

// httpRoute looks at what each gateway says.
func httpRoute(o object) Verdict {
	parents := o.list("status", "parents")
	for _, parent := range parents {
		for _, c := range parent.conditions("conditions") {
			if (c.kind == "Accepted" || c.kind == "ResolvedRefs") && c.is(metav1.ConditionFalse) {
				return c.verdict(Failed)
			}
		}
	}
	if len(parents) == 0 {
		return Verdict{State: Idle, Message: "no gateway has taken it up"}
	}
	return Verdict{State: Healthy}
}

func autoscaler(o object) Verdict {
	for _, c := range o.conditions() {
		if c.is(metav1.ConditionFalse) && (c.kind == "AbleToScale" || c.kind == "ScalingActive") {
			if c.reason == "ScalingDisabled" {
				return c.verdict(Idle)
			}
			return c.verdict(Degraded)
		}
	}
	have, _ := o.number("status", "currentReplicas")
	least, found := o.number("spec", "minReplicas")
	if !found {
		least = 1
	}
	most, _ := o.number("spec", "maxReplicas")
	return Verdict{State: Healthy, Message: fmt.Sprintf("%d replicas of %d to %d", have, least, most)}
}

func kueueWorkload(o object) Verdict {
	if c, found := o.condition("Finished"); found && c.is(metav1.ConditionTrue) {
		if c.reason == "Failed" { // the job in it
			return c.verdict(Failed)
		}
		return c.verdict(Healthy)
	}
	if c, found := o.condition("Admitted"); found && c.is(metav1.ConditionTrue) {
		return c.verdict(Healthy)
	}
	if c, found := o.condition("QuotaReserved"); found {
		return c.verdict(Idle)
	}
	return Verdict{State: Idle, Reason: "Pending", Message: "it waits in its queue"}
}
