package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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

// ConflictRetry is the pause after the object changed under our hands. The change is an event of its own; this is for
// the case that it arrived before, or that something else than the API server said so.
const ConflictRetry = 250 * time.Millisecond

// lagRetry is the pause while the cache has not seen the last status that was written. A reconcile on the older object could
// only end in a conflict.
const lagRetry = 25 * time.Millisecond

// goneRetry is the pause after the API server did not know the object whose status was written. The event of its deletion is on its way,
// which may take long where the cache was filled by an API server that is behind the others.
const goneRetry = time.Second

var errGone = errors.New("the object is gone")

// changeRetry is the pause after a change of the spec was written to child objects.
const changeRetry = time.Second

// ConditionPaused is true while the pause annotation is set; it is absent otherwise.
const ConditionPaused = "Paused"

// Phase is one step of a reconcile: it reads, decides, calls the applier and sets conditions on the object.
type Phase[T StatusObject] struct {
	// Name says what the phase does, as in "applying objects"; it prefixes its errors and its log lines.
	Name string
	// Run ends the reconcile when it returns an error: a *Wait for "not yet", reconcile.TerminalError for "the user must
	// act", any other error for "broken", which is retried with back-off.
	Run func(context.Context, T) error
}

// Logic is the part that differs from kind to kind. Nil fields mean "nothing to do".
type Logic[T StatusObject] struct {
	// Phases run in order until one of them returns an error.
	Phases []Phase[T]
	// Summary derives the top-level conditions from the others. It runs in every reconcile, also after an error.
	Summary func(T)
	// ReadyCondition is the condition that says that the object does what it is for, from which Ready is derived; empty for Available. A component
	// that sets Ready itself names Ready here.
	ReadyCondition string
	// InformationalConditions are types, or reasons, of conditions that take nothing from Ready although they report something to attend to.
	InformationalConditions []string
	// IgnoresPause says that an object is reconciled although it is paused: what others may ask of it goes first. Nil means
	// never.
	IgnoresPause func(T) bool
	// Finalizer names the finalizer. It is added when Finalize is set, and removed on deletion in any case.
	Finalizer string
	// NeedsFinalizer says when the finalizer is added; nil means at once.
	NeedsFinalizer func(T) bool
	// Finalize undoes what garbage collection cannot. It may return a *Wait, and must bear being called again.
	Finalize func(context.Context, T) error
	// OnDeleted forgets what is remembered under the uid of an object that does not exist any more.
	OnDeleted func(types.UID)
	// AfterStatusUpdate is called for every status that was stored: the object as it was read and as it was written. What shall be reported
	// exactly once, such as a step from state to state, is reported here.
	AfterStatusUpdate func(before, after T)
}

// Options are what a shell needs from the program. Client and Component are required.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Recorder receives an event for each transition of a condition; none when nil.
	Recorder events.EventRecorder
	// Component is the label of the metrics.
	Component string
}

// New wraps logic into a controller-runtime reconciler.
func New[T Object](options Options, logic Logic[T]) reconcile.Reconciler {
	return NewWith(options, logic, standard[T]())
}

// NewWith is New for a kind whose conditions are not of the standard type.
func NewWith[T StatusObject](options Options, logic Logic[T], access Conditions[T]) reconcile.Reconciler {
	goType := reflect.TypeFor[T]().Elem()
	return &shell[T]{
		client:     options.Client,
		recorder:   options.Recorder,
		logic:      logic,
		conditions: access,
		ledger:     newLedger(options.Component, goType.Name(), clock.RealClock{}),
		goType:     goType,
	}
}

type shell[T StatusObject] struct {
	client     client.Client
	recorder   events.EventRecorder
	logic      Logic[T]
	conditions Conditions[T]
	ledger     *ledger
	goType     reflect.Type
	// doubts are the versions of objects whose status was written last without an answer that says whether it was stored.
	doubts   Memory[string]
	unstored RejectedStatuses
}

// Reconcile implements reconcile.Reconciler.
func (s *shell[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := reflect.New(s.goType).Interface().(T)
	if err := s.client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			s.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("getting %s: %w", s.goType.Name(), err)
	}
	if s.ledger.behind(obj) {
		return ctrl.Result{RequeueAfter: lagRetry}, nil
	}
	result, err := revisiting(ctx, func(ctx context.Context) (ctrl.Result, error) { return s.pass(ctx, obj) })
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctrl.Result{}, nil // the controller stops; what was interrupted is no error
	}
	return result, err
}

// pass decides what the state of the object calls for.
func (s *shell[T]) pass(ctx context.Context, obj T) (ctrl.Result, error) {
	if !obj.GetDeletionTimestamp().IsZero() {
		return s.finalize(ctx, obj)
	}
	// Known before the phases remember anything of it: it may go during its first reconcile.
	s.observe(obj)
	paused, understood := names.Paused(obj.GetAnnotations())
	if paused && (s.logic.IgnoresPause == nil || !s.logic.IgnoresPause(obj)) {
		before := clone(obj)
		s.conditions.Set(obj, metav1.Condition{
			Type: ConditionPaused, Status: metav1.ConditionTrue, Reason: "Annotation", ObservedGeneration: obj.GetGeneration(),
			Message: "the object is left alone until the annotation " + names.PausedAnnotation + " is removed",
		})
		s.leaveUnready(obj)
		return conclude(nil, s.patchStatus(ctx, before, obj))
	}
	if err := s.ensureFinalizer(ctx, obj); err != nil {
		return settle(err)
	}
	before := clone(obj)
	ctx, changes := apply.CountChanges(ctx)
	s.condition(obj, !understood, metav1.Condition{
		Type: ConditionPaused, Status: metav1.ConditionFalse, Reason: "AnnotationInvalid",
		Message: fmt.Sprintf("annotation %s: %q is neither true nor false, and the object is not paused; set true or remove it",
			names.PausedAnnotation, obj.GetAnnotations()[names.PausedAnnotation]),
	})
	err := s.run(ctx, obj)
	if ctx.Err() != nil {
		return ctrl.Result{}, err // half a reconcile says nothing about the object
	}
	err = classify(err)
	s.report(obj, err)
	obj.ObserveGeneration()
	if s.logic.Summary != nil {
		s.logic.Summary(obj)
	}
	changing := s.main() != conditions.Ready && changes.Any() && s.observed(before) != obj.GetGeneration()
	s.summarize(obj, err, changing)
	result, err := conclude(err, s.patchStatus(ctx, before, obj))
	if changing && err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > changeRetry) {
		result.RequeueAfter = changeRetry // an event of a child object comes earlier, where there is one
	}
	return result, err
}

func (s *shell[T]) run(ctx context.Context, obj T) error {
	for _, phase := range s.logic.Phases {
		logger := log.FromContext(ctx).WithValues("phase", phase.Name)
		logger.V(4).Info("Entering phase")
		if err := phase.Run(log.IntoContext(ctx, logger), obj); err != nil {
			return fmt.Errorf("%s: %w", phase.Name, err)
		}
	}
	return nil
}

// conclude maps how a reconcile ended. A status that could not be written is retried even after a terminal error, because
// that one would stay unknown otherwise.
func conclude(pass, patch error) (ctrl.Result, error) {
	wait, waiting := AsWait(pass)
	switch {
	case errors.Is(patch, errGone):
		return ctrl.Result{RequeueAfter: goneRetry}, nil
	case errors.Is(patch, errUnstored):
		result, err := conclude(pass, nil)
		if result.RequeueAfter > 0 {
			result.RequeueAfter = max(result.RequeueAfter, unstoredRetry)
		}
		return result, err
	case patch != nil && (pass == nil || waiting):
		return settle(patch)
	case patch != nil && errors.Is(pass, reconcile.TerminalError(nil)):
		return settle(fmt.Errorf("%w (which was to report: %s)", patch, pass.Error()))
	case patch != nil:
		return ctrl.Result{}, errors.Join(pass, patch)
	case waiting:
		return ctrl.Result{RequeueAfter: max(wait.Retry, 0)}, nil
	default:
		return ctrl.Result{}, pass
	}
}

// patchStatus writes at most once, not at all when the status is the same, and reports the transitions.
func (s *shell[T]) patchStatus(ctx context.Context, before, after T) error {
	for _, c := range slices.Clone(s.conditions.List(after)) {
		if plain := redact.Text(c.Message); plain != c.Message {
			c.Message = plain
			s.conditions.Set(after, c)
		}
	}
	patch, err := statusPatch(before, after)
	if err != nil {
		return err
	}
	if doubted, known := s.doubts.Get(before.GetUID()); known && patch == nil && doubted == before.GetResourceVersion() {
		// The cache may not show yet what was stored. A patch of nothing but the version ends in a conflict then, and else changes nothing.
		patch = fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, doubted)
	}
	if patch == nil {
		s.observe(after)
		return nil
	}
	if s.unstored.Covers(before, after) {
		s.observe(after)
		return errUnstored
	}
	// The answer is decoded into a copy: events and metrics are about what this reconcile found.
	answer := clone(after)
	err = s.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		s.doubts.Set(before.GetUID(), before.GetResourceVersion())
		return fmt.Errorf("patching status: %w", err)
	}
	s.doubts.Forget(before.GetUID())
	s.unstored.Note(ctx, s.client, after, answer)
	recordTransitions(s.recorder, after, s.main(), s.conditions.List(before), s.conditions.List(after))
	if s.logic.AfterStatusUpdate != nil {
		s.logic.AfterStatusUpdate(before, after)
	}
	s.observe(after)
	s.ledger.wrote(client.ObjectKeyFromObject(after), answer.GetResourceVersion())
	return nil
}

// observe notes an object, and forgets the one that had its name before.
func (s *shell[T]) observe(obj T) {
	gone, replaced := s.ledger.observe(client.ObjectKeyFromObject(obj), obj.GetUID(), s.conditions.List(obj))
	if replaced {
		s.drop(gone)
	}
}

// drop ends what is remembered of an object that is gone.
func (s *shell[T]) drop(uid types.UID) {
	s.doubts.Forget(uid)
	if s.logic.OnDeleted != nil {
		s.logic.OnDeleted(uid)
	}
}

func (s *shell[T]) ensureFinalizer(ctx context.Context, obj T) error {
	if s.logic.Finalize == nil || s.logic.Finalizer == "" || (s.logic.NeedsFinalizer != nil && !s.logic.NeedsFinalizer(obj)) {
		return nil
	}
	before := clone(obj)
	if !controllerutil.AddFinalizer(obj, s.logic.Finalizer) {
		return nil
	}
	return s.patchFinalizers(ctx, before, obj)
}

// finalize undoes and lets go. A paused object is finalized too: deleting it is the later and the explicit wish.
func (s *shell[T]) finalize(ctx context.Context, obj T) (ctrl.Result, error) {
	if s.logic.Finalizer == "" || !controllerutil.ContainsFinalizer(obj, s.logic.Finalizer) {
		s.forget(client.ObjectKeyFromObject(obj))
		return ctrl.Result{}, nil
	}
	if s.logic.Finalize != nil {
		before := clone(obj)
		if err := s.logic.Finalize(ctx, obj); err != nil {
			if ctx.Err() != nil {
				return ctrl.Result{}, err
			}
			err = classify(fmt.Errorf("finalizing: %w", err))
			s.report(obj, err)
			return conclude(err, s.patchStatus(ctx, before, obj))
		}
	}
	before := clone(obj)
	controllerutil.RemoveFinalizer(obj, s.logic.Finalizer)
	if err := s.patchFinalizers(ctx, before, obj); client.IgnoreNotFound(err) != nil {
		return settle(err)
	}
	s.forget(client.ObjectKeyFromObject(obj))
	return ctrl.Result{}, nil
}

func (s *shell[T]) patchFinalizers(ctx context.Context, before, after T) error {
	err := s.client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("patching finalizers: %w", err)
	}
	return nil
}

func (s *shell[T]) forget(name types.NamespacedName) {
	s.unstored.Forget(name)
	if uid, known := s.ledger.forget(name); known {
		s.drop(uid)
	}
}
