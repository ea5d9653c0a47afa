package reconciler

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// The finalizer is added when NeedsFinalizer returns true, and not before.
func TestFinalizerIsAddedWhenNeeded(t *testing.T) {
	logic := sized()
	logic.Finalizer = finalizer
	logic.Finalize = func(context.Context, *widget) error { return nil }
	logic.NeedsFinalizer = func(w *widget) bool { return w.Spec.Size > 5 }
	b := newBench(t, logic, newWidget())
	b.must()
	if got := b.get(); len(got.Finalizers) != 0 {
		t.Errorf("finalizers %q before they are needed", got.Finalizers)
	}
	b.change(func(w *widget) { w.Spec.Size, w.Generation = 6, 2 })
	b.must()
	if got := b.get(); !slices.Equal(got.Finalizers, []string{finalizer}) {
		t.Errorf("finalizers %q", got.Finalizers)
	}
}

// AfterStatusUpdate is called after a successful patch, and not after a failed one.
func TestAfterStatusUpdateRunsAfterSuccessOnly(t *testing.T) {
	var generations []int64
	logic := sized()
	logic.AfterStatusUpdate = func(before, after *widget) {
		generations = append(generations, before.Status.ObservedGeneration, after.Status.ObservedGeneration)
	}
	b := newBench(t, logic, newWidget())
	b.failing = func(string) error { return errors.New("the network is down") }
	if _, err := b.reconcile(); err == nil || len(generations) != 0 {
		t.Errorf("error %v, heard %v", err, generations)
	}
	b.failing = nil
	b.must()
	b.must()
	if !slices.Equal(generations, []int64{0, 1}) {
		t.Errorf("heard %v, want one step from 0 to 1", generations)
	}
}
