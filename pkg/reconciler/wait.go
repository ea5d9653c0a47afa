package reconciler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// Wait ends a reconcile early without being a failure: something is not there yet. It counts as success in the metrics,
// keeps the conditions that were set so far, and skips the remaining phases. Return it as a pointer, bare or wrapped.
type Wait struct {
	// For completes the sentence "waiting for ...".
	For string
	// Retry is the time until the next reconcile; zero when an event is going to start it.
	Retry time.Duration
	// Unready keeps the object from being Ready although its main condition may be True: what serves is not yet what the spec asks for.
	Unready bool
	// Stalled says that only a user can end the wait.
	Stalled bool
}

// Error implements error.
func (w *Wait) Error() string { return "waiting for " + w.For }

// blockedRetry is the pause while an object stands in the way that is not ours or does not go, or while a namespace ends: what tells
// their end may be no event for the one who waits. goingRetry is the pause while one is just going.
const blockedRetry, goingRetry = time.Minute, time.Second

// AsWait returns the wait that an error consists of; objects and namespaces whose end has to come first are waited for as well.
// Joined errors are a wait only when each of them is, so that a failure beside a wait stays a failure; the shortest positive
// Retry counts, and what any of them says about readiness.
func AsWait(err error) (*Wait, bool) {
	switch e := any(err).(type) { // the tree is walked here, branch by branch
	case nil:
		return nil, false
	case *Wait:
		return e, e != nil
	case *apply.Error:
		if !apply.IsTerminating(e) { // which knows an API that goes by the object in the error
			return AsWait(e.Err)
		}
	case interface{ Unwrap() []error }:
		return shortest(e.Unwrap())
	case interface{ Unwrap() error }:
		return AsWait(e.Unwrap())
	}
	switch {
	case apply.IsTerminating(err):
		return &Wait{For: "what is being deleted to be gone: " + err.Error(), Retry: goingRetry}, true
	case apply.IsBlocked(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &Wait{For: "what is in the way to be removed: " + err.Error(), Retry: blockedRetry}, true
	}
	return nil, false
}

func shortest(errs []error) (*Wait, bool) {
	var out *Wait
	var unready, stalled bool
	for _, err := range errs {
		w, ok := AsWait(err)
		if !ok {
			return nil, false
		}
		unready, stalled = unready || w.Unready, stalled || w.Stalled
		if out == nil || out.Retry <= 0 || (w.Retry > 0 && w.Retry < out.Retry) {
			out = w
		}
	}
	if out == nil {
		return nil, false
	}
	return &Wait{For: out.For, Retry: out.Retry, Unready: unready, Stalled: stalled}, true
}
