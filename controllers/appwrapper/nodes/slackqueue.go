package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// slackQueueController is the name of the controller of the slack queue.
	slackQueueController = "appwrapper-slack-queue"
	// readTimeout limits the read of the queue from the cache: without permissions on ClusterQueues, the read would never return.
	readTimeout = 10 * time.Second
)

// clusterQueueGVKs are the supported versions of ClusterQueue, the preferred one first.
var clusterQueueGVKs = []schema.GroupVersionKind{capability.KueueClusterQueue, capability.KueueClusterQueueV1beta1}

// setupSlackQueue registers the controller. It watches ClusterQueues while they are served. The permissions on ClusterQueues
// are in config/components/appwrapper-slack-queue and not in the role of the component, since few installations have a slack queue.
func setupSlackQueue(mgr ctrl.Manager, name string, taints Taints, nodes cache.Cache, served *capability.Watcher) error {
	queue := &slackQueue{
		name: name, taints: taints, nodes: nodes, queues: mgr.GetCache(), writer: mgr.GetClient(), served: served.Current,
	}
	enqueueQueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: queue.name}}}
	})
	controller := reconciler.NewController(mgr, slackQueueController).
		WatchesRawSource(source.Kind(nodes, client.Object(&corev1.Node{}), enqueueQueue, healthChanged(queue.taints)))
	hasName := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == queue.name })
	for _, kind := range clusterQueueGVKs {
		controller.WatchesRawSource(served.Kind(mgr.GetCache(), kind, resources.NewUnstructured(kind), enqueueQueue, hasName))
	}
	if err := controller.Complete(reconciler.ClassifyErrors(queue)); err != nil {
		return fmt.Errorf("building the controller of the slack queue: %w", err)
	}
	return nil
}

// healthChanged rejects updates of nodes that do not change their health: most updates are heartbeats.
func healthChanged(taints Taints) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		original, ok := e.ObjectOld.(*corev1.Node)
		updated, okNew := e.ObjectNew.(*corev1.Node)
		return !ok || !okNew || !healthOf(original, taints).equal(healthOf(updated, taints))
	}}
}

// slackQueue reconciles the lending limits of one ClusterQueue with the unavailable capacity of nodes.
type slackQueue struct {
	name          string
	taints        Taints
	nodes, queues client.Reader
	writer        client.Writer
	served        func() capability.Set
}

// Reconcile implements reconcile.Reconciler.
func (s *slackQueue) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	queue, err := s.read(ctx)
	if err != nil || queue == nil {
		return reconcile.Result{}, err
	}
	if nested.String(queue.Object, "spec", "cohortName") == "" && nested.String(queue.Object, "spec", "cohort") == "" { // Kueue would reject a lending limit
		ctrl.LoggerFrom(ctx).Info("The slack queue has no cohort, so it cannot lend quota: set its cohort, or configure another slack queue", "queue", s.name)
		return reconcile.Result{}, nil
	}
	nodes := &corev1.NodeList{}
	if err := s.nodes.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes for slack queue %s: %w", s.name, err)
	}
	desired := queue.DeepCopy()
	changed, err := setLendingLimits(desired, sumUnavailable(nodes.Items, s.taints))
	if err != nil || !changed {
		return reconcile.Result{}, err
	}
	patch := client.MergeFromWithOptions(queue, client.MergeFromWithOptimisticLock{})
	err = s.writer.Patch(ctx, desired, patch, client.FieldOwner("appwrapper"))
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, nil // the event of the newer version requeues the queue
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("setting the lending limits of ClusterQueue %s: %w", s.name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Set the lending limits of the slack queue", "queue", s.name)
	return reconcile.Result{}, nil
}

// read returns the queue in the preferred served version, or nil if it does not exist, is terminating or no version is served.
func (s *slackQueue) read(ctx context.Context) (*unstructured.Unstructured, error) {
	servedKinds := s.served()
	for _, kind := range clusterQueueGVKs {
		if !servedKinds.Has(kind) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		queue := resources.NewUnstructured(kind)
		err := s.queues.Get(ctx, types.NamespacedName{Name: s.name}, queue)
		if apierrors.IsNotFound(err) || err == nil && queue.GetDeletionTimestamp() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ClusterQueue %s (config/components/appwrapper-slack-queue contains the permissions): %w", s.name, err)
		}
		return queue, nil
	}
	return nil, nil
}

// sumUnavailable returns the sum of the unavailable capacity of nodes.
func sumUnavailable(nodes []corev1.Node, taints Taints) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range nodes {
		for name, amount := range healthOf(&nodes[i], taints).unavailable {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	return sum
}

// setLendingLimits sets the lending limits in a ClusterQueue, for each resource of the first flavor of the first resource group: the nominal
// quota less the unavailable amount and at least 0, or no limit if nothing is unavailable. It reports whether a limit changed.
func setLendingLimits(queue *unstructured.Unstructured, unavailable corev1.ResourceList) (bool, error) {
	changed := false
	for _, entry := range nested.List(queue.Object, "spec", "resourceGroups", "0", "flavors", "0", "resources") {
		quota := nested.Map(entry)
		if quota == nil {
			continue
		}
		name := nested.String(quota, "name")
		entryChanged, err := setLendingLimit(quota, unavailable[corev1.ResourceName(name)])
		if err != nil {
			return false, fmt.Errorf("quota of %s in ClusterQueue %s: %w", name, queue.GetName(), err)
		}
		changed = changed || entryChanged
	}
	return changed, nil
}

// setLendingLimit sets the limit of one resource and reports whether it changed.
func setLendingLimit(quota map[string]any, unavailable resource.Quantity) (bool, error) {
	const field = "lendingLimit"
	if unavailable.Sign() <= 0 {
		changed := quota[field] != nil
		delete(quota, field)
		return changed, nil
	}
	limit, err := quantity.Parse(fmt.Sprint(quota["nominalQuota"]))
	if err != nil {
		return false, fmt.Errorf("nominalQuota %v: %w", quota["nominalQuota"], err)
	}
	limit.Sub(unavailable)
	if limit.Sign() < 0 {
		limit = resource.Quantity{}
	}
	if quota[field] != nil {
		if current, err := quantity.Parse(fmt.Sprint(quota[field])); err == nil && equalAmounts(current, limit) {
			return false, nil
		}
	}
	quota[field] = limit.String()
	return true, nil
}
