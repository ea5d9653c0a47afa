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
		err         error
		wantAllowed bool
	}{
		"no error":         {nil, true},
		"AlreadyExists":    {status.Error(codes.AlreadyExists, ""), true},
		"Internal":         {fmt.Errorf("calling: %w", status.Error(codes.Internal, "")), true},
		"no status":        {errors.New("x"), true},
		"Unavailable":      {fmt.Errorf("calling: %w", status.Error(codes.Unavailable, "")), false},
		"DeadlineExceeded": {status.Error(codes.DeadlineExceeded, ""), false},
	} {
		var b circuitBreakers
		call(t, &b, tc.err)
		if err := b.allow("ns", now); (err == nil) != tc.wantAllowed {
			t.Errorf("%s: the next call was allowed: %t, want %t", name, err == nil, tc.wantAllowed)
		}
		if err := b.allow("other", now); err != nil {
			t.Errorf("%s: error %v in another namespace", name, err)
		}
	}
}

// call runs a call that ends immediately with the given result.
func call(t *testing.T, b *circuitBreakers, result error) {
	t.Helper()
	if err := b.allow("ns", now); err != nil {
		t.Fatal(err)
	}
	b.done("ns", result, now)
}

func TestBreakerAllowsOneProbe(t *testing.T) {
	var b circuitBreakers
	call(t, &b, status.Error(codes.Unavailable, "refused"))
	later := now.Add(minBackoff)
	if err := b.allow("ns", later); err != nil {
		t.Error(err)
	}
	if err := b.allow("ns", later); !errors.Is(err, errCircuitOpen) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("call during a probe: error %v, want errCircuitOpen", err)
	}
	if err := b.allow("ns", later.Add(probeTimeout)); err != nil {
		t.Errorf("call after probeTimeout: error %v, want none", err)
	}
	b.done("ns", nil, later)
	b.done("ns", nil, later)
	if err := b.allow("ns", later); err != nil || len(b.byNamespace) != 1 {
		t.Errorf("call after a successful probe: error %v, %d breakers, want no error and one breaker", err, len(b.byNamespace))
	}
	b.done("ns", status.Error(codes.Unavailable, ""), now)
	b.reset("ns")
	if err := b.allow("ns", now); err != nil {
		t.Errorf("call after reset: error %v, want none", err)
	}
	if b.done("ns", nil, now); len(b.byNamespace) != 0 {
		t.Error("the breaker of a mesh that responds was not deleted")
	}
}

// While the mesh of a namespace does not respond, only one call is made for all its models.
func TestModelsOfUnresponsiveMeshShareBreaker(t *testing.T) {
	env := newTestEnv(t, newPredictor(), newPredictor(func(p *v1alpha1.Predictor) { p.Name = "other" }))
	env.mesh.err = status.Error(codes.DeadlineExceeded, "too slow")
	env.reconcile(predictorKey)
	other := predictorKey
	other.Name = "ksp_other"
	if requeueAfter := env.reconcile(other); requeueAfter < minBackoff || env.mesh.calls() != 1 {
		t.Errorf("requeue after %s, %d calls, want at least %s and one call", requeueAfter, env.mesh.calls(), minBackoff)
	}
	env.clock.SetTime(now.Add(time.Minute))
	env.mesh.err, env.mesh.response = nil, responseFor("x", modelStatus(loaded))
	env.reconcile(other)
	env.reconcile(predictorKey)
	if env.mesh.calls() != 3 || !env.status().Available {
		t.Errorf("%d calls, status %+v, want three calls and an available model", env.mesh.calls(), env.status())
	}
}
