package models

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

func TestBreakerOpensForUnreachableMesh(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":         {nil, true},
		"a refusal":         {status.Error(codes.AlreadyExists, ""), true},
		"broken":            {fmt.Errorf("calling: %w", status.Error(codes.Internal, "")), true},
		"another":           {errors.New("x"), true},
		"no server":         {fmt.Errorf("calling: %w", status.Error(codes.Unavailable, "")), false},
		"deadline exceeded": {status.Error(codes.DeadlineExceeded, ""), false},
	} {
		var b circuitBreakers
		call(t, &b, tc.err)
		if err := b.allow("ns", now); (err == nil) != tc.want {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
		if err := b.allow("other", now); err != nil {
			t.Errorf("%s: other namespaces have nothing to do with it: %v", name, err)
		}
	}
}

// call makes a call that ends immediately.
func call(t *testing.T, b *circuitBreakers, result error) {
	t.Helper()
	if err := b.allow("ns", now); err != nil {
		t.Fatal(err)
	}
	b.done("ns", result, now)
}

func TestOneModelTriesForAll(t *testing.T) {
	var b circuitBreakers
	call(t, &b, status.Error(codes.Unavailable, "refused"))
	later := now.Add(probeTimeout)
	if err := b.allow("ns", later); err != nil {
		t.Error(err)
	}
	if err := b.allow("ns", later); !errors.Is(err, errCircuitOpen) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("request during a probe: error %v, want that of the open circuit", err)
	}
	if err := b.allow("ns", later.Add(probeTimeout)); err != nil {
		t.Errorf("request after an unanswered probe: unexpected error %v", err)
	}
	b.done("ns", nil, later)
	b.done("ns", nil, later)
	if err := b.allow("ns", later); err != nil || len(b.byNamespace) != 1 {
		t.Errorf("calls fail although the mesh responds again: %v", err)
	}
	b.done("ns", status.Error(codes.Unavailable, ""), now)
	b.reset("ns")
	if err := b.allow("ns", now); err != nil {
		t.Errorf("calls of the new mesh fail: %v", err)
	}
	if b.done("ns", nil, now); len(b.byNamespace) != 0 {
		t.Error("the breaker kept the state of a mesh that responds")
	}
}

// A mesh that is slow holds four workers and no more.
func TestASlowMeshDoesNotHoldAllWorkers(t *testing.T) {
	var b circuitBreakers
	for range maxConcurrentCalls {
		if err := b.allow("slow", now); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.allow("slow", now); !errors.Is(err, errTooManyCalls) {
		t.Errorf("error %v", err)
	}
	if err := b.allow("ns", now); err != nil {
		t.Errorf("error %v", err)
	}
	w := newTestEnv(t, predictor())
	w.mesh.response = statusOf("x", concrete(loaded))
	for range maxConcurrentCalls {
		if err := w.breakers.allow("ns", now); err != nil {
			t.Fatal(err)
		}
	}
	if again := w.reconcile(aPredictor); again <= 0 || again > 2*minBackoff || w.mesh.calls() != 0 || len(w.patches) != 1 {
		t.Errorf("again in %s, %d calls, %d writes", again, w.mesh.calls(), len(w.patches))
	}
	w.breakers.done("ns", nil, now)
	w.clock.SetTime(now.Add(2 * minBackoff))
	if w.reconcile(aPredictor); w.mesh.calls() != 1 || !w.status().Available {
		t.Errorf("%d calls, %+v", w.mesh.calls(), w.status())
	}
}

// The models of a namespace whose mesh does not answer make one call between them.
func TestModelsOfASilentMesh(t *testing.T) {
	w := newTestEnv(t, predictor(), predictor(func(p *v1alpha1.Predictor) { p.Name = "other" }))
	w.mesh.fault = status.Error(codes.DeadlineExceeded, "too slow")
	w.reconcile(aPredictor)
	other := aPredictor
	other.Name = "other"
	if again := w.reconcile(other); again < minBackoff || w.mesh.calls() != 1 {
		t.Errorf("again in %s, %d calls", again, w.mesh.calls())
	}
	w.clock.SetTime(now.Add(time.Minute))
	w.mesh.fault, w.mesh.response = nil, statusOf("x", concrete(loaded))
	w.reconcile(other)
	w.reconcile(aPredictor)
	if w.mesh.calls() != 3 || !w.status().Available {
		t.Errorf("%d calls, %+v", w.mesh.calls(), w.status())
	}
}
