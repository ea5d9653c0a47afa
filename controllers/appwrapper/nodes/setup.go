package nodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	nodes, err := component.NewCache(mgr, "", slimNode)
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
	return source.Kind(n.cache, client.Object(&corev1.Node{}), handler.EnqueueRequestsFromMapFunc(wake), leaveChanged(n.taints))
}

func leaveChanged(taints Taints) predicate.Predicate {
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
func slimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil // a tombstone carries an object that was transformed before
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	node.Status = corev1.NodeStatus{Capacity: node.Status.Capacity}
	return node, nil
}
