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
	// minBackoff and maxBackoff limit the delay between calls without an event.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxPollInterval is the maximum delay while an instance loads a model: the mesh writes the start and the failure of a load to etcd, but
	// not its success.
	maxPollInterval = 3 * time.Second
	// maxWaitInterval is the maximum delay while a model waits for a pod, after fastPolls calls. A new pod resets the backoff.
	maxWaitInterval = 15 * time.Second
	fastPolls       = 10
	// runtimeGracePeriod is the time until the mesh must know a runtime: the kubelet updates the labels in the pods within minutes.
	runtimeGracePeriod = 5 * time.Minute
	// jitter spreads the calls of many models after one event.
	jitter = 0.3
	// busyBackoff is the first delay when the mesh of a namespace has maxConcurrentCalls calls in flight.
	busyBackoff = 25 * time.Millisecond
	// maxFailures is the number of failed calls in a row after which the status reports the failure.
	maxFailures = 3
)

// backoff returns the delay before an attempt, counted from 1.
func backoff(attempt int, minimum, maximum time.Duration) time.Duration {
	delay := minimum
	for ; attempt > 1 && delay < maximum; attempt-- {
		delay *= 2
	}
	return wait.Jitter(min(delay, maximum), jitter)
}

// scheduleCall schedules the next call with exponential backoff.
func (e *modelState) scheduleCall(now time.Time, maximum time.Duration) {
	e.attempts++
	e.nextCall = now.Add(backoff(e.attempts, minBackoff, maximum))
}

// maxInterval returns the maximum delay before the next call about a model in progress.
func (e *modelState) maxInterval(s v1alpha1.PredictorStatus) time.Duration {
	if waitsForPod(s) && e.attempts >= fastPolls {
		return maxWaitInterval
	}
	return maxPollInterval
}

// cancelCall cancels the scheduled call: the next event triggers the next call.
func (e *modelState) cancelCall() { e.nextCall, e.attempts = time.Time{}, 0 }

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
	// probeTimeout is the time for one call to a mesh that failed, during which its namespace has no other calls. A call may last ten seconds,
	// and all namespaces share the workers.
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
	breaker := b.byNamespace[namespace]
	if breaker == nil {
		breaker = &circuitBreaker{}
		if b.byNamespace == nil {
			b.byNamespace = map[string]*circuitBreaker{}
		}
		b.byNamespace[namespace] = breaker
	}
	switch {
	case breaker.inFlight >= maxConcurrentCalls:
		return errTooManyCalls
	case breaker.nextProbe.IsZero():
	case now.Before(breaker.nextProbe):
		return fmt.Errorf("%w: %w", errCircuitOpen, breaker.lastErr)
	default:
		breaker.nextProbe = now.Add(probeTimeout)
	}
	breaker.inFlight++
	return nil
}

// done ends a call. Unavailable and DeadlineExceeded open the circuit; any other error is a response of the mesh and closes it.
func (b *circuitBreakers) done(namespace string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	breaker := b.byNamespace[namespace]
	breaker.inFlight--
	if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		breaker.nextProbe, breaker.lastErr = now.Add(minBackoff), err
		return
	}
	b.closeCircuit(namespace)
}

// reset closes the circuit of a namespace, whose pods changed.
func (b *circuitBreakers) reset(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeCircuit(namespace)
}

// closeCircuit allows calls to a namespace again. mu is held.
func (b *circuitBreakers) closeCircuit(namespace string) {
	if breaker := b.byNamespace[namespace]; breaker != nil && breaker.inFlight > 0 {
		breaker.nextProbe, breaker.lastErr = time.Time{}, nil
	} else {
		delete(b.byNamespace, namespace)
	}
}
