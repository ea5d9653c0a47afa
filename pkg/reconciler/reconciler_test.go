package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func TestStatusIsPatchedOncePerChange(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget())
	if n := f.mustReconcile(); n != 1 {
		t.Errorf("first reconcile: got %d writes, want 1: %q", n, f.writes)
	}
	for range 3 {
		if n := f.mustReconcile(); n != 0 {
			t.Errorf("unchanged object: got %d writes, want 0: %q", n, f.writes)
		}
	}
	f.change(func(w *widget) { w.Spec.Size, w.Generation = -1, 2 })
	if n := f.mustReconcile(); n != 1 {
		t.Errorf("changed object: got %d writes, want 1", n)
	}
	got := f.get()
	if got.Status.ObservedGeneration != 2 || conditions.IsTrue(got.Status.Conditions, available) {
		t.Errorf("got status %+v, want generation 2 and not available", got.Status)
	}
	for _, c := range got.Status.Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("condition %s: got observedGeneration %d, want 2", c.Type, c.ObservedGeneration)
		}
	}
	if n := f.mustReconcile(); n != 0 {
		t.Errorf("repeated reconcile: got %d writes, want 0", n)
	}
}

// A reconcile waits while the cache lacks the last status update, because its own update would conflict.
func TestReconcileWaitsForCacheWithLastStatus(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget())
	before := f.get()
	f.mustReconcile()
	f.stale = before
	result, err := f.reconcile()
	if err != nil || result.RequeueAfter != StaleCacheRetry || len(f.writes) != 1 {
		t.Errorf("stale cache: got result %+v, error %v, writes %q, want a requeue after %s", result, err, f.writes, StaleCacheRetry)
	}
	f.stale = nil
	if n := f.mustReconcile(); n != 0 {
		t.Errorf("current cache: got %d writes, want 0", n)
	}
}

// The status of a failed patch may have been stored. If the cache holds the earlier status and the next reconcile computes it again, only a
// request to the API server shows which one is stored.
func TestStatusStoredByFailedPatch(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, measuringLogic(), newWidget())
			f.mustReconcile()
			before := f.get()
			f.change(func(w *widget) { w.Spec.Size = -1 })
			f.failWrite = func(string) error {
				if w := f.get(); stored {
					set(w, available, metav1.ConditionFalse, "Down")
					if err := f.client.Status().Update(t.Context(), w); err != nil {
						t.Error(err)
					}
				}
				return apierrors.NewTimeoutError("the response was lost", 0)
			}
			f.stale = f.get()
			if _, err := f.reconcile(); err == nil {
				t.Fatal("want an error")
			}
			f.failWrite, f.stale.Spec = nil, before.Spec // the next reconcile computes the earlier status
			result, err := f.reconcile()
			if err != nil || (result.RequeueAfter == ConflictRetry) != stored {
				t.Errorf("got result %+v, error %v, writes %q", result, err, f.writes)
			}
			f.stale = nil
			f.change(func(w *widget) { w.Spec = before.Spec })
			f.mustReconcile()
			if got := f.get(); !conditions.IsTrue(got.Status.Conditions, available) {
				t.Errorf("got status %+v, want available", got.Status)
			}
			if n := f.mustReconcile(); n != 0 {
				t.Errorf("repeated reconcile: got %d writes, want 0: %q", n, f.writes)
			}
		})
	}
}

// The status patch contains only the status and the resourceVersion, even if a phase modified spec and labels of its copy.
// [D37]
func TestStatusPatchContainsOnlyStatus(t *testing.T) {
	logic := measuringLogic()
	logic.Phases = append(logic.Phases, phase("defaulting", func(w *widget) error {
		w.Spec.Size, w.Labels = 7, map[string]string{"a": "b"}
		return nil
	}))
	f := newFixture(t, logic, newWidget())
	f.mustReconcile()
	if body := f.writes[0]; !strings.HasPrefix(body, `patch status {"metadata":{"resourceVersion":"`) ||
		strings.Contains(body, "labels") || strings.Contains(body, "spec") {
		t.Errorf("got patch %s", body)
	}
	if n := f.mustReconcile(); n != 0 {
		t.Errorf("modified copy of the object: got %d writes, want 0: %q", n, f.writes[1:])
	}
}

func TestPhasesStopAtFirstError(t *testing.T) {
	var ran []string
	step := func(name string, err error) Phase[*widget] {
		return phase(name, func(w *widget) error {
			ran = append(ran, name)
			set(w, strings.ToUpper(name), metav1.ConditionTrue, "Ran")
			return err
		})
	}
	diskErr, conflict := errors.New("disk full"), apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, key.Name, errors.New("changed"))
	for name, tc := range map[string]struct {
		err      error
		result   ctrl.Result
		wantErr  error
		terminal bool
	}{
		"success":                   {nil, ctrl.Result{}, nil, false},
		"error":                     {diskErr, ctrl.Result{}, diskErr, false},
		"conflict":                  {conflict, ctrl.Result{}, conflict, false},
		"wait with Retry":           {&Wait{For: "pods", Retry: time.Minute}, ctrl.Result{RequeueAfter: time.Minute}, nil, false},
		"wait for an event":         {&Wait{For: "pods"}, ctrl.Result{}, nil, false},
		"wrapped wait":              {fmt.Errorf("applying: %w", &Wait{For: "pods", Retry: time.Second}), ctrl.Result{RequeueAfter: time.Second}, nil, false},
		"terminal":                  {reconcile.TerminalError(diskErr), ctrl.Result{}, diskErr, true},
		"wait joined with an error": {errors.Join(&Wait{For: "pods"}, diskErr), ctrl.Result{}, diskErr, false},
	} {
		t.Run(name, func(t *testing.T) {
			ran = nil
			logic := measuringLogic()
			logic.Phases = []Phase[*widget]{step("a", nil), step("b", tc.err), step("c", nil)}
			f := newFixture(t, logic, newWidget())
			result, err := f.reconcile()
			if result != tc.result || !errors.Is(err, tc.wantErr) || (err == nil) != (tc.wantErr == nil) {
				t.Errorf("got result %+v, error %v, want %+v, %v", result, err, tc.result, tc.wantErr)
			}
			if errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal {
				t.Errorf("got error %v, want terminal %t", err, tc.terminal)
			}
			if err != nil && !strings.Contains(err.Error(), "b: ") {
				t.Errorf("got error %v, want it to contain the name of the phase", err)
			}
			want := []string{"a", "b"}
			if tc.err == nil {
				want = append(want, "c")
			}
			if !slices.Equal(ran, want) {
				t.Errorf("got phases %v, want %v", ran, want)
			}
			// Summary runs and the status is patched even after an error.
			status := f.get().Status
			if _, ok := conditions.Get(status.Conditions, available); !ok || status.ObservedGeneration != 1 || len(f.writes) != 1 {
				t.Errorf("got status %+v after %d writes, want a summary after 1", status, len(f.writes))
			}
		})
	}
}

func TestFailedStatusPatch(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, key.Name, errors.New("changed"))
	diskErr := errors.New("disk full")
	for name, tc := range map[string]struct {
		phaseErr error
		patchErr error
		requeue  bool
		wantErr  error
	}{
		"conflict":                        {nil, conflict, true, nil},
		"conflict after a wait":           {&Wait{For: "pods", Retry: time.Hour}, conflict, true, nil},
		"conflict after a terminal error": {reconcile.TerminalError(diskErr), conflict, true, nil},
		"conflict after an error":         {diskErr, conflict, false, diskErr},
		"conflict after one of a phase":   {conflict, conflict, false, conflict},
		"failure":                         {nil, diskErr, false, diskErr},
		"failure after a wait":            {&Wait{For: "pods", Retry: time.Hour}, diskErr, false, diskErr},
	} {
		t.Run(name, func(t *testing.T) {
			logic := measuringLogic()
			logic.Phases = append(logic.Phases, phase("b", func(*widget) error { return tc.phaseErr }))
			f := newFixture(t, logic, newWidget())
			f.failWrite = func(string) error { return tc.patchErr }
			result, err := f.reconcile()
			if tc.requeue && (err != nil || result.RequeueAfter != ConflictRetry) {
				t.Errorf("got result %+v, error %v; want a requeue without an error", result, err)
			}
			if !tc.requeue && !errors.Is(err, tc.wantErr) {
				t.Errorf("got error %v, want %v", err, tc.wantErr)
			}
			if len(f.events()) > 0 {
				t.Error("an event reports a status that was not written")
			}
		})
	}
}

// A terminal error is retried if the status patch failed.
func TestTerminalErrorWithoutStatusIsRetried(t *testing.T) {
	logic := measuringLogic()
	logic.Phases = append(logic.Phases, phase("b", func(*widget) error { return reconcile.TerminalError(errors.New("port out of range")) }))
	f := newFixture(t, logic, newWidget())
	f.failWrite = func(string) error { return errors.New("connection refused") }
	_, err := f.reconcile()
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("got error %v, want one that is not terminal", err)
	}
	for _, part := range []string{"connection refused", "port out of range", "patching status"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got error %q, want it to contain %q", err, part)
		}
	}
}

// The status patch of a stale object conflicts, and the change of another client is kept.
func TestStatusPatchUsesOptimisticLock(t *testing.T) {
	var f *fixture
	logic := measuringLogic()
	logic.Phases = append(logic.Phases, phase("changing object", func(w *widget) error {
		if w.Spec.Size == 0 {
			f.change(func(w *widget) { w.Spec.Size, w.Generation = 5, 2 })
		}
		return nil
	}))
	f = newFixture(t, logic, newWidget())
	result, err := f.reconcile()
	if err != nil || result.RequeueAfter != ConflictRetry {
		t.Fatalf("got result %+v, error %v, want a requeue after %s", result, err, ConflictRetry)
	}
	if got := f.get(); got.Status.ObservedGeneration != 0 {
		t.Errorf("the reconcile of the stale object wrote status %+v", got.Status)
	}
	f.mustReconcile()
	if got := f.get(); got.Status.ObservedGeneration != 2 || got.Spec.Size != 5 {
		t.Errorf("got %+v, want generation 2 and size 5", got)
	}
}

func TestPausedObjectIsNotReconciled(t *testing.T) {
	logic, runs, pauses := measuringLogic(), 0, 0
	logic.OnPaused = func() { pauses++ }
	logic.Finalizer, logic.Finalize = finalizer, func(context.Context, *widget) error { return nil }
	logic.Phases = append(logic.Phases, phase("counting", func(*widget) error { runs++; return nil }))
	f := newFixture(t, logic, newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
	if n := f.mustReconcile(); n != 1 || runs != 0 || pauses != 1 {
		t.Fatalf("paused: got %d writes, %d runs of phases and %d calls of OnPaused, want 1, 0 and 1", n, runs, pauses)
	}
	if got := f.get(); !conditions.IsTrue(got.Status.Conditions, ConditionPaused) || len(got.Finalizers) != 0 {
		t.Errorf("got %+v, want it paused without finalizers", got)
	}
	if n := f.mustReconcile(); n != 0 {
		t.Errorf("paused and repeated: got %d writes, want 0", n)
	}
	f.change(func(w *widget) { w.Annotations[names.PausedAnnotation] = "false" })
	f.mustReconcile()
	got := f.get()
	if _, paused := conditions.Get(got.Status.Conditions, ConditionPaused); paused || runs != 1 || !conditions.IsTrue(got.Status.Conditions, available) {
		t.Errorf("resumed: got status %+v after %d runs, want available and not paused after 1", got.Status, runs)
	}
}

func TestFinalizer(t *testing.T) {
	logic := measuringLogic()
	var responses []error
	logic.Finalizer = finalizer
	logic.Finalize = func(_ context.Context, w *widget) error {
		err := responses[0]
		responses = responses[1:]
		if err != nil {
			set(w, available, metav1.ConditionFalse, "Cleaning")
		}
		return err
	}
	f := newFixture(t, logic, newWidget(func(w *widget) { w.Finalizers = []string{"other/finalizer"} }))
	if n := f.mustReconcile(); n != 2 {
		t.Errorf("got %d writes, want the finalizer and the status: %q", n, f.writes)
	}
	if got := f.get().Finalizers; !slices.Equal(got, []string{"other/finalizer", finalizer}) {
		t.Fatalf("got finalizers %q, want the existing one and %q", got, finalizer)
	}
	if n := f.mustReconcile(); n != 0 {
		t.Errorf("repeated reconcile: got %d writes, want 0", n)
	}

	f.delete()
	diskErr := errors.New("database is locked")
	responses = []error{diskErr, &Wait{For: "jobs to end", Retry: time.Second}, nil}
	if _, err := f.reconcile(); !errors.Is(err, diskErr) {
		t.Errorf("got error %v, want that of Finalize", err)
	}
	if c, _ := conditions.Get(f.get().Status.Conditions, available); c.Reason != "Cleaning" {
		t.Errorf("got condition %+v, want the reason that Finalize set", c)
	}
	if result, err := f.reconcile(); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("got result %+v, error %v", result, err)
	}
	if len(f.deleted) != 0 {
		t.Error("OnDeleted was called while the object exists")
	}
	f.mustReconcile()
	if got := f.get().Finalizers; !slices.Equal(got, []string{"other/finalizer"}) || !slices.Equal(f.deleted, []types.UID{"uid-1"}) {
		t.Errorf("got finalizers %q and OnDeleted calls %q, want the finalizer removed and one call", got, f.deleted)
	}
	// The object terminates with the finalizer of another client.
	if n := f.mustReconcile(); n != 0 || len(f.deleted) != 1 {
		t.Errorf("got %d writes and OnDeleted calls %q, want no further ones", n, f.deleted)
	}
}

func TestFinalizerConflictIsRequeued(t *testing.T) {
	logic := measuringLogic()
	logic.Finalizer, logic.Finalize = finalizer, func(context.Context, *widget) error { return nil }
	f := newFixture(t, logic, newWidget())
	f.failWrite = func(operation string) error {
		if operation == "patch" {
			return apierrors.NewConflict(schema.GroupResource{}, key.Name, errors.New("changed"))
		}
		return nil
	}
	if result, err := f.reconcile(); err != nil || result.RequeueAfter != ConflictRetry || len(f.writes) != 0 {
		t.Errorf("got result %+v, error %v, writes %q", result, err, f.writes)
	}
	f.failWrite = nil
	f.mustReconcile()
	f.delete()
	f.failWrite = func(string) error { return apierrors.NewNotFound(schema.GroupResource{}, key.Name) }
	f.mustReconcile()
	if !slices.Equal(f.deleted, []types.UID{"uid-1"}) {
		t.Errorf("object deleted while its finalizer is removed: got OnDeleted calls %q, want one", f.deleted)
	}
}

// A deleted object in a stale cache is requeued after RequeueSoon, regardless of the results of the phases.
func TestDeletedObjectInStaleCacheIsRequeued(t *testing.T) {
	for name, phaseErr := range map[string]error{"success": nil, "wait": &Wait{For: "pods", Retry: time.Millisecond}, "failure": errors.New("failed")} {
		logic := measuringLogic()
		logic.Phases = append(logic.Phases, Phase[*widget]{Name: "last", Run: func(context.Context, *widget) error { return phaseErr }})
		f := newFixture(t, logic, newWidget())
		f.failWrite = func(string) error { return apierrors.NewNotFound(schema.GroupResource{}, key.Name) }
		if result, err := f.reconcile(); err != nil || result.RequeueAfter != RequeueSoon {
			t.Errorf("%s: got result %+v, error %v, want a requeue after %s", name, result, err, RequeueSoon)
		}
	}
}

// A kind without Finalize still removes its finalizer.
func TestFinalizerWithoutFinalize(t *testing.T) {
	logic := measuringLogic()
	logic.Finalizer = finalizer
	f := newFixture(t, logic, newWidget())
	f.mustReconcile()
	if got := f.get().Finalizers; len(got) != 0 {
		t.Errorf("got finalizers %q, want none without Finalize", got)
	}
	f.change(func(w *widget) { w.Finalizers = []string{finalizer} })
	f.delete()
	f.mustReconcile()
	if err := f.client.Get(t.Context(), key, &widget{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want the object deleted", err)
	}
}

func TestOnDeleted(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget())
	f.mustReconcile()
	f.delete()
	f.mustReconcile()
	f.mustReconcile()
	if !slices.Equal(f.deleted, []types.UID{"uid-1"}) {
		t.Errorf("got OnDeleted calls %q, want one", f.deleted)
	}
	// The object is deleted and created again between two reconciles.
	for _, uid := range []types.UID{"uid-2", "uid-3"} {
		if err := f.client.Create(t.Context(), newWidget(func(w *widget) { w.UID = uid })); err != nil {
			t.Fatal(err)
		}
		f.mustReconcile()
		f.delete()
	}
	if !slices.Equal(f.deleted, []types.UID{"uid-1", "uid-2"}) {
		t.Errorf("got OnDeleted calls %q, want uid-1 and uid-2", f.deleted)
	}
	if n := len(f.reconciler.(*baseReconciler[*widget]).tracker.objects); n != 1 {
		t.Errorf("got %d tracked objects, want 1", n)
	}
	f.mustReconcile()
	if n := len(f.reconciler.(*baseReconciler[*widget]).tracker.objects); n != 0 {
		t.Errorf("got %d tracked objects, want 0", n)
	}
}

func TestObjectDeletedDuringReconcile(t *testing.T) {
	var f *fixture
	logic := measuringLogic()
	logic.Phases = append(logic.Phases, phase("deleting", func(*widget) error { f.delete(); return nil }))
	f = newFixture(t, logic, newWidget())
	if result, err := f.reconcile(); err != nil || result.RequeueAfter != RequeueSoon {
		t.Errorf("got result %+v, error %v", result, err)
	}
	if len(f.events()) != 0 {
		t.Error("an event reports a status that was not written")
	}
}

func TestInterruptedReconcileWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	logic := measuringLogic()
	logic.Phases = append(logic.Phases, Phase[*widget]{Name: "stopping", Run: func(ctx context.Context, _ *widget) error {
		cancel(errors.New("shutdown"))
		return ctx.Err()
	}})
	f := newFixture(t, logic, newWidget())
	result, err := f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key})
	if err != nil || !result.IsZero() || len(f.writes) != 0 {
		t.Errorf("got result %+v, error %v, writes %q, want none of them", result, err, f.writes)
	}
}

func TestTimedOutReconcileReturnsError(t *testing.T) {
	for name, run := range map[string]func(context.Context, *widget) error{
		"error of the phase": func(ctx context.Context, _ *widget) error { return ctx.Err() },
		"no error":           func(context.Context, *widget) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
			defer cancel()
			logic := measuringLogic()
			logic.Phases = append(logic.Phases, Phase[*widget]{Name: "hanging", Run: run})
			f := newFixture(t, logic, newWidget())
			_, err := f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			if !errors.Is(err, context.DeadlineExceeded) || len(f.writes) != 0 {
				t.Errorf("got error %v and writes %q, want a deadline error and no writes", err, f.writes)
			}
		})
	}
}

func TestGetErrorIsReturned(t *testing.T) {
	f := newFixture(t, measuringLogic())
	f.reconciler.(*baseReconciler[*widget]).client = failingReader{f.client}
	if _, err := f.reconcile(); err == nil || !strings.Contains(err.Error(), "getting widget: ") {
		t.Errorf("got error %v, want that of Get", err)
	}
}

type failingReader struct{ client.Client }

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("cache is not started")
}

func TestConditionMetrics(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget())
	value := func(condition, status string) float64 {
		return gaugeValue(t, conditionsGauge.WithLabelValues(t.Name(), "widget", condition, status))
	}
	f.mustReconcile()
	f.mustReconcile()
	if value(available, "True") != 1 || value(available, "False") != 0 {
		t.Errorf("one available object: got %v with status True and %v with False, want 1 and 0", value(available, "True"), value(available, "False"))
	}
	f.change(func(w *widget) { w.Spec.Size = -1 })
	f.mustReconcile()
	if value(available, "True") != 0 || value(available, "False") != 1 {
		t.Error("the transition was not counted")
	}
	f.delete()
	f.mustReconcile()
	if value(available, "False") != 0 || value("Measured", "False") != 0 {
		t.Error("the deleted object is still counted")
	}
}
