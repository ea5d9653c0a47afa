package nodes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Taints are the labels of a node that tell that one of its resources is unwell, by the resource. They are written as taints because the
// effect says what to do about them.
type Taints = map[string][]config.NodeTaint

// health is what a node says about its resources.
type health struct {
	// noExecute has the resources that running pods should leave.
	noExecute sets.Set[string]
	// unavailable is how much new pods should not count on.
	unavailable corev1.ResourceList
}

// healthOf judges a node by its labels, cordons and troubles. A node that is being deleted says nothing.
func healthOf(node *corev1.Node, taints Taints) health {
	result := health{noExecute: sets.New[string](), unavailable: corev1.ResourceList{}}
	if node.DeletionTimestamp != nil {
		return result
	}
	out := outOfService(node)
	if out {
		maps.Copy(result.unavailable, node.Status.Capacity)
		delete(result.unavailable, corev1.ResourcePods)
	}
	for name, marks := range taints {
		for _, mark := range marks {
			if value, labelled := node.Labels[mark.Key]; labelled && value == mark.Value {
				result.add(corev1.ResourceName(name), corev1.TaintEffect(mark.Effect), node.Status.Capacity, out)
			}
		}
	}
	return result
}

// add counts a resource that a label marks as unwell, unless all of the node is out of service.
func (h health) add(name corev1.ResourceName, effect corev1.TaintEffect, capacity corev1.ResourceList, out bool) {
	if effect == corev1.TaintEffectNoExecute {
		h.noExecute.Insert(string(name))
	}
	if amount := capacity[name]; !out && effect != corev1.TaintEffectPreferNoSchedule && !amount.IsZero() {
		h.unavailable[name] = amount
	}
}

// outOfService tells whether no resource of the node can be counted on.
func outOfService(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return true
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable || taint.Key == corev1.TaintNodeNotReady {
			return true
		}
	}
	return false
}

// equal compares amounts and not how they are written (D26).
func (h health) equal(other health) bool {
	return h.noExecute.Equal(other.noExecute) && maps.EqualFunc(h.unavailable, other.unavailable, sameAmount)
}

func sameAmount(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
