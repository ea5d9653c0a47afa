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

	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// slackName is the name of the controller of the slack queue.
	slackQueueController = "appwrapper-slack-queue"
	// slackPatience is how long reading the queue may take: without the rights on ClusterQueues it would take for ever.
	readTimeout = 10 * time.Second
)

// queueKinds are the versions of a ClusterQueue that can be read and written, the preferred one first.
var queueKinds = []schema.GroupVersionKind{capability.KueueClusterQueue, capability.KueueClusterQueueOlder}

// setupSlackQueue registers the controller. It watches ClusterQueues while they are served. The rights on them are not in
// the role of the component but in config/components/appwrapper-slack-queue, since few installations have a slack queue.
func setupSlackQueue(ctx context.Context, mgr ctrl.Manager, name string, taints Taints, nodes cache.Cache, served func() *capability.Watcher) error {
	watcher := served()
	s := &slackQueue{
		name: name, taints: taints, nodes: nodes, queues: mgr.GetCache(), writer: mgr.GetClient(), served: watcher.Current,
	}
	toQueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: s.name}}}
	})
	c, err := ctrl.NewControllerManagedBy(mgr).Named(slackQueueController).WithOptions(reconciler.ControllerOptions()).
		WatchesRawSource(source.Kind(nodes, client.Object(&corev1.Node{}), toQueue, healthChanged(s.taints))).
		Build(reconciler.ClassifyErrors(s))
	if err != nil {
		return fmt.Errorf("building the controller of the slack queue: %w", err)
	}
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == s.name })
	for _, kind := range queueKinds {
		watcher.Watch(ctx, c, kind, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(newClusterQueue(kind)), toQueue, named)
		})
	}
	return nil
}

// healthChanged lets through events after which a node is judged otherwise; the many heartbeats are none.
func healthChanged(taints Taints) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, same := e.ObjectNew.(*corev1.Node)
		return !ok || !same || !healthOf(before, taints).equal(healthOf(after, taints))
	}}
}

func newClusterQueue(kind schema.GroupVersionKind) *unstructured.Unstructured {
	queue := &unstructured.Unstructured{}
	queue.SetGroupVersionKind(kind)
	return queue
}

// slackQueue keeps the lending limits of one ClusterQueue in step with what nodes cannot offer.
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
	if !hasCohort(queue) {
		ctrl.LoggerFrom(ctx).Info("The slack queue is in no cohort, so there is no queue to lend to: give it a cohort, or name another queue", "queue", s.name)
		return reconcile.Result{}, nil
	}
	nodes := &corev1.NodeList{}
	if err := s.nodes.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes for slack queue %s: %w", s.name, err)
	}
	wanted := queue.DeepCopy()
	changed, err := setLendingLimits(wanted, unavailable(nodes.Items, s.taints))
	if err != nil || !changed {
		return reconcile.Result{}, err
	}
	patch := client.MergeFromWithOptions(queue, client.MergeFromWithOptimisticLock{})
	err = s.writer.Patch(ctx, wanted, patch, client.FieldOwner("appwrapper"))
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, nil // the event of the newer version leads back here
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("setting the lending limits of ClusterQueue %s: %w", s.name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Set the lending limits of the slack queue", "queue", s.name)
	return reconcile.Result{}, nil
}

// read returns the queue in the preferred version that is served; nil when there is none, or when it is being deleted.
func (s *slackQueue) read(ctx context.Context) (*unstructured.Unstructured, error) {
	set := s.served()
	for _, kind := range queueKinds {
		if !set.Has(kind) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		queue := newClusterQueue(kind)
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

// unavailable sums up what nodes cannot offer.
func unavailable(nodes []corev1.Node, taints Taints) corev1.ResourceList {
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

// lend sets, in the spec of a ClusterQueue, how much may be lent of each resource of the first flavor of the first resource
// group: what is left of the nominal quota without the unavailable amount, or no limit when all of it is there. It tells
// whether anything changed. The object must not be shared.
func setLendingLimits(queue *unstructured.Unstructured, missing corev1.ResourceList) (bool, error) {
	changed := false
	for _, entry := range nested.List(queue.Object, "spec", "resourceGroups", "0", "flavors", "0", "resources") {
		quota := nested.Map(entry)
		if quota == nil {
			continue
		}
		name := nested.Text(quota, "name")
		moved, err := setLendingLimit(quota, missing[corev1.ResourceName(name)])
		if err != nil {
			return false, fmt.Errorf("quota of %s in ClusterQueue %s: %w", name, queue.GetName(), err)
		}
		changed = changed || moved
	}
	return changed, nil
}

// lendOne sets the limit of one resource.
func setLendingLimit(quota map[string]any, missing resource.Quantity) (bool, error) {
	const field = "lendingLimit"
	if missing.Sign() <= 0 {
		had := quota[field] != nil
		delete(quota, field)
		return had, nil
	}
	limit, err := podset.ParseQuantity(fmt.Sprint(quota["nominalQuota"]))
	if err != nil {
		return false, fmt.Errorf("nominalQuota %v: %w", quota["nominalQuota"], err)
	}
	limit.Sub(missing)
	if limit.Sign() < 0 {
		limit = resource.Quantity{}
	}
	if quota[field] != nil {
		if before, err := podset.ParseQuantity(fmt.Sprint(quota[field])); err == nil && sameAmount(before, limit) {
			return false, nil
		}
	}
	quota[field] = limit.String()
	return true, nil
}

// cohort tells whether the queue has other queues to lend to; Kueue refuses a lending limit otherwise.
func hasCohort(queue *unstructured.Unstructured) bool {
	return nested.Text(queue.Object, "spec", "cohortName") != "" || nested.Text(queue.Object, "spec", "cohort") != ""
}
