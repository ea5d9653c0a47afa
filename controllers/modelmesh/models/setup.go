package models

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
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

const (
	// maxConcurrentReconciles is high because reconciles wait for responses of the mesh, up to ten seconds each.
	maxConcurrentReconciles = 16
	// maxReconcilesPerNamespace limits the reconciles of one namespace: a slow mesh must not occupy all workers.
	maxReconcilesPerNamespace = 4
)

const controllerName = modelmeshcontroller.ComponentName + "-models"

// The RBAC markers of package controllers/modelmesh allow reading Predictors and InferenceServices.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=predictors/status;inferenceservices/status,verbs=patch

// Setup adds the controller for the models of Predictors and InferenceServices to a manager. It is a modelmeshcontroller.Subcontroller.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmeshcontroller.Dependencies) error {
	r := &modelReconciler{
		client: shared.Pool.Client, enabled: shared.Namespaces.Enabled, supported: shared.Lister.HasSupportingRuntime, cause: shared.Lister.Cause, clock: shared.Clock,
		recorder: shared.Recorder, states: newStateCache(),
		sources: map[string]modelSource{modelmesh.SourcePredictor: &predictorSource{client: mgr.GetClient(), series: conditions.NewNotReadySeries(modelmeshcontroller.ComponentName, "Predictor"), writes: reconciler.NewStatusWrites(shared.Clock, 0),
			missingReferences: shared.Lister.MissingReferences.Get}},
	}
	withInferenceServices := !shared.Config.ModelMesh.IgnoreInferenceServices
	if withInferenceServices {
		r.sources[modelmesh.SourceInferenceService] = &inferenceServiceSource{client: mgr.GetClient(), served: shared.Served.Current, clock: shared.Clock, writes: reconciler.NewStatusWrites(shared.Clock, 0)}
	}
	meshSource := &eventSource{states: r.states, sources: r.sources, breakers: &r.breakers}
	controllerBuilder := ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		WithOptions(reconciler.ControllerOptions(maxConcurrentReconciles, maxReconcilesPerNamespace)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.Predictor{}), enqueueFor(modelmesh.SourcePredictor))).
		WatchesRawSource(meshSource)
	if withInferenceServices {
		controllerBuilder.WatchesRawSource(shared.Served.Kind(mgr.GetCache(), capability.InferenceService, &v1beta1.InferenceService{}, enqueueFor(modelmesh.SourceInferenceService)))
	}
	if err := controllerBuilder.Complete(reconciler.ClassifyErrors(r)); err != nil {
		return fmt.Errorf("building the controller of models: %w", err)
	}
	meshSource.subscribe(ctx, shared)
	return nil
}

// subscribe registers the handlers of all events that are not changes of the resources.
func (es *eventSource) subscribe(ctx context.Context, shared *modelmeshcontroller.Dependencies) {
	shared.Pool.Subscribe(ctx, es.onEndpointsChanged)
	enqueueNamespace := func(namespace string) { es.enqueue(es.states.keysOfNamespace(namespace)...) }
	shared.Lister.MissingReferences.Subscribe(ctx, enqueueNamespace)
	shared.Lister.NotServingCauses.Subscribe(ctx, enqueueNamespace)
	shared.Events.Subscribe(ctx, func(e meshevents.Event) { es.onEtcdEvent(e.Source, e.Namespace, e.Name) })
	shared.Served.Subscribe(ctx, func(s capability.Set) {
		if s.Has(capability.InferenceService) {
			es.onModelSourceReady(modelmesh.SourceInferenceService)
		}
	})
}

// enqueueFor returns a handler that enqueues the model of a resource. id is the source.
func enqueueFor(id string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: modelKey(id, client.ObjectKeyFromObject(o))}}
	})
}

// eventSource is the source of requests for models whose state in the mesh may have changed.
type eventSource struct {
	states  *stateCache
	sources map[string]modelSource
	// breakers are reset when the pods of their namespace change.
	breakers *circuitBreakers

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the controller starts
}

// Start implements source.Source. It enqueues all models in the state cache, because enqueue drops keys before the start.
func (es *eventSource) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	es.mu.Lock()
	es.queue = queue
	es.mu.Unlock()
	for id := range es.sources {
		es.onModelSourceReady(id)
	}
	return nil
}

// String implements fmt.Stringer for log lines of the controller.
func (es *eventSource) String() string { return "events of the mesh" }

// enqueue never blocks. The queue deduplicates keys.
func (es *eventSource) enqueue(keys ...types.NamespacedName) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if es.queue == nil {
		return
	}
	for _, key := range keys {
		es.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// onEtcdEvent is called for each change that the mesh stores in etcd. It also enqueues models of other sources that may wait for the name.
// A name that no resource can have is ignored.
func (es *eventSource) onEtcdEvent(id, namespace, name string) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return
	}
	model := types.NamespacedName{Namespace: namespace, Name: name}
	if _, known := es.sources[id]; known {
		key := modelKey(id, model)
		es.states.markDirty(key)
		es.enqueue(key)
	}
	for other := range es.sources {
		if key := modelKey(other, model); other != id && es.states.markDirtyIfKnown(key) {
			es.enqueue(key)
		}
	}
}

// onEndpointsChanged is called when the client or the ready pods of a namespace changed.
func (es *eventSource) onEndpointsChanged(namespace string) {
	es.breakers.reset(namespace)
	es.enqueue(es.states.markPodsChanged(namespace)...)
}

// onModelSourceReady enqueues the cached models of a source when its API is served: earlier reconciles did nothing.
func (es *eventSource) onModelSourceReady(id string) { es.enqueue(es.states.keysOfSource(id)...) }
