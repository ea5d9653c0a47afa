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
	// minBackoff and maxBackoff bound the pauses between calls without an event.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxPollInterval is the longest pause while an instance loads a model: the mesh writes the begin and the failure of a load to etcd,
	// but not its success.
	maxPollInterval = 3 * time.Second
	// maxWaitInterval is the longest pause while a model waits for a pod, after fastPolls calls. A new pod resets the backoff.
	maxWaitInterval = 15 * time.Second
	fastPolls       = 10
	// runtimeGracePeriod is the time until the mesh must know a runtime: the kubelet updates the labels in the pods within minutes.
	runtimeGracePeriod = 5 * time.Minute
	// jitter spreads the calls of many models after one event.
	jitter = 0.3
	// busyBackoff is the first pause when the mesh of a namespace has maxConcurrentCalls calls in flight.
	busyBackoff = 25 * time.Millisecond
	// maxFailures is the number of failed calls in a row after which the status reports the failure.
	maxFailures = 3
)

// backoff returns the pause before an attempt, counted from 1.
func backoff(attempt int, minimum, maximum time.Duration) time.Duration {
	d := minimum
	for ; attempt > 1 && d < maximum; attempt-- {
		d *= 2
	}
	return wait.Jitter(min(d, maximum), jitter)
}

// scheduleCall schedules the next call with exponential backoff.
func (e *modelState) scheduleCall(now time.Time, maximum time.Duration) {
	e.attempts++
	e.nextCall = now.Add(backoff(e.attempts, minBackoff, maximum))
}

// maxInterval returns the longest pause before the next call about a model in progress.
func (e *modelState) maxInterval(s v1alpha1.PredictorStatus) time.Duration {
	if waitsForPod(s) && e.attempts >= fastPolls {
		return maxWaitInterval
	}
	return maxPollInterval
}

// idle cancels the scheduled call: the next event triggers the next call.
func (e *modelState) idle() { e.nextCall, e.attempts = time.Time{}, 0 }

// needsCall reports whether the mesh has to be called for the request.
func (e *modelState) needsCall(requestKey string, now time.Time) bool {
	return e.dirty || e.requestKey != requestKey || e.result == notCalled && e.nextCall.IsZero() ||
		!e.nextCall.IsZero() && !now.Before(e.nextCall)
}

// reset clears the state if it belongs to another request.
func (e *modelState) reset(requestKey string) {
	if e.requestKey == requestKey {
		return
	}
	next := modelState{requestKey: requestKey, loadReason: max(e.loadReason, loadReasonRestart)}
	if e.requestKey != "" {
		next.loadReason = loadReasonSpecChanged
	}
	*e = next
}

// waitsForRuntime reports whether the mesh may still learn of an existing runtime. The first call sets waitingSince.
func (e *modelState) waitsForRuntime(now time.Time) bool {
	if e.waitingSince.IsZero() {
		e.waitingSince = now
	}
	return now.Sub(e.waitingSince) < runtimeGracePeriod
}

const (
	// probeTimeout is how long one call probes a mesh that failed, while the other models of its namespace are not called. A call may
	// last ten seconds, and all namespaces share the workers.
	probeTimeout = 10 * time.Second
	// maxConcurrentCalls limits the calls in flight per namespace: a slow mesh must not occupy all workers.
	maxConcurrentCalls = 4
)

var (
	errCircuitOpen  = errors.New("the last call failed a moment ago")
	errTooManyCalls = errors.New("other calls are in progress")
)

// circuitBreakers isolate namespaces: a mesh that fails or is slow does not delay models of other namespaces. The zero value is ready.
type circuitBreakers struct {
	mu          sync.Mutex
	byNamespace map[string]*circuitBreaker
}

// circuitBreaker belongs to one namespace. It exists while calls are in flight or the last call failed.
type circuitBreaker struct {
	inFlight int
	// nextProbe is the time of the next call after a failure; zero for a closed circuit.
	nextProbe time.Time
	lastErr   error
}

// allow starts a call, which done must end, or returns errCircuitOpen or errTooManyCalls. After a failure it allows one call at a time.
func (b *circuitBreakers) allow(namespace string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.byNamespace[namespace]
	if s == nil {
		s = &circuitBreaker{}
		if b.byNamespace == nil {
			b.byNamespace = map[string]*circuitBreaker{}
		}
		b.byNamespace[namespace] = s
	}
	switch {
	case s.inFlight >= maxConcurrentCalls:
		return errTooManyCalls
	case s.nextProbe.IsZero():
	case now.Before(s.nextProbe):
		return fmt.Errorf("%w: %w", errCircuitOpen, s.lastErr)
	default:
		s.nextProbe = now.Add(probeTimeout)
	}
	s.inFlight++
	return nil
}

// done ends a call. Unavailable and DeadlineExceeded open the circuit; any other error is an answer of the mesh and closes it.
func (b *circuitBreakers) done(namespace string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.byNamespace[namespace]
	s.inFlight--
	if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		s.nextProbe, s.lastErr = now.Add(minBackoff), err
		return
	}
	s.nextProbe, s.lastErr = time.Time{}, nil
	if s.inFlight == 0 {
		delete(b.byNamespace, namespace)
	}
}

// reset closes the circuit of a namespace, whose pods changed.
func (b *circuitBreakers) reset(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.byNamespace[namespace]; s != nil {
		s.nextProbe, s.lastErr = time.Time{}, nil
		if s.inFlight == 0 {
			delete(b.byNamespace, namespace)
		}
	}
}
