package reconciler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// generic conditions are those that are set here.
var generic = []string{conditions.Ready, conditions.Stalled, ConditionReconciled, conditions.Reconciling}

const (
	// ConditionReconciled is false while passes fail for a reason that no other condition tells, and absent otherwise.
	ConditionReconciled = "Reconciled"
	// conditionAvailable is the main condition of most kinds.
	conditionAvailable = "Available"

	reasonRefused = "RequestInvalid"
	reasonFailed  = "ReconcileError"
	reasonRollout = "RolloutInProgress"
	reasonPaused  = "Paused"
)

// passing are words of answers 400 and 422 that may be others at the next try: those of policies, which change without our seeing
// it, and of a JSON patch whose test an object that has changed meanwhile does not pass.
var passing = []string{"denied the request", "denied request", "the server rejected our request due to an error in our request"}

// IsTerminal reports whether an error consists of nothing but answers 400 and 422 of the API server: the same request would get the
// same answer until the spec, or something that is watched, changes.
func IsTerminal(err error) bool {
	return apply.AllErrorsMatch(err, func(err error) bool {
		answer, is := any(err).(apierrors.APIStatus)
		if !is {
			return false
		}
		status := answer.Status()
		invalid := status.Code == http.StatusBadRequest || status.Code == http.StatusUnprocessableEntity
		return invalid && !slices.ContainsFunc(passing, func(words string) bool { return strings.Contains(status.Message, words) })
	})
}

// classify turns what trying again cannot mend into an error that is not tried again.
func classify(err error) error {
	if _, waiting := AsWait(err); !waiting && IsTerminal(err) && !errors.Is(err, reconcile.TerminalError(nil)) {
		return reconcile.TerminalError(err)
	}
	return err
}

// ClassifyErrors gives a reconciler that is not made by [New] the same answers to errors: 400 and 422 of the API server are not
// tried again, and objects and namespaces whose end has to come first are no error.
func ClassifyErrors(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return revisiting(ctx, func(ctx context.Context) (reconcile.Result, error) {
			result, err := r.Reconcile(ctx, request)
			if wait, waiting := AsWait(err); waiting {
				log.FromContext(ctx).V(1).Info("Waiting", "for", wait.For)
				return reconcile.Result{RequeueAfter: max(wait.Retry, 0)}, nil
			}
			return result, classify(err)
		})
	})
}

// revisiting has a reconcile repeated by the time at which what is being deleted should be gone.
func revisiting(ctx context.Context, pass func(context.Context) (reconcile.Result, error)) (reconcile.Result, error) {
	ctx, left := apply.WithRequeue(ctx)
	result, err := pass(ctx)
	if after := left(); err == nil && after > 0 && (result.RequeueAfter == 0 || after < result.RequeueAfter) {
		result.RequeueAfter = after
	}
	return result, err
}

// report sees to it that no error leaves the status as it was.
func (s *shell[T]) report(obj T, err error) {
	stalled := IsTerminal(err)
	failed := err != nil && !stalled && !s.reported(obj, err)
	if wait, waiting := AsWait(err); !waiting || !wait.Stalled { // what that says, the summary knows
		s.condition(obj, stalled, metav1.Condition{
			Type: conditions.Stalled, Status: metav1.ConditionTrue, Reason: reasonRefused,
			Message: "the API server rejects an object that the spec requires, and the operator does not retry until something changes: " + text(err),
		})
	}
	s.condition(obj, failed, metav1.Condition{Type: ConditionReconciled, Status: metav1.ConditionFalse, Reason: reasonFailed, Message: text(err)})
}

// summarize derives from the other conditions those that tools read. After a change of the spec has been written to child objects,
// the object is ready at the earliest in the next reconcile: the cache may still show how the children were before. Nor is it while
// its main condition is about an older spec.
func (s *shell[T]) summarize(obj T, err error, changing bool) {
	f := conditions.Facts{Main: s.main(), Advice: s.logic.InformationalConditions}
	wait, waiting := AsWait(err)
	list := s.conditions.List(obj)
	main := meta.FindStatusCondition(list, f.Main)
	what := ""
	switch {
	case waiting && (wait.Unready || wait.Stalled):
		what, f.Stuck = wait.For, wait.Stalled
	case changing, main != nil && main.ObservedGeneration != obj.GetGeneration():
		what = "the change of the spec to be taken up"
	}
	if what != "" && main != nil {
		f.Pending = &conditions.Pending{Reason: reasonRollout, Message: main.Message + "; waiting for " + what}
	}
	for _, c := range conditions.Summary(list, f) {
		s.condition(obj, c.Status != "", c)
	}
}

// leaveUnready keeps an object from being taken for ready that was paused before its first reconcile.
func (s *shell[T]) leaveUnready(obj T) {
	list := s.conditions.List(obj)
	paused := meta.FindStatusCondition(list, ConditionPaused)
	if meta.FindStatusCondition(list, conditions.Ready) == nil {
		s.condition(obj, true, metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionUnknown, Reason: reasonPaused, Message: paused.Message})
	}
}

// observed is the generation that the main condition is about.
func (s *shell[T]) observed(obj T) int64 {
	if c := meta.FindStatusCondition(s.conditions.List(obj), s.main()); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

// main is the condition that says that an object does what it is for.
func (s *shell[T]) main() string { return cmp.Or(s.logic.ReadyCondition, conditionAvailable) }

func (s *shell[T]) condition(obj T, wanted bool, c metav1.Condition) {
	if !wanted {
		s.conditions.Remove(obj, c.Type)
		return
	}
	c.ObservedGeneration = obj.GetGeneration()
	s.conditions.Set(obj, c)
}

// toldBytes is how much of an error's text has to stand in a condition. Messages are clipped.
const toldBytes = 80

// reported checks whether a condition has the words of each part of an error. A conflict needs none: the next reconcile is on its way. Nor
// do waits, and what goes by itself within a moment or with its namespace.
func (s *shell[T]) reported(obj T, err error) bool {
	list := s.conditions.List(obj)
	return apply.AllErrorsMatch(err, func(err error) bool {
		switch e := any(err).(type) {
		case *Wait:
			return true
		case *apply.TerminatingError:
			if !e.TimedOut {
				return true
			}
		case apierrors.APIStatus:
			if apierrors.IsConflict(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return true
			}
		}
		words := err.Error()
		words = words[:min(len(words), toldBytes)]
		for _, c := range list {
			if !slices.Contains(generic, c.Type) && strings.Contains(c.Message, words) {
				return true
			}
		}
		return false
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
