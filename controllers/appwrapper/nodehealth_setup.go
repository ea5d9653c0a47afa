package appwrapper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// nodesName is the name of the node controller.
const nodesName = "appwrapper-nodes"

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// SetupNodes registers the controller that follows the health of nodes and, when one is named, that of the slack queue. The
// result is nil when the settings say that nodes are not to be watched. The function returns the watcher of optional APIs.
func SetupNodes(ctx context.Context, mgr ctrl.Manager, settings Settings, served func() *capability.Watcher) (*Nodes, error) {
	if settings.Autopilot == nil || !settings.Autopilot.MonitorNodes {
		return nil, nil
	}
	taints := settings.Autopilot.ResourceTaints
	nodes, err := newNodeCache(mgr, taints)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(nodes); err != nil {
		return nil, fmt.Errorf("adding the cache of nodes: %w", err)
	}
	monitor := &nodeMonitor{reader: nodes, taints: taints, nodes: NewNodes()}
	err = ctrl.NewControllerManagedBy(mgr).Named(nodesName).WithOptions(reconciler.ControllerOptions()).
		WatchesRawSource(source.Kind(nodes, client.Object(&corev1.Node{}), &handler.EnqueueRequestForObject{}, healthChanged(taints))).
		Complete(reconciler.ClassifyErrors(monitor))
	if err != nil {
		return nil, fmt.Errorf("building the node controller: %w", err)
	}
	if settings.SlackQueueName != "" {
		if err := setupSlackQueue(ctx, mgr, settings, nodes, served); err != nil {
			return nil, err
		}
	}
	return monitor.nodes, nil
}

// newNodeCache makes a cache of nodes alone: of thousands of nodes it holds a few hundred bytes each.
func newNodeCache(mgr ctrl.Manager, taints map[corev1.ResourceName][]corev1.Taint) (cache.Cache, error) {
	out, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: slimNode(taints), ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of nodes: %w", err)
	}
	return out, nil
}

// slimNode keeps what healthOf looks at.
func slimNode(taints map[corev1.ResourceName][]corev1.Taint) toolscache.TransformFunc {
	return func(in any) (any, error) {
		node, ok := in.(*corev1.Node)
		if !ok {
			return in, nil // a tombstone carries an object that was transformed before
		}
		slim := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, DeletionTimestamp: node.DeletionTimestamp,
			},
			Spec:   corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
			Status: corev1.NodeStatus{Capacity: node.Status.Capacity},
		}
		for _, marks := range taints {
			for _, mark := range marks {
				if value, found := node.Labels[mark.Key]; found {
					metav1.SetMetaDataLabel(&slim.ObjectMeta, mark.Key, value)
				}
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable || taint.Key == corev1.TaintNodeNotReady {
				slim.Spec.Taints = append(slim.Spec.Taints, corev1.Taint{Key: taint.Key, Effect: taint.Effect})
			}
		}
		return slim, nil
	}
}

// healthChanged passes on events after which a node is judged otherwise; the many heartbeats are none.
func healthChanged(taints map[corev1.ResourceName][]corev1.Taint) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, same := e.ObjectNew.(*corev1.Node)
		return !ok || !same || !healthOf(before, taints).equal(healthOf(after, taints))
	}}
}

// nodeMonitor keeps Nodes in step with the cluster.
type nodeMonitor struct {
	reader client.Reader
	taints map[corev1.ResourceName][]corev1.Taint
	nodes  *Nodes
}

// Reconcile implements reconcile.Reconciler.
func (m *nodeMonitor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	now := health{}
	if err := m.reader.Get(ctx, request.NamespacedName, node); err == nil {
		now = healthOf(node, m.taints)
	} else if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading node %s: %w", request.Name, err)
	}
	if m.nodes.set(request.Name, now) {
		ctrl.LoggerFrom(ctx).Info("The health of a node changed", "toLeave", sets.List(now.noExecute), "unavailable", now.unavailable)
	}
	return reconcile.Result{}, nil
}
