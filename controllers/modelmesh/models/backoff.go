package models

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

const (
	// pauseMin and pauseMax bound the pauses between calls that no event caused.
	pauseMin, pauseMax = time.Second, time.Minute
	// pollMax bounds those about a model that an instance loads: the mesh writes into etcd that a load begins and that it failed,
	// but not that it has ended.
	pollMax = 3 * time.Second
	// waitMax bounds those about a model that waits for a pod, after patientAfter questions. A pod that comes makes them short again.
	waitMax, patientAfter = 15 * time.Second, 10
	// patienceWithRuntimes is how long a runtime that the mesh does not know may take to become known: the kubelet brings its
	// labels to the pods after minutes.
	patienceWithRuntimes = 5 * time.Minute
	// jitter spreads questions that many models ask for the same cause.
	jitter = 0.3
	// pauseBusy is the first pause while as many calls to the mesh of a namespace are under way as may be.
	pauseBusy = 25 * time.Millisecond
	// maxFailures is how many questions in a row may get no answer before the status reports it.
	maxFailures = 3
)

// pause is the time before the next of several attempts, the first being 1.
func pause(attempt int, least, most time.Duration) time.Duration {
	d := least
	for ; attempt > 1 && d < most; attempt-- {
		d *= 2
	}
	return wait.Jitter(min(d, most), jitter)
}

// askAgain plans the next question, after a pause of at most so long.
func (e *entry) askAgain(now time.Time, most time.Duration) {
	e.attempts++
	e.again = now.Add(pause(e.attempts, pauseMin, most))
}

// longest is the longest pause before the next question about a model on its way.
func (e *entry) longest(s v1alpha1.PredictorStatus) time.Duration {
	if waits(s) && e.attempts >= patientAfter {
		return waitMax
	}
	return pollMax
}

// rest says that the mesh is not called until an event comes.
func (e *entry) rest() { e.again, e.attempts = time.Time{}, 0 }

// due tells whether the mesh has to be called.
func (e *entry) due(asked string, now time.Time) bool {
	return e.stale || e.asked != asked || e.outcome == unasked && e.again.IsZero() ||
		!e.again.IsZero() && !now.Before(e.again)
}

// begin drops what was learnt about something else.
func (e *entry) begin(asked string) {
	if e.asked == asked {
		return
	}
	next := entry{asked: asked, order: max(e.order, orderStart)}
	if e.asked != "" {
		next.order = orderNew
	}
	*e = next
}

// failed notes a question that got no answer.
func (e *entry) failed(err error) {
	e.failures++
	e.trouble = err.Error()
}

// awaits tells whether a runtime that is there but not known may still become known, and notes since when it is awaited.
func (e *entry) awaits(now time.Time) bool {
	if e.awaited.IsZero() {
		e.awaited = now
	}
	return now.Sub(e.awaited) < patienceWithRuntimes
}

const (
	// probe is how long the models of a namespace wait for what the one among them learns that tries a mesh which did not answer: a
	// call may take ten seconds, and the workers are for all namespaces.
	probe = 10 * time.Second
	// maxCalls is how many calls to the mesh of one namespace may be under way: one that is slow must not hold all workers.
	maxCalls = 4
)

var (
	errSilent = errors.New("it did not answer a moment ago")
	errBusy   = errors.New("other calls to it are under way")
)

// breakers keep a mesh that does not answer, or slowly, from holding up the models of other namespaces. The zero value is ready.
type breakers struct {
	mu     sync.Mutex
	spaces map[string]*breaker
}

// breaker is that of one namespace. It exists while calls are under way or the last one failed.
type breaker struct {
	calls int
	// next is when the next call is allowed; zero while the mesh answers.
	next time.Time
	// last is what the last call failed with.
	last error
}

// allow begins a call, which done has to end; errSilent and errBusy refuse it. After a failure one caller at a time may.
func (b *breakers) allow(namespace string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[namespace]
	if s == nil {
		s = &breaker{}
		if b.spaces == nil {
			b.spaces = map[string]*breaker{}
		}
		b.spaces[namespace] = s
	}
	switch {
	case s.calls >= maxCalls:
		return errBusy
	case s.next.IsZero():
	case now.Before(s.next):
		return fmt.Errorf("%w: %w", errSilent, s.last)
	default:
		s.next = now.Add(probe)
	}
	s.calls++
	return nil
}

// done takes the result of a call. An answer is one, even if it is an error, unless it says that no server answered.
func (b *breakers) done(namespace string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[namespace]
	s.calls--
	if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		s.next, s.last = now.Add(pauseMin), err
		return
	}
	s.next, s.last = time.Time{}, nil
	if s.calls == 0 {
		delete(b.spaces, namespace)
	}
}

// reset allows all calls to a mesh that is not the one that it was.
func (b *breakers) reset(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.spaces[namespace]; s != nil {
		s.next, s.last = time.Time{}, nil
		if s.calls == 0 {
			delete(b.spaces, namespace)
		}
	}
}
