package appwrapper

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
)

// health is what a node says about its resources.
type health struct {
	// noExecute has the resources that running pods should leave.
	noExecute sets.Set[string]
	// unavailable is how much new pods should not count on.
	unavailable corev1.ResourceList
}

// healthOf judges a node by its labels, cordons and troubles. A node that is being deleted says nothing.
func healthOf(node *corev1.Node, taints map[corev1.ResourceName][]corev1.Taint) health {
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
			if mark.Effect == corev1.TaintEffectNoExecute {
				result.noExecute.Insert(string(name))
			}
			if capacity := node.Status.Capacity[name]; !out && mark.Effect != corev1.TaintEffectPreferNoSchedule && !capacity.IsZero() {
				result.unavailable[name] = capacity
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

// healthy tells that there is nothing to remember about the node.
func (h health) healthy() bool { return len(h.noExecute)+len(h.unavailable) == 0 }

// Nodes remembers which nodes are unwell. It can be used from several goroutines.
type Nodes struct {
	mu      sync.RWMutex
	unwell  map[string]health
	changed []func(node string)
}

// NewNodes returns the memory of a cluster whose nodes are all well.
func NewNodes() *Nodes { return &Nodes{unwell: map[string]health{}} }

// NoExecute returns the resources of a node that running pods should leave. The set belongs to the caller.
func (n *Nodes) NoExecute(node string) sets.Set[string] {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.unwell[node].noExecute.Clone()
}

// Changed has f called for each node about whose resources NoExecute gives another answer than before. It must be called
// before the node controller starts, and f must not block.
func (n *Nodes) Changed(f func(node string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = append(n.changed, f)
}

// set remembers the health of a node and tells whether anything is new.
func (n *Nodes) set(node string, now health) bool {
	n.mu.Lock()
	before := n.unwell[node]
	if before.equal(now) {
		n.mu.Unlock()
		return false
	}
	if now.healthy() {
		delete(n.unwell, node)
	} else {
		n.unwell[node] = now
	}
	var hear []func(string)
	if !before.noExecute.Equal(now.noExecute) {
		hear = n.changed
	}
	n.mu.Unlock()
	for _, f := range hear {
		f(node)
	}
	return true
}
