package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Nodes tells what nodes say about themselves. It can be used from several goroutines.
type Nodes struct {
	reader client.Reader
	cache  cache.Cache
	taints Taints
}

// Setup makes a cache of nodes alone and, when a slack queue is named, its controller. The result is nil when the settings say that
// nodes are not to be watched.
func Setup(ctx context.Context, mgr ctrl.Manager, settings config.AppWrapper, served func() *capability.Watcher) (*Nodes, error) {
	if settings.Autopilot == nil || !settings.Autopilot.MonitorNodes {
		return nil, nil
	}
	taints := settings.Autopilot.ResourceTaints
	nodes, err := component.NewCache(mgr, "", trimNode)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if err := mgr.Add(nodes); err != nil {
		return nil, fmt.Errorf("adding the cache of nodes: %w", err)
	}
	if settings.SlackQueueName != "" {
		if err := setupSlackQueue(ctx, mgr, settings.SlackQueueName, taints, nodes, served); err != nil {
			return nil, err
		}
	}
	return &Nodes{reader: nodes, cache: nodes, taints: taints}, nil
}

// NoExecute returns the resources of a node that running pods should leave; none of a node that is not known.
func (n *Nodes) NoExecute(name string) sets.Set[string] {
	node := &corev1.Node{}
	if err := n.reader.Get(context.Background(), client.ObjectKey{Name: name}, node); err != nil {
		return nil
	}
	return healthOf(node, n.taints).noExecute
}

// Changes enqueues what wake finds for each node about which NoExecute gives another answer than before (D13).
func (n *Nodes) Changes(wake handler.MapFunc) source.Source {
	return source.Kind(n.cache, client.Object(&corev1.Node{}), handler.EnqueueRequestsFromMapFunc(wake), noExecuteChanged(n.taints))
}

func noExecuteChanged(taints Taints) predicate.Predicate {
	toLeave := func(object client.Object) sets.Set[string] {
		if node, ok := object.(*corev1.Node); ok {
			return healthOf(node, taints).noExecute
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(toLeave(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return !toLeave(e.ObjectOld).Equal(toLeave(e.ObjectNew)) },
		DeleteFunc: func(e event.DeleteEvent) bool { return len(toLeave(e.Object)) > 0 },
	}
}

// slimNode keeps what healthOf reads: thousands of nodes are held.
func trimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil // a tombstone carries an object that was transformed before
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	node.Status = corev1.NodeStatus{Capacity: node.Status.Capacity}
	return node, nil
}

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
	out := isOutOfService(node)
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
func isOutOfService(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnreachable || taint.Key == corev1.TaintNodeNotReady
	})
}

// equal compares amounts and not how they are written (D26).
func (h health) equal(other health) bool {
	return h.noExecute.Equal(other.noExecute) && maps.EqualFunc(h.unavailable, other.unavailable, sameAmount)
}

func sameAmount(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
