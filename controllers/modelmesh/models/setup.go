package models

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// workers is how many models may be looked at together. They mostly wait for answers, each for ten seconds at most, and the mesh of
// one namespace must not hold up all others.
const workers = 16

// controllerName is part of the metrics of the controller.
const controllerName = modelmeshcontroller.ComponentName + "-models"

// Predictors and InferenceServices are read by the whole component; here their status is written, and nothing else of them.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=predictors/status;inferenceservices/status,verbs=patch

// Setup registers the controller of models with a manager, for Predictors and InferenceServices. It is a part of the component
// modelmesh.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmeshcontroller.Dependencies) error {
	r := &models{
		client: shared.Pool.Client, enabled: shared.Namespaces.Enabled, supported: shared.Catalog.HasSupportingRuntime, cause: shared.Catalog.Cause, clock: shared.Clock,
		recorder: shared.Recorder, memory: newMemory(),
		sources: map[string]origin{modelmesh.SourcePredictor: &predictors{client: mgr.GetClient(), series: conditions.NewSeries(modelmeshcontroller.ComponentName, "Predictor"),
			missing: shared.Catalog.MissingReferences.Get}},
	}
	withServices := !shared.Config.ModelMesh.IgnoreInferenceServices
	if withServices {
		r.sources[modelmesh.SourceInferenceService] = &services{client: mgr.GetClient(), served: shared.Served.Current, clock: shared.Clock}
	}
	w := &wakes{memory: r.memory, known: r.sources, breakers: &r.breakers}
	options := reconciler.ControllerOptionsOf(workers)
	c, err := ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		WithOptions(options).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.Predictor{}), mapped(modelmesh.SourcePredictor))).
		WatchesRawSource(w).
		Build(reconciler.ClassifyErrors(r))
	if err != nil {
		return fmt.Errorf("building the controller of models: %w", err)
	}
	if withServices {
		shared.Served.Watch(ctx, c, capability.InferenceService, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(&v1beta1.InferenceService{}), mapped(modelmesh.SourceInferenceService))
		})
	}
	w.listen(ctx, shared)
	return nil
}

// listen connects the wakes with everything that wakes.
func (w *wakes) listen(ctx context.Context, shared *modelmeshcontroller.Dependencies) {
	shared.Pool.Subscribe(ctx, w.onEndpointsChanged)
	shared.Catalog.MissingReferences.Subscribe(func(namespace, name string) {
		keys := []types.NamespacedName{join(modelmesh.SourcePredictor, types.NamespacedName{Namespace: namespace, Name: name})}
		if name == "" {
			keys = w.memory.in(namespace)
		}
		w.enqueue(keys...)
	})
	shared.Catalog.Causes.Subscribe(func(namespace string) { w.enqueue(w.memory.in(namespace)...) })
	shared.Events.Subscribe(ctx, func(e meshevents.Event) { w.onEtcdEvent(e.Source, e.Namespace, e.Name) })
	shared.Served.Subscribe(ctx, func(s capability.Set) {
		if s.Has(capability.InferenceService) {
			w.onSourceReady(modelmesh.SourceInferenceService)
		}
	})
}

// mapped makes requests for models of a source.
func mapped(id string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: join(id, client.ObjectKeyFromObject(o))}}
	})
}

// wakes is the source of requests for models that something has happened to in the mesh.
type wakes struct {
	memory *memory
	known  map[string]origin
	// breakers of the namespaces are closed when their pods have changed.
	breakers *breakers

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the controller starts
}

// Start implements source.Source. What has happened before is in memory.
func (w *wakes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	w.queue = queue
	w.mu.Unlock()
	for id := range w.known {
		w.onSourceReady(id)
	}
	return nil
}

// String names the source in the controller's log.
func (w *wakes) String() string { return "events of the mesh" }

// enqueue never blocks. Keys that are queued already are not queued twice.
func (w *wakes) enqueue(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for _, key := range keys {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// onEtcdEvent is called with what the mesh wrote into etcd. A model of the same name from another source may have waited for just
// that.
func (w *wakes) onEtcdEvent(id, namespace, name string) {
	model := types.NamespacedName{Namespace: namespace, Name: name}
	if _, known := w.known[id]; known {
		key := join(id, model)
		w.memory.mark(key)
		w.enqueue(key)
	}
	for other := range w.known {
		if key := join(other, model); other != id && w.memory.markIfKnown(key) {
			w.enqueue(key)
		}
	}
}

// onEndpointsChanged is called when the client of a namespace or the pods behind it have changed.
func (w *wakes) onEndpointsChanged(namespace string) {
	w.breakers.reset(namespace)
	w.enqueue(w.memory.markNamespaceStale(namespace)...)
}

// onSourceReady is called when a source that was away may be there again: events of the meantime are handled.
func (w *wakes) onSourceReady(id string) { w.enqueue(w.memory.of(id)...) }
