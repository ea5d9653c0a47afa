package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

var errNotFound = errors.New("the object does not exist")

// ConditionPaused is True while the pause annotation takes effect, False while its value is invalid, and absent otherwise.
const ConditionPaused = "Paused"

// Phase is one step of a reconcile: it reads objects, applies child objects and sets conditions.
type Phase[T StatusObject] struct {
	// Name describes the phase, as in "applying objects"; it prefixes errors and is a field of log lines.
	Name string
	// Run ends the phases when it returns an error: a *Wait while a dependency is not ready or, with Stalled, while a user must act. Errors
	// that AsWait does not convert to a Wait are retried with back-off unless IsTerminal.
	Run func(context.Context, T) error
}

// Logic is the part of a reconciler that differs between kinds. Nil fields are skipped.
type Logic[T StatusObject] struct {
	// Phases run in order until one of them returns an error.
	Phases []Phase[T]
	// Summary derives the top-level conditions from the others. It runs after the phases, even if one of them failed.
	Summary func(T)
	// ReadyCondition is the type of the condition from which Ready is derived; empty means Available. A component that sets Ready itself
	// uses Ready here.
	ReadyCondition string
	// InformationalConditions are types, or reasons, of conditions that may report a problem without making the object unready.
	InformationalConditions []string
	// IgnoresPause reports whether a paused object is still reconciled, such as for its security policies. Nil means never.
	IgnoresPause func(T) bool
	// OnPaused is called in each reconcile of a paused object. It deletes reports outside of the status, such as metrics.
	OnPaused func()
	// Finalizer is added if Finalize is set, and removed from terminating objects even without Finalize.
	Finalizer string
	// NeedsFinalizer reports whether the finalizer is added now; nil means always.
	NeedsFinalizer func(T) bool
	// Finalize deletes what garbage collection does not. It may return a *Wait, and must be idempotent.
	Finalize func(context.Context, T) error
	// OnDeleted deletes the state stored for the uid of a deleted object.
	OnDeleted func(types.UID)
	// MayWait reports whether an update of the status may wait for SettleTime, because others probably follow and only the last one matters.
	// It is not called after an error, nor for a Wait that is Stalled. Nil means never.
	MayWait func(original, updated T) bool
	// AfterStatusUpdate is called with the original and the updated object after each successful status update. It reports what must be
	// reported exactly once, such as a state transition.
	AfterStatusUpdate func(original, updated T)
}

// Options are the dependencies of a reconciler. Client and Component are required.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Recorder receives the events of recordTransitions; none when nil.
	Recorder events.EventRecorder
	// Component is the value of the label component of the metrics.
	Component string
	// SettleTime is the minimum time between two updates of a status if Logic.MayWait allows the second to wait; 0 for none.
	SettleTime time.Duration
}

// New wraps logic into a controller-runtime reconciler.
func New[T Object](options Options, logic Logic[T]) reconcile.Reconciler {
	return NewWith(options, logic, standardConditions[T]())
}

// NewWith is New for a kind whose conditions are not of the standard type.
func NewWith[T StatusObject](options Options, logic Logic[T], access Conditions[T]) reconcile.Reconciler {
	goType := reflect.TypeFor[T]().Elem()
	return &baseReconciler[T]{
		client:     options.Client,
		recorder:   options.Recorder,
		logic:      logic,
		conditions: access,
		tracker:    newObjectTracker(options.Component, goType.Name()),
		writes:     NewStatusWrites(clock.RealClock{}, options.SettleTime),
		goType:     goType,
	}
}

type baseReconciler[T StatusObject] struct {
	client     client.Client
	recorder   events.EventRecorder
	logic      Logic[T]
	conditions Conditions[T]
	tracker    *objectTracker
	goType     reflect.Type
	// unconfirmed holds the resourceVersion of each object whose last status patch failed, although the API server may have stored it.
	unconfirmed UIDMap[string]
	writes      *StatusWrites
}

// Reconcile implements reconcile.Reconciler.
func (r *baseReconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := reflect.New(r.goType).Interface().(T)
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("getting %s: %w", r.goType.Name(), err)
	}
	if r.writes.IsStale(obj) {
		return ctrl.Result{RequeueAfter: StaleCacheRetry}, nil
	}
	ctx, changes := apply.RecordChanges(ctx)
	result, err := r.reconcileObject(ctx, obj, changes)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctrl.Result{}, nil // the manager is stopping: an interrupted reconcile is not an error
	}
	return requeueSooner(result, changes.RequeueAfter, err), err
}

// reconcileObject runs one reconcile of an object that exists.
func (r *baseReconciler[T]) reconcileObject(ctx context.Context, obj T, changes *apply.Changes) (ctrl.Result, error) {
	if !obj.GetDeletionTimestamp().IsZero() {
		return r.reconcileDelete(ctx, obj)
	}
	// Track the object first: the phases may store state for it, and it can be deleted while they run.
	r.track(obj)
	paused, valid := names.Paused(obj.GetAnnotations())
	if paused && (r.logic.IgnoresPause == nil || !r.logic.IgnoresPause(obj)) {
		if r.logic.OnPaused != nil {
			r.logic.OnPaused()
		}
		original := clone(obj)
		r.conditions.Set(obj, metav1.Condition{
			Type: ConditionPaused, Status: metav1.ConditionTrue, Reason: "Annotation", ObservedGeneration: obj.GetGeneration(),
			Message: "the operator does not change the object or its child objects until the annotation " + names.PausedAnnotation + " is removed or false",
		})
		r.ensureReadyCondition(obj)
		return toResult(nil, r.patchStatus(ctx, original, obj))
	}
	if err := r.ensureFinalizer(ctx, obj); err != nil {
		return requeueOnConflict(err)
	}
	original := clone(obj)
	r.setOrRemoveCondition(obj, !valid, metav1.Condition{
		Type: ConditionPaused, Status: metav1.ConditionFalse, Reason: "AnnotationInvalid",
		Message: fmt.Sprintf("annotation %s: %q is neither true nor false, and the object is not paused; set true or remove it",
			names.PausedAnnotation, obj.GetAnnotations()[names.PausedAnnotation]),
	})
	err := r.runPhases(ctx, obj)
	if ctx.Err() != nil {
		return ctrl.Result{}, cmp.Or(err, ctx.Err()) // conditions of a partial reconcile would be wrong
	}
	err = classify(err)
	r.reportError(obj, err)
	obj.ObserveGeneration()
	if r.logic.Summary != nil {
		r.logic.Summary(obj)
	}
	ready := ptr.Deref(meta.FindStatusCondition(r.conditions.List(original), r.readyCondition()), metav1.Condition{})
	rollingOut := r.readyCondition() != conditions.Ready && changes.Any() && ready.ObservedGeneration != obj.GetGeneration()
	r.summarize(obj, err, rollingOut)
	if delay := r.deferStatus(original, obj, err); delay > 0 {
		r.track(obj)
		result, _ := toResult(err, nil)
		return requeueSooner(result, delay, nil), nil
	}
	result, err := toResult(err, r.patchStatus(ctx, original, obj))
	if rollingOut {
		result = requeueSooner(result, RequeueSoon, err) // normally an event of the child arrives first
	}
	return result, err
}

func (r *baseReconciler[T]) runPhases(ctx context.Context, obj T) error {
	for _, phase := range r.logic.Phases {
		logger := log.FromContext(ctx).WithValues("phase", phase.Name)
		logger.V(4).Info("Entering phase")
		if err := phase.Run(log.IntoContext(ctx, logger), obj); err != nil {
			return fmt.Errorf("%s: %w", phase.Name, err)
		}
	}
	return nil
}

// deferStatus returns how long the update of the status must wait after the phases returned err; 0 if it cannot wait, or nothing changed.
func (r *baseReconciler[T]) deferStatus(original, obj T, err error) time.Duration {
	wait, isWait := AsWait(err)
	if err != nil && (!isWait || wait.Stalled) || r.logic.MayWait == nil || equality.Semantic.DeepEqual(original, obj) || !r.logic.MayWait(original, obj) {
		return 0
	}
	return r.writes.Defer(obj)
}

// toResult maps the errors of the phases and of the status patch to a result. A failed status patch is retried even after a terminal
// error, which would stay unreported otherwise.
func toResult(err, patchErr error) (ctrl.Result, error) {
	wait, waiting := AsWait(err)
	switch {
	case errors.Is(patchErr, errNotFound): // the cache still shows the deleted object
		return ctrl.Result{RequeueAfter: RequeueSoon}, nil
	case errors.Is(patchErr, errStatusNotStored):
		result, err := toResult(err, nil)
		if result.RequeueAfter > 0 {
			result.RequeueAfter = max(result.RequeueAfter, RequeueBlocked)
		}
		return result, err
	case patchErr != nil && (err == nil || waiting):
		return requeueOnConflict(patchErr)
	case patchErr != nil && errors.Is(err, reconcile.TerminalError(nil)):
		return requeueOnConflict(fmt.Errorf("%w (which was to report: %s)", patchErr, err.Error()))
	case patchErr != nil:
		return ctrl.Result{}, errors.Join(err, patchErr)
	case waiting:
		return ctrl.Result{RequeueAfter: max(wait.Retry, 0)}, nil
	default:
		return ctrl.Result{}, err
	}
}

// patchStatus patches the status if it changed, and records the transitions of conditions.
func (r *baseReconciler[T]) patchStatus(ctx context.Context, original, obj T) error {
	for _, c := range slices.Clone(r.conditions.List(obj)) {
		if redacted := redact.Text(c.Message); redacted != c.Message {
			c.Message = redacted
			r.conditions.Set(obj, c)
		}
	}
	patch := statusPatch(original, obj)
	if version, found := r.unconfirmed.Get(original.GetUID()); found && patch == nil && version == original.GetResourceVersion() {
		// The last patch may have been stored without the cache showing it yet. A patch of the resourceVersion alone conflicts then,
		// and changes nothing otherwise.
		patch = fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, version)
	}
	if patch == nil {
		r.track(obj)
		return nil
	}
	if r.writes.Covers(original, obj) {
		r.track(obj)
		return errStatusNotStored
	}
	// The response is decoded into a copy: events and metrics describe the findings of this reconcile.
	response := clone(obj)
	err := r.client.Status().Patch(ctx, response, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return errNotFound
	}
	if err != nil {
		r.unconfirmed.Set(original.GetUID(), original.GetResourceVersion())
		return fmt.Errorf("patching status: %w", err)
	}
	r.unconfirmed.Delete(original.GetUID())
	r.writes.Record(ctx, r.client, obj, response)
	recordTransitions(r.recorder, obj, r.readyCondition(), r.conditions.List(original), r.conditions.List(obj))
	if r.logic.AfterStatusUpdate != nil {
		r.logic.AfterStatusUpdate(original, obj)
	}
	r.track(obj)
	return nil
}

// track records the object, and deletes the state of a deleted object of the same name.
func (r *baseReconciler[T]) track(obj T) {
	previousUID, replaced := r.tracker.track(client.ObjectKeyFromObject(obj), obj.GetUID(), r.conditions.List(obj))
	if replaced {
		r.deleteState(previousUID)
	}
}

// deleteState deletes the state stored for a deleted object.
func (r *baseReconciler[T]) deleteState(uid types.UID) {
	r.unconfirmed.Delete(uid)
	if r.logic.OnDeleted != nil {
		r.logic.OnDeleted(uid)
	}
}

func (r *baseReconciler[T]) ensureFinalizer(ctx context.Context, obj T) error {
	if r.logic.Finalize == nil || r.logic.Finalizer == "" || (r.logic.NeedsFinalizer != nil && !r.logic.NeedsFinalizer(obj)) {
		return nil
	}
	original := clone(obj)
	if !controllerutil.AddFinalizer(obj, r.logic.Finalizer) {
		return nil
	}
	return r.patchFinalizers(ctx, original, obj)
}

// reconcileDelete finalizes a terminating object and removes its finalizer, even if the object is paused.
func (r *baseReconciler[T]) reconcileDelete(ctx context.Context, obj T) (ctrl.Result, error) {
	if r.logic.Finalizer == "" || !controllerutil.ContainsFinalizer(obj, r.logic.Finalizer) {
		r.forget(client.ObjectKeyFromObject(obj))
		return ctrl.Result{}, nil
	}
	if r.logic.Finalize != nil {
		r.track(obj) // Finalize may store state
		original := clone(obj)
		if err := r.logic.Finalize(ctx, obj); err != nil {
			if ctx.Err() != nil {
				return ctrl.Result{}, err
			}
			err = classify(fmt.Errorf("finalizing: %w", err))
			r.reportError(obj, err)
			return toResult(err, r.patchStatus(ctx, original, obj))
		}
	}
	original := clone(obj)
	controllerutil.RemoveFinalizer(obj, r.logic.Finalizer)
	if err := r.patchFinalizers(ctx, original, obj); client.IgnoreNotFound(err) != nil {
		return requeueOnConflict(err)
	}
	r.forget(client.ObjectKeyFromObject(obj))
	return ctrl.Result{}, nil
}

func (r *baseReconciler[T]) patchFinalizers(ctx context.Context, original, obj T) error {
	err := r.client.Patch(ctx, obj, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("patching finalizers: %w", err)
	}
	return nil
}

func (r *baseReconciler[T]) forget(name types.NamespacedName) {
	r.writes.Forget(name)
	if uid, found := r.tracker.remove(name); found {
		r.deleteState(uid)
	}
}
