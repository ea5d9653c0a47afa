package models

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

func TestAMeshThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":    {nil, true},
		"a refusal":    {status.Error(codes.AlreadyExists, ""), true},
		"broken":       {fmt.Errorf("calling: %w", status.Error(codes.Internal, "")), true},
		"another":      {errors.New("x"), true},
		"nobody there": {fmt.Errorf("calling: %w", status.Error(codes.Unavailable, "")), false},
		"too slow":     {status.Error(codes.DeadlineExceeded, ""), false},
	} {
		var f fuses
		f.heard("ns", tc.err, now)
		if got := f.closed("ns", now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if !f.closed("other", now) {
			t.Errorf("%s: other namespaces have nothing to do with it", name)
		}
	}
}

func TestOneModelTriesForAll(t *testing.T) {
	var f fuses
	f.heard("ns", status.Error(codes.Unavailable, ""), now)
	later := now.Add(fuseProbe)
	if !f.closed("ns", later) || f.closed("ns", later) {
		t.Error("one tries, and the others wait for it")
	}
	if !f.closed("ns", later.Add(fuseProbe)) {
		t.Error("one that never comes back must not keep the others for ever")
	}
	f.heard("ns", nil, later)
	for range 2 {
		if !f.closed("ns", later) {
			t.Error("it answers again")
		}
	}
	f.heard("ns", status.Error(codes.Unavailable, ""), now)
	f.replace("ns")
	if !f.closed("ns", now) {
		t.Error("it is another mesh now")
	}
}

// The models of a namespace whose mesh does not answer make one call between them.
func TestModelsOfASilentMesh(t *testing.T) {
	w := newWorld(t, predictor(), predictor(func(p *v1alpha1.Predictor) { p.Name = "other" }))
	w.mesh.fault = status.Error(codes.DeadlineExceeded, "too slow")
	w.reconcile(aPredictor)
	other := aPredictor
	other.Name = "other"
	if again := w.reconcile(other); again < pauseMin || w.mesh.calls() != 1 {
		t.Errorf("again in %s, %d calls", again, w.mesh.calls())
	}
	w.clock.SetTime(now.Add(time.Minute))
	w.mesh.fault, w.mesh.answer = nil, says("x", concrete(loaded))
	w.reconcile(other)
	w.reconcile(aPredictor)
	if w.mesh.calls() != 3 || !w.status().Available {
		t.Errorf("%d calls, %+v", w.mesh.calls(), w.status())
	}
}
