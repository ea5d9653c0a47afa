package reconciler

import (
	"time"
)

// Wait ends a pass early without being a failure: something is not there yet. It counts as success in the metrics,
// keeps the conditions that were set so far, and skips the remaining phases. Return it as a pointer, bare or wrapped.
type Wait struct {
	// For completes the sentence "waiting for ...".
	For string
	// Retry is the time until the next pass; zero when an event is going to start it.
	Retry time.Duration
}

// Error implements error.
func (w *Wait) Error() string { return "waiting for " + w.For }

// asWait returns the wait that an error consists of. Joined errors are a wait only when each of them is, so that a
// failure beside a wait stays a failure; the shortest positive Retry counts.
func asWait(err error) (*Wait, bool) {
	switch e := any(err).(type) { // the tree is walked here, branch by branch
	case nil:
		return nil, false
	case *Wait:
		return e, e != nil
	case interface{ Unwrap() []error }:
		return shortest(e.Unwrap())
	case interface{ Unwrap() error }:
		return asWait(e.Unwrap())
	default:
		return nil, false
	}
}

func shortest(errs []error) (*Wait, bool) {
	var out *Wait
	for _, err := range errs {
		w, ok := asWait(err)
		if !ok {
			return nil, false
		}
		if out == nil || out.Retry <= 0 || (w.Retry > 0 && w.Retry < out.Retry) {
			out = w
		}
	}
	return out, out != nil
}
