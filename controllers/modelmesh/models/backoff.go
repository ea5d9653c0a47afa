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
	// minBackoff and maxBackoff limit the delay before the next call if no event triggers one.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxRefusedBackoff is the maximum delay while the mesh refuses to delete a model.
	maxRefusedBackoff = 10 * time.Minute
	// maxPollInterval is the maximum delay while an instance loads a model: the mesh writes the start and the failure of a load to etcd, but
	// not the success.
	maxPollInterval = 3 * time.Second
	// maxWaitInterval is the maximum delay while a model waits for a pod, after fastPolls calls. A new pod resets the backoff.
	maxWaitInterval = 15 * time.Second
	fastPolls       = 10
	// runtimeGracePeriod is the time until the mesh must know a runtime: the kubelet updates the mounted type constraints within minutes.
	runtimeGracePeriod = 5 * time.Minute
	// jitter spreads the calls of many models after one event.
	jitter = 0.3
	// maxFailures is the number of failed or refused calls in a row after which the status reports the failure.
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
func (s *modelState) scheduleCall(now time.Time, maximum time.Duration) {
	s.attempts++
	s.nextCall = now.Add(backoff(s.attempts, minBackoff, maximum))
}

// maxInterval returns the maximum delay before the next call about a model in progress.
func (s *modelState) maxInterval(next v1alpha1.PredictorStatus) time.Duration {
	if isRuntimeUnhealthy(next) && s.attempts >= fastPolls {
		return maxWaitInterval
	}
	return maxPollInterval
}

// cancelCall cancels the scheduled call: the next event triggers the next call.
func (s *modelState) cancelCall() { s.nextCall, s.attempts = time.Time{}, 0 }

// needsCall reports whether the mesh has to be called for the request.
func (s *modelState) needsCall(requestKey string, now time.Time) bool {
	return s.dirty || s.requestKey != requestKey || s.result == notCalled && s.nextCall.IsZero() ||
		!s.nextCall.IsZero() && !now.Before(s.nextCall)
}

// reset clears the state if it belongs to another request, and sets the load reason.
func (s *modelState) reset(requestKey string) {
	if s.requestKey == requestKey {
		return
	}
	next := modelState{requestKey: requestKey, loadReason: max(s.loadReason, loadReasonRestart)}
	if s.requestKey != "" {
		next.loadReason = loadReasonSpecChanged
	}
	*s = next
}

// startOrCheckGracePeriod starts runtimeGracePeriod on the first call, and reports whether the period has not ended.
func (s *modelState) startOrCheckGracePeriod(now time.Time) bool {
	if s.waitingSince.IsZero() {
		s.waitingSince = now
	}
	return now.Sub(s.waitingSince) < runtimeGracePeriod
}

// probeTimeout is how long a probe, the first call after a failure, blocks other calls to the mesh unless it ends earlier. It equals the
// timeout of a call, so that an unreachable mesh occupies only one of the workers, which all namespaces share.
const probeTimeout = 10 * time.Second

var errCircuitOpen = errors.New("the last call failed a moment ago")

// circuitBreakers isolate namespaces: a failing or slow mesh does not delay models of other namespaces. The zero value is ready to use.
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

// allow returns nil if a call may start, or else errCircuitOpen. After nil the caller must call done. After a failed call,
// allow permits one call at a time.
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
	case breaker.nextProbe.IsZero():
	case now.Before(breaker.nextProbe):
		return fmt.Errorf("%w: %w", errCircuitOpen, breaker.lastErr)
	default:
		breaker.nextProbe = now.Add(probeTimeout)
	}
	breaker.inFlight++
	return nil
}

// done ends a call. Unavailable and DeadlineExceeded open the circuit; any other result closes it.
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

// reset closes the circuit of a namespace after its pods changed.
func (b *circuitBreakers) reset(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeCircuit(namespace)
}

// closeCircuit allows calls to a namespace again. The caller must hold mu.
func (b *circuitBreakers) closeCircuit(namespace string) {
	if breaker := b.byNamespace[namespace]; breaker != nil && breaker.inFlight > 0 {
		breaker.nextProbe, breaker.lastErr = time.Time{}, nil
	} else {
		delete(b.byNamespace, namespace)
	}
}
