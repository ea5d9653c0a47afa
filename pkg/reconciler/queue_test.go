package reconciler

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// The backoff grows to one minute, for each object separately.
func TestMaxBackoff(t *testing.T) {
	limiter := ControllerOptions(defaultWorkers, defaultWorkers-1).RateLimiter
	var last time.Duration
	for range 1000 {
		last = limiter.When(request("a", "failing"))
	}
	if last != time.Minute {
		t.Errorf("got backoff %s after 1000 failures, want one minute", last)
	}
	for i := range 300 {
		limiter.When(request("a", fmt.Sprint(i)))
	}
	if first := limiter.When(request("b", "x")); first != 5*time.Millisecond {
		t.Errorf("got backoff %s for the first failure of another object, want the initial one", first)
	}
	limiter.Forget(request("a", "failing"))
	if first := limiter.When(request("a", "failing")); first != 5*time.Millisecond {
		t.Errorf("got backoff %s after a success, want the initial one", first)
	}
}
