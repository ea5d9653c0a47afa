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
			if value, labelled := node.Labels[mark.Key]; !labelled || value != mark.Value {
				continue
			}
			if mark.Effect == string(corev1.TaintEffectNoExecute) {
				result.noExecute.Insert(name)
			}
			offered := corev1.ResourceName(name)
			if capacity := node.Status.Capacity[offered]; !out && mark.Effect != string(corev1.TaintEffectPreferNoSchedule) && !capacity.IsZero() {
				result.unavailable[offered] = capacity
			}
		}
	}
	return result
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
