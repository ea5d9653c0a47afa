package models

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// modelReconciler reconciles models of all sources.
type modelReconciler struct {
	sources map[string]modelSource
	// client returns the client for the mesh of a namespace, and false if there is none.
	client func(namespace string) (meshclient.Client, bool)
	// enabled reports whether ModelMesh is enabled in a namespace.
	enabled func(ctx context.Context, namespace string) (bool, error)
	// supported reports whether a namespace has a runtime for models with the given ModelMesh label.
	supported func(ctx context.Context, namespace, label string) (bool, error)
	// cause returns the reason why no runtime of a namespace has a pod for models with the given label, and whether the reason is known.
	cause    func(ctx context.Context, namespace, label string) (modelmeshcontroller.Cause, bool, error)
	clock    clock.PassiveClock
	recorder events.EventRecorder
	states   *stateCache
	breakers circuitBreakers
}

// Reconcile implements reconcile.Reconciler. A request has the form of modelKey.
func (r *modelReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	id, name := splitKey(key)
	source := r.sources[id]
	model, err := source.get(ctx, name)
	switch {
	case errors.Is(err, errSourceUnavailable):
		return ctrl.Result{}, nil // eventSource enqueues the models when the source becomes available
	case err != nil:
		return ctrl.Result{}, err
	case model == nil:
		retry, err := r.deleteModel(ctx, key)
		return ctrl.Result{RequeueAfter: retry}, err
	case model.writes.IsStale(model.object): // an update would conflict
		return ctrl.Result{RequeueAfter: reconciler.StaleCacheRetry}, nil
	}
	retry, err := r.reconcile(ctx, key, source, model)
	return ctrl.Result{RequeueAfter: retry}, err
}

// reconcile registers a model that is not paused with the mesh if a call is due, and updates the status of the model. It returns the delay
// until the next reconcile, or 0 for none.
func (r *modelReconciler) reconcile(ctx context.Context, key types.NamespacedName, source modelSource, model *resourceModel) (time.Duration, error) {
	if model.isPaused() { // the state stays dirty until reconciliation is resumed
		_, err := source.updateStatus(ctx, model, model.status)
		if apierrors.IsConflict(err) {
			return reconciler.ConflictRetry, nil
		}
		return 0, err
	}
	state := r.states.getAndClearDirty(key)
	next, err := r.refreshStatus(ctx, model, &state)
	if err != nil {
		r.states.store(key, state)
		r.states.markDirty(key) // the event is not handled yet
		return 0, err
	}
	if state.result != notCalled || model.specError != "" {
		next.ObservedGeneration = model.object.GetGeneration()
	}
	written, err := source.updateStatus(ctx, model, next)
	if written {
		r.recordEvents(model, next)
	}
	r.states.store(key, state)
	if apierrors.IsConflict(err) {
		return reconciler.ConflictRetry, nil
	}
	if err != nil || state.nextCall.IsZero() {
		return 0, err
	}
	return max(state.nextCall.Sub(r.clock.Now()), time.Millisecond), nil
}

// refreshStatus calls the mesh if a call is due, and returns the desired status.
func (r *modelReconciler) refreshStatus(ctx context.Context, model *resourceModel, state *modelState) (v1alpha1.PredictorStatus, error) {
	client, found := r.client(model.Namespace)
	if !found {
		*state = modelState{}
		return r.statusWithoutClient(ctx, model)
	}
	now := r.clock.Now()
	requestKey := model.modelID() + " " + string(model.UID) + " " + model.specError
	callDue := state.needsCall(requestKey, now)
	var failure error
	if callDue {
		state.reset(requestKey)
		loadNow, err := r.shouldLoadNow(ctx, model, state)
		if err != nil {
			return model.status, err
		}
		failure = r.withBreaker(model.Namespace, func() error { return callMesh(ctx, client, model, state, loadNow) })
	}
	next, err := r.desiredStatus(ctx, client, model, state)
	if err != nil {
		return next, err
	}
	if callDue {
		scheduleNextCall(ctx, state, next, failure, now)
	}
	return r.withCallError(model, state, next), nil
}

// scheduleNextCall records the result of the last call and sets the time of the next one. The failure may be errCircuitOpen.
func scheduleNextCall(ctx context.Context, state *modelState, next v1alpha1.PredictorStatus, failure error, now time.Time) {
	switch {
	case failure != nil:
		state.failures, state.lastError = state.failures+1, errorText(failure)
		log.FromContext(ctx).Info("Calling ModelMesh failed; retrying", "reason", state.lastError)
		state.scheduleCall(now, maxBackoff)
	case state.result == idConflict || state.result == specMismatch:
		state.scheduleCall(now, maxBackoff)
	case state.result == statusReceived && isProgressing(next):
		state.scheduleCall(now, state.maxInterval(next))
	default: // each further change causes an event
		state.cancelCall()
	}
	if failure == nil {
		state.failures, state.lastError = 0, ""
	}
}

// errorText returns the redacted and clipped text of an error of the mesh, which is not trusted.
func errorText(err error) string {
	return redact.Clip(err.Error(), redact.MaxNote)
}

// withCallError reports the last error of the calls after maxFailures failures. Available keeps its stored value, because the mesh may
// still serve inference requests.
func (r *modelReconciler) withCallError(model *resourceModel, state *modelState, next v1alpha1.PredictorStatus) v1alpha1.PredictorStatus {
	if state.failures < maxFailures || model.specError != "" {
		return next
	}
	if isMeshUnreachable(model.status.LastFailureInfo) {
		next.LastFailureInfo = model.status.LastFailureInfo // the error of each attempt differs
	} else {
		next = withFailure(next, v1alpha1.RuntimeUnhealthy, messageMeshUnreachable+state.lastError, model.modelID())
	}
	next.Available = model.status.Available
	return next
}

// withBreaker runs a call to the mesh of a namespace if its circuit breaker allows it.
func (r *modelReconciler) withBreaker(namespace string, run func() error) error {
	if err := r.breakers.allow(namespace, r.clock.Now()); err != nil {
		return err
	}
	err := run()
	r.breakers.done(namespace, err, r.clock.Now())
	return err
}

// statusWithoutClient returns the status in a namespace without a client. In an enabled namespace a valid model keeps its status until the
// runtimes controller creates the client.
func (r *modelReconciler) statusWithoutClient(ctx context.Context, model *resourceModel) (v1alpha1.PredictorStatus, error) {
	next := *model.status.DeepCopy()
	enabled, err := r.enabled(ctx, model.Namespace)
	switch {
	case err != nil:
		return next, err
	case model.specError != "":
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, model.specError, model.modelID())
	case enabled:
		return next, nil
	default:
		next = withFailure(clearInvalidSpec(next), v1alpha1.RuntimeUnhealthy, messageNamespaceDisabled, model.modelID())
	}
	next.Available = isAvailable(next) && enabled
	return next, nil
}

// deleteModel deletes the vmodel of a resource that does not exist or that another controller reconciles, if the model has a state.
// Without a client, the state is deleted if the namespace is disabled. Without a ready pod it is kept, and a restart creates it again for
// the key in etcd.
func (r *modelReconciler) deleteModel(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if _, known := r.states.get(key); !known {
		return 0, nil
	}
	id, name := splitKey(key)
	client, found := r.client(name.Namespace)
	if !found {
		enabled, err := r.enabled(ctx, name.Namespace)
		if err == nil && !enabled {
			r.states.delete(key)
		}
		return 0, err
	}
	state := r.states.getAndClearDirty(key)
	state.reset("removal")
	err := r.withBreaker(name.Namespace, func() error {
		_, err := client.DeleteVModel(ctx, &meshpb.DeleteVModelRequest{VModelId: name.Name, Owner: id})
		return err
	})
	code := status.Code(err)
	switch {
	case err == nil, code == codes.NotFound, code == codes.InvalidArgument: // the mesh does not have the model, or can have no such model
		r.states.store(key, state)
		r.states.deleteIfClean(key)
		return 0, nil
	case errors.Is(err, meshclient.ErrNoAddress):
		r.states.store(key, state)
		return 0, nil
	default:
		if state.attempts%10 == 0 { // the mesh may refuse it for ever
			log.FromContext(ctx).Info("Removing the model from ModelMesh failed; retrying", "reason", errorText(err))
		}
		now, limit := r.clock.Now(), maxRefusedBackoff
		if code == codes.Unavailable || code == codes.DeadlineExceeded {
			limit = maxBackoff
		}
		state.scheduleCall(now, limit)
		r.states.store(key, state)
		return state.nextCall.Sub(now), nil
	}
}
