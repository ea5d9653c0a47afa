package reconciler

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// The finalizer is added when NeedsFinalizer returns true, and not before.
func TestFinalizerIsAddedWhenNeeded(t *testing.T) {
	logic := measuringLogic()
	logic.Finalizer = finalizer
	logic.Finalize = func(context.Context, *widget) error { return nil }
	logic.NeedsFinalizer = func(w *widget) bool { return w.Spec.Size > 5 }
	f := newFixture(t, logic, newWidget())
	f.mustReconcile()
	if got := f.get(); len(got.Finalizers) != 0 {
		t.Errorf("got finalizers %q before NeedsFinalizer returns true", got.Finalizers)
	}
	f.change(func(w *widget) { w.Spec.Size, w.Generation = 6, 2 })
	f.mustReconcile()
	if got := f.get(); !slices.Equal(got.Finalizers, []string{finalizer}) {
		t.Errorf("got finalizers %q, want %q", got.Finalizers, finalizer)
	}
}

// OnDeleted is called for an object that this process has first seen while it was being deleted: Finalize may have stored state.
func TestOnDeletedRunsForObjectFirstSeenDuringDeletion(t *testing.T) {
	logic := measuringLogic()
	logic.Finalizer, logic.Finalize = finalizer, func(context.Context, *widget) error { return nil }
	f := newFixture(t, logic, newWidget(func(w *widget) { w.Finalizers = []string{finalizer} }))
	f.delete()
	f.mustReconcile()
	if len(f.deleted) != 1 {
		t.Errorf("got OnDeleted calls %q, want one", f.deleted)
	}
}

// AfterStatusUpdate is called after a successful patch, and not after a failed one.
func TestAfterStatusUpdateRunsAfterSuccessOnly(t *testing.T) {
	var generations []int64
	logic := measuringLogic()
	logic.AfterStatusUpdate = func(before, after *widget) {
		generations = append(generations, before.Status.ObservedGeneration, after.Status.ObservedGeneration)
	}
	f := newFixture(t, logic, newWidget())
	f.failWrite = func(string) error { return errors.New("connection refused") }
	if _, err := f.reconcile(); err == nil || len(generations) != 0 {
		t.Errorf("failed patch: got error %v and generations %v, want an error and no call", err, generations)
	}
	f.failWrite = nil
	f.mustReconcile()
	f.mustReconcile()
	if !slices.Equal(generations, []int64{0, 1}) {
		t.Errorf("got generations %v, want one call with 0 and 1", generations)
	}
}
