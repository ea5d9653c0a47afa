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

	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Nodes reads the health of nodes from a cache. It is safe for concurrent use.
type Nodes struct {
	reader client.Reader
	cache  cache.Cache
	taints Taints
}

// Setup creates a cache of nodes and, if a slack queue is configured, its controller. It returns nil if nodes are not to be monitored.
func Setup(mgr ctrl.Manager, settings config.AppWrapper, served *capability.Watcher) (*Nodes, error) {
	if settings.Autopilot == nil || !settings.Autopilot.MonitorNodes {
		return nil, nil
	}
	taints := settings.Autopilot.ResourceTaints
	nodes, err := caches.New(mgr, "", cache.Options{DefaultTransform: trimNode})
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if settings.SlackQueueName != "" {
		if err := setupSlackQueue(mgr, settings.SlackQueueName, taints, nodes, served); err != nil {
			return nil, err
		}
	}
	return &Nodes{reader: nodes, cache: nodes, taints: taints}, nil
}

// NoExecute returns the resources of a node for which running pods should be evicted; none for an unknown node.
func (n *Nodes) NoExecute(name string) sets.Set[string] {
	node := &corev1.Node{}
	if err := n.reader.Get(context.Background(), client.ObjectKey{Name: name}, node); err != nil {
		return nil
	}
	return healthOf(node, n.taints).noExecute
}

// Changes returns a source of the requests that enqueue returns for each node whose NoExecute result changes [D13].
func (n *Nodes) Changes(enqueue handler.MapFunc) source.Source {
	return source.Kind(n.cache, client.Object(&corev1.Node{}), handler.EnqueueRequestsFromMapFunc(enqueue), noExecuteChanged(n.taints))
}

func noExecuteChanged(taints Taints) predicate.Predicate {
	noExecute := func(object client.Object) sets.Set[string] {
		if node, ok := object.(*corev1.Node); ok {
			return healthOf(node, taints).noExecute
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(noExecute(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return !noExecute(e.ObjectOld).Equal(noExecute(e.ObjectNew)) },
		DeleteFunc: func(e event.DeleteEvent) bool { return len(noExecute(e.Object)) > 0 },
	}
}

// trimNode removes the fields that healthOf does not read: the cache may hold thousands of nodes.
func trimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil // the object in a tombstone is trimmed already
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	node.Status = corev1.NodeStatus{Capacity: node.Status.Capacity}
	return node, nil
}

// Taints are node labels that mark a resource as unhealthy, by resource. They have the form of taints because the effect defines the reaction.
type Taints = map[string][]config.NodeTaint

// health is the health of the resources of a node.
type health struct {
	// noExecute are the resources for which running pods should be evicted.
	noExecute sets.Set[string]
	// unavailable is the capacity that new pods cannot use.
	unavailable corev1.ResourceList
}

// healthOf returns the health of a node from its labels, cordon and taints. A terminating node has an empty health.
func healthOf(node *corev1.Node, taints Taints) health {
	result := health{noExecute: sets.New[string](), unavailable: corev1.ResourceList{}}
	if node.DeletionTimestamp != nil {
		return result
	}
	outOfService := node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnreachable || taint.Key == corev1.TaintNodeNotReady
	})
	if outOfService {
		maps.Copy(result.unavailable, node.Status.Capacity)
		delete(result.unavailable, corev1.ResourcePods)
	}
	for name, labels := range taints {
		for _, label := range labels {
			if value, ok := node.Labels[label.Key]; ok && value == label.Value {
				result.add(corev1.ResourceName(name), corev1.TaintEffect(label.Effect), node.Status.Capacity, outOfService)
			}
		}
	}
	return result
}

// add adds an unhealthy resource. Its capacity is already counted if the node is out of service.
func (h health) add(name corev1.ResourceName, effect corev1.TaintEffect, capacity corev1.ResourceList, outOfService bool) {
	if effect == corev1.TaintEffectNoExecute {
		h.noExecute.Insert(string(name))
	}
	if amount := capacity[name]; !outOfService && effect != corev1.TaintEffectPreferNoSchedule && !amount.IsZero() {
		h.unavailable[name] = amount
	}
}

// equal compares amounts by value and not by notation [D26].
func (h health) equal(other health) bool {
	return h.noExecute.Equal(other.noExecute) && maps.EqualFunc(h.unavailable, other.unavailable, equalAmounts)
}

func equalAmounts(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
