package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// derivedConditions are the types of conditions that this package derives from errors and other conditions.
var derivedConditions = []string{conditions.Ready, conditions.Stalled, ConditionReconciled, conditions.Reconciling}

const (
	// ConditionReconciled is False while reconciles fail for a reason that no other condition reports, and absent otherwise.
	ConditionReconciled = "Reconciled"
	// conditionAvailable is the default ReadyCondition.
	conditionAvailable = "Available"

	reasonRequestInvalid    = "RequestInvalid"
	reasonReconcileError    = "ReconcileError"
	reasonRolloutInProgress = "RolloutInProgress"
	reasonPaused            = "Paused"
)

// retryableMessages are parts of the messages of responses 400 and 422 to requests that may succeed later: requests denied by admission
// webhooks or policies, which can change unnoticed, and JSON patches whose test operation failed because the object has changed.
var retryableMessages = []string{"denied the request", "denied request", "the server rejected our request due to an error in our request"}

// IsTerminal reports whether an error consists only of responses 400 and 422 of the API server without retryableMessages. Such a request
// fails until the spec or a watched object changes.
func IsTerminal(err error) bool {
	return apply.AllErrorsMatch(err, func(err error) bool {
		apiStatus, ok := any(err).(apierrors.APIStatus)
		if !ok {
			return false
		}
		status := apiStatus.Status()
		invalid := status.Code == http.StatusBadRequest || status.Code == http.StatusUnprocessableEntity
		return invalid && !slices.ContainsFunc(retryableMessages, func(part string) bool { return strings.Contains(status.Message, part) })
	})
}

// classify wraps an error that a retry cannot fix into a terminal error.
func classify(err error) error {
	if _, waiting := AsWait(err); !waiting && IsTerminal(err) && !errors.Is(err, reconcile.TerminalError(nil)) {
		return reconcile.TerminalError(err)
	}
	return err
}

// ClassifyErrors gives a reconciler that was not created by [New] the same error handling: errors for which IsTerminal returns true are not
// retried, and a Wait returned by AsWait is not an error.
func ClassifyErrors(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		ctx, changes := apply.RecordChanges(ctx)
		result, err := r.Reconcile(ctx, request)
		if wait, waiting := AsWait(err); waiting {
			log.FromContext(ctx).V(1).Info("Waiting", "for", wait.For)
			result, err = reconcile.Result{RequeueAfter: max(wait.Retry, 0)}, nil
		}
		return requeueSooner(result, changes.RequeueAfter, err), classify(err)
	})
}

// requeueSooner returns a result that requeues after the given time at the latest, unless that is 0 or an error causes a retry anyway.
func requeueSooner(result reconcile.Result, after time.Duration, err error) reconcile.Result {
	if err == nil {
		result.RequeueAfter = Sooner(result.RequeueAfter, after)
	}
	return result
}

// Sooner returns the shorter of two delays. A delay that is not positive means none.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b)
	}
	return min(a, b)
}

// reportError sets Stalled if IsTerminal(err), or Reconciled for another error that no condition reports, and removes them otherwise.
func (r *baseReconciler[T]) reportError(obj T, err error) {
	terminal := IsTerminal(err)
	unreported := err != nil && !terminal && !r.isReported(obj, err)
	if wait, waiting := AsWait(err); !waiting || !wait.Stalled { // summarize sets Stalled for such a wait
		r.setOrRemoveCondition(obj, terminal, metav1.Condition{
			Type: conditions.Stalled, Status: metav1.ConditionTrue, Reason: reasonRequestInvalid,
			Message: "the API server rejects an object that the spec requires, and the operator does not retry until something changes: " + fmt.Sprint(err),
		})
	}
	r.setOrRemoveCondition(obj, unreported, metav1.Condition{Type: ConditionReconciled, Status: metav1.ConditionFalse,
		Reason: reasonReconcileError, Message: fmt.Sprint(err)})
}

// summarize derives the kstatus conditions from the others. An object is not ready while its ready condition observed an older
// generation, nor in the reconcile that applied a change of its spec: the cache may still hold the previous child objects.
func (r *baseReconciler[T]) summarize(obj T, err error, rollingOut bool) {
	options := conditions.SummaryOptions{ReadyCondition: r.readyCondition(), InformationalConditions: r.logic.InformationalConditions}
	wait, waiting := AsWait(err)
	list := r.conditions.List(obj)
	ready := meta.FindStatusCondition(list, options.ReadyCondition)
	waitingFor := ""
	switch {
	case waiting && (wait.Unready || wait.Stalled):
		waitingFor, options.Stalled = wait.For, wait.Stalled
	case rollingOut, ready != nil && ready.ObservedGeneration != obj.GetGeneration():
		waitingFor = "the change of the spec to be processed"
	}
	if waitingFor != "" && ready != nil {
		options.Pending = &conditions.Pending{Reason: reasonRolloutInProgress, Message: ready.Message + "; waiting for " + waitingFor}
	}
	for _, c := range conditions.Summary(list, options) {
		r.setOrRemoveCondition(obj, c.Status != "", c)
	}
}

// ensureReadyCondition sets Ready to Unknown on an object that was paused before its first reconcile.
func (r *baseReconciler[T]) ensureReadyCondition(obj T) {
	list := r.conditions.List(obj)
	paused := meta.FindStatusCondition(list, ConditionPaused)
	if meta.FindStatusCondition(list, conditions.Ready) == nil {
		r.setOrRemoveCondition(obj, true, metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionUnknown, Reason: reasonPaused, Message: paused.Message})
	}
}

func (r *baseReconciler[T]) readyCondition() string {
	return cmp.Or(r.logic.ReadyCondition, conditionAvailable)
}

func (r *baseReconciler[T]) setOrRemoveCondition(obj T, set bool, c metav1.Condition) {
	if !set {
		r.conditions.Remove(obj, c.Type)
		return
	}
	c.ObservedGeneration = obj.GetGeneration()
	r.conditions.Set(obj, c)
}

// maxMessagePrefix is the length in bytes of the start of an error text that a condition must contain to report it. Longer messages may
// be clipped.
const maxMessagePrefix = 80

// isReported reports whether the conditions contain the text of each part of an error. Conflicts, waits, terminating namespaces, and
// terminating objects that have not timed out count as reported.
func (r *baseReconciler[T]) isReported(obj T, err error) bool {
	list := r.conditions.List(obj)
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
		prefix := err.Error()
		prefix = prefix[:min(len(prefix), maxMessagePrefix)]
		for _, c := range list {
			if !slices.Contains(derivedConditions, c.Type) && strings.Contains(c.Message, prefix) {
				return true
			}
		}
		return false
	})
}
