package reconciler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// Wait ends a reconcile early because a dependency is not ready. It counts as success in the metrics, keeps the conditions that were set
// so far, and skips the remaining phases. Return it as a pointer; it may be wrapped.
type Wait struct {
	// For completes the sentence "waiting for ...".
	For string
	// Retry is the time until the next reconcile; zero if an event triggers it.
	Retry time.Duration
	// Unready keeps Ready False even if the ready condition is True: the serving pods do not match the spec yet.
	Unready bool
	// Stalled is true if only a user can end the wait.
	Stalled bool
}

// Error implements error.
func (w *Wait) Error() string { return "waiting for " + w.For }

// AsWait returns the Wait that an error is or wraps, or a Wait for terminating objects, foreign objects and terminating namespaces. Joined
// errors are a Wait only if each of them is one. The shortest positive Retry is returned, and Unready and Stalled if any wait has them.
func AsWait(err error) (*Wait, bool) {
	switch e := any(err).(type) { // errors.As would find a wait that is joined with failures
	case nil:
		return nil, false
	case *Wait:
		return e, e != nil
	case *apply.Error:
		if !apply.IsTerminating(e) { // for a deleted CRD, IsTerminating needs the *apply.Error
			return AsWait(e.Err)
		}
	case interface{ Unwrap() []error }:
		return mergeWaits(e.Unwrap())
	case interface{ Unwrap() error }:
		return AsWait(e.Unwrap())
	}
	switch {
	case apply.IsTerminating(err):
		return &Wait{For: "deletions to finish: " + err.Error(), Retry: RequeueSoon}, true
	case apply.IsBlocked(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &Wait{For: "a conflict to be resolved: " + err.Error(), Retry: RequeueBlocked}, true
	}
	return nil, false
}

func mergeWaits(errs []error) (*Wait, bool) {
	var shortest *Wait
	var unready, stalled bool
	for _, err := range errs {
		w, ok := AsWait(err)
		if !ok {
			return nil, false
		}
		unready, stalled = unready || w.Unready, stalled || w.Stalled
		if shortest == nil || shortest.Retry <= 0 || (w.Retry > 0 && w.Retry < shortest.Retry) {
			shortest = w
		}
	}
	if shortest == nil {
		return nil, false
	}
	return &Wait{For: shortest.For, Retry: shortest.Retry, Unready: unready, Stalled: stalled}, true
}
