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

func TestOneWritePerChange(t *testing.T) {
	b := newBench(t, sized(), newWidget())
	if n := b.must(); n != 1 {
		t.Errorf("the first reconcile wrote %d times, want once: %q", n, b.writes)
	}
	for range 3 {
		if n := b.must(); n != 0 {
			t.Errorf("a reconcile without a change wrote %d times: %q", n, b.writes)
		}
	}
	b.change(func(w *widget) { w.Spec.Size, w.Generation = -1, 2 })
	if n := b.must(); n != 1 {
		t.Errorf("the reconcile after a change wrote %d times, want once", n)
	}
	got := b.get()
	if got.Status.ObservedGeneration != 2 || conditions.IsTrue(got.Status.Conditions, available) {
		t.Errorf("status %+v", got.Status)
	}
	for _, c := range got.Status.Conditions {
		if c.ObservedGeneration != 2 {
			t.Errorf("condition %s was observed at generation %d", c.Type, c.ObservedGeneration)
		}
	}
	if n := b.must(); n != 0 {
		t.Errorf("at rest %d writes", n)
	}
}

// While the cache lacks our last status update, a reconcile would only conflict.
func TestReconcileWaitsForCacheWithLastStatus(t *testing.T) {
	b := newBench(t, sized(), newWidget())
	before := b.get()
	b.must()
	b.stale = before
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != StaleCacheRetry || len(b.writes) != 1 {
		t.Errorf("behind: result %+v, error %v, writes %q", result, err, b.writes)
	}
	b.stale = nil
	if n := b.must(); n != 0 {
		t.Errorf("%d writes once the cache has caught up", n)
	}
}

// A failed status patch may have been stored. While the cache holds the earlier status and the next reconcile computes it again, only the
// API server knows.
func TestStatusStoredByFailedPatch(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, sized(), newWidget())
			b.must()
			before := b.get()
			b.change(func(w *widget) { w.Spec.Size = -1 })
			b.failing = func(string) error {
				if w := b.get(); stored {
					set(w, available, metav1.ConditionFalse, "Down")
					if err := b.client.Status().Update(t.Context(), w); err != nil {
						t.Error(err)
					}
				}
				return apierrors.NewTimeoutError("the answer is lost", 0)
			}
			b.stale = b.get()
			if _, err := b.reconcile(); err == nil {
				t.Fatal("want an error")
			}
			b.failing, b.stale.Spec = nil, before.Spec // the next reconcile computes the earlier status
			result, err := b.reconcile()
			if err != nil || (result.RequeueAfter == ConflictRetry) != stored {
				t.Errorf("result %+v, error %v, writes %q", result, err, b.writes)
			}
			b.stale = nil
			b.change(func(w *widget) { w.Spec = before.Spec })
			b.must()
			if got := b.get(); !conditions.IsTrue(got.Status.Conditions, available) {
				t.Errorf("status %+v", got.Status)
			}
			if n := b.must(); n != 0 {
				t.Errorf("%d writes at rest: %q", n, b.writes)
			}
		})
	}
}

// The status patch contains only the status and the resourceVersion, even if a phase modified its copy of the spec.
// [D37]
func TestStatusPatchHoldsOnlyTheStatus(t *testing.T) {
	logic := sized()
	logic.Phases = append(logic.Phases, phase("defaulting", func(w *widget) error {
		w.Spec.Size, w.Labels = 7, map[string]string{"a": "b"}
		return nil
	}))
	b := newBench(t, logic, newWidget())
	b.must()
	if body := b.writes[0]; !strings.HasPrefix(body, `patch status {"metadata":{"resourceVersion":"`) ||
		strings.Contains(body, "labels") || strings.Contains(body, "spec") {
		t.Errorf("patch %s", body)
	}
	if n := b.must(); n != 0 {
		t.Errorf("a changed copy of the spec cost %d writes: %q", n, b.writes[1:])
	}
}

func TestPhasesStopAtTheFirstError(t *testing.T) {
	var ran []string
	step := func(name string, err error) Phase[*widget] {
		return phase(name, func(w *widget) error {
			ran = append(ran, name)
			set(w, strings.ToUpper(name), metav1.ConditionTrue, "Ran")
			return err
		})
	}
	broken := errors.New("disk full")
	for name, tc := range map[string]struct {
		err      error
		result   ctrl.Result
		is       error // the returned error
		terminal bool
	}{
		"success":                   {nil, ctrl.Result{}, nil, false},
		"error":                     {broken, ctrl.Result{}, broken, false},
		"wait with timer":           {&Wait{For: "rain", Retry: time.Minute}, ctrl.Result{RequeueAfter: time.Minute}, nil, false},
		"wait for an event":         {&Wait{For: "rain"}, ctrl.Result{}, nil, false},
		"wrapped wait":              {fmt.Errorf("looking up: %w", &Wait{For: "rain", Retry: time.Second}), ctrl.Result{RequeueAfter: time.Second}, nil, false},
		"terminal":                  {reconcile.TerminalError(broken), ctrl.Result{}, broken, true},
		"wait joined with an error": {errors.Join(&Wait{For: "rain"}, broken), ctrl.Result{}, broken, false},
	} {
		t.Run(name, func(t *testing.T) {
			ran = nil
			logic := sized()
			logic.Phases = []Phase[*widget]{step("a", nil), step("b", tc.err), step("c", nil)}
			b := newBench(t, logic, newWidget())
			result, err := b.reconcile()
			if result != tc.result || !errors.Is(err, tc.is) || (err == nil) != (tc.is == nil) {
				t.Errorf("result %+v, error %v", result, err)
			}
			if errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal {
				t.Errorf("terminal is not passed through: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "b: ") {
				t.Errorf("the error does not name its phase: %v", err)
			}
			want := []string{"a", "b"}
			if tc.err == nil {
				want = append(want, "c")
			}
			if !slices.Equal(ran, want) {
				t.Errorf("phases %v ran, want %v", ran, want)
			}
			// The summary is derived and the status patched in any case.
			status := b.get().Status
			if _, ok := conditions.Get(status.Conditions, available); !ok || status.ObservedGeneration != 1 || len(b.writes) != 1 {
				t.Errorf("status %+v after %d writes", status, len(b.writes))
			}
		})
	}
}

func TestConflictIsARetry(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, key.Name, errors.New("changed"))
	broken := errors.New("disk full")
	for name, tc := range map[string]struct {
		pass  error // error of the phases
		patch error // error of the patch
		quiet bool
		is    error
	}{
		"conflict":                  {nil, conflict, true, nil},
		"conflict of a wait":        {&Wait{For: "rain", Retry: time.Hour}, conflict, true, nil},
		"conflict after a terminal": {reconcile.TerminalError(broken), conflict, true, nil},
		"conflict after an error":   {broken, conflict, false, broken},
		"conflict of a phase":       {conflict, nil, false, conflict},
		"failure":                   {nil, broken, false, broken},
		"failure of a wait":         {&Wait{For: "rain", Retry: time.Hour}, broken, false, broken},
	} {
		t.Run(name, func(t *testing.T) {
			logic := sized()
			logic.Phases = append(logic.Phases, phase("b", func(*widget) error { return tc.pass }))
			b := newBench(t, logic, newWidget())
			b.failing = func(string) error { return tc.patch }
			result, err := b.reconcile()
			if tc.quiet && (err != nil || result.RequeueAfter != ConflictRetry) {
				t.Errorf("result %+v, error %v; want a quiet retry", result, err)
			}
			if !tc.quiet && !errors.Is(err, tc.is) {
				t.Errorf("error %v, want %v", err, tc.is)
			}
			if len(b.events()) > 0 && tc.patch != nil {
				t.Error("an event reports a status that was not written")
			}
		})
	}
}

// A terminal error is retried if the status patch failed.
func TestTerminalErrorWithoutStatusIsRetried(t *testing.T) {
	logic := sized()
	logic.Phases = append(logic.Phases, phase("b", func(*widget) error { return reconcile.TerminalError(errors.New("port out of range")) }))
	b := newBench(t, logic, newWidget())
	b.failing = func(string) error { return errors.New("connection refused") }
	_, err := b.reconcile()
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("error %v", err)
	}
	for _, part := range []string{"connection refused", "port out of range", "patching status"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// A patch of a stale object conflicts, and the change of the other client is kept.
func TestOptimisticLock(t *testing.T) {
	var b *bench
	logic := sized()
	logic.Phases = append(logic.Phases, phase("meddling", func(w *widget) error {
		if w.Spec.Size == 0 {
			b.change(func(w *widget) { w.Spec.Size, w.Generation = 5, 2 })
		}
		return nil
	}))
	b = newBench(t, logic, newWidget())
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != ConflictRetry {
		t.Fatalf("result %+v, error %v", result, err)
	}
	if got := b.get(); got.Status.ObservedGeneration != 0 {
		t.Errorf("the stale pass wrote %+v", got.Status)
	}
	b.must()
	if got := b.get(); got.Status.ObservedGeneration != 2 || got.Spec.Size != 5 {
		t.Errorf("got %+v, want generation 2 and size 5", got)
	}
}

func TestPausedObjectIsNotReconciled(t *testing.T) {
	logic, runs := sized(), 0
	logic.Finalizer, logic.Finalize = finalizer, func(context.Context, *widget) error { return nil }
	logic.Phases = append(logic.Phases, phase("counting", func(*widget) error { runs++; return nil }))
	b := newBench(t, logic, newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
	if n := b.must(); n != 1 || runs != 0 {
		t.Fatalf("%d writes, %d runs while paused", n, runs)
	}
	if got := b.get(); !conditions.IsTrue(got.Status.Conditions, ConditionPaused) || len(got.Finalizers) != 0 {
		t.Errorf("got %+v, want it paused without finalizers", got)
	}
	if n := b.must(); n != 0 {
		t.Errorf("%d writes at rest while paused", n)
	}
	b.change(func(w *widget) { w.Annotations[names.PausedAnnotation] = "false" })
	b.must()
	got := b.get()
	if _, paused := conditions.Get(got.Status.Conditions, ConditionPaused); paused || runs != 1 || !conditions.IsTrue(got.Status.Conditions, available) {
		t.Errorf("after %d runs, the status is %+v, want it no longer paused", runs, got.Status)
	}
}

func TestFinalizer(t *testing.T) {
	logic := sized()
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
	b := newBench(t, logic, newWidget(func(w *widget) { w.Finalizers = []string{"other/finalizer"} }))
	if n := b.must(); n != 2 {
		t.Errorf("%d writes, want finalizer and status: %q", n, b.writes)
	}
	if got := b.get().Finalizers; !slices.Equal(got, []string{"other/finalizer", finalizer}) {
		t.Fatalf("finalizers %q", got)
	}
	if n := b.must(); n != 0 {
		t.Errorf("%d writes at rest", n)
	}

	b.delete()
	broken := errors.New("database is busy")
	responses = []error{broken, &Wait{For: "jobs to end", Retry: time.Second}, nil}
	if _, err := b.reconcile(); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if c, _ := conditions.Get(b.get().Status.Conditions, available); c.Reason != "Cleaning" {
		t.Errorf("the user does not see why deletion takes time: %+v", c)
	}
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("result %+v, error %v", result, err)
	}
	if len(b.gone) != 0 {
		t.Error("OnDeleted was called while the object exists")
	}
	b.must()
	if got := b.get().Finalizers; !slices.Equal(got, []string{"other/finalizer"}) || !slices.Equal(b.gone, []types.UID{"uid-1"}) {
		t.Errorf("finalizers %q, gone %q", got, b.gone)
	}
	// Terminating with the finalizer of another client: nothing is left to do.
	if n := b.must(); n != 0 || len(b.gone) != 1 {
		t.Errorf("%d writes, gone %q", n, b.gone)
	}
}

func TestFinalizerConflictIsARetry(t *testing.T) {
	logic := sized()
	logic.Finalizer, logic.Finalize = finalizer, func(context.Context, *widget) error { return nil }
	b := newBench(t, logic, newWidget())
	b.failing = func(operation string) error {
		if operation == "patch" {
			return apierrors.NewConflict(schema.GroupResource{}, key.Name, errors.New("changed"))
		}
		return nil
	}
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != ConflictRetry || len(b.writes) != 0 {
		t.Errorf("result %+v, error %v, writes %q", result, err, b.writes)
	}
	b.failing = nil
	b.must()
	b.delete()
	b.failing = func(string) error { return apierrors.NewNotFound(schema.GroupResource{}, key.Name) }
	b.must()
	if !slices.Equal(b.gone, []types.UID{"uid-1"}) {
		t.Errorf("gone %q: an object that vanished while it lost its finalizer is gone", b.gone)
	}
}

// A stale cache holds a deleted object: it is requeued with a pause, regardless of the results of the phases.
func TestObjectMissingOnServerIsRequeuedWithPause(t *testing.T) {
	for name, end := range map[string]error{"success": nil, "wait": &Wait{For: "it", Retry: time.Millisecond}, "failure": errors.New("no")} {
		logic := sized()
		logic.Phases = append(logic.Phases, Phase[*widget]{Name: "ending", Run: func(context.Context, *widget) error { return end }})
		b := newBench(t, logic, newWidget())
		b.failing = func(string) error { return apierrors.NewNotFound(schema.GroupResource{}, key.Name) }
		if result, err := b.reconcile(); err != nil || result.RequeueAfter != RequeueSoon {
			t.Errorf("%s: result %+v, error %v", name, result, err)
		}
	}
}

// A kind without Finalize still removes its finalizer.
func TestFinalizerWithoutFinalize(t *testing.T) {
	logic := sized()
	logic.Finalizer = finalizer
	b := newBench(t, logic, newWidget())
	b.must()
	if got := b.get().Finalizers; len(got) != 0 {
		t.Errorf("finalizers %q were added for nothing", got)
	}
	b.change(func(w *widget) { w.Finalizers = []string{finalizer} })
	b.delete()
	b.must()
	if err := b.client.Get(t.Context(), key, &widget{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still held: %v", err)
	}
}

func TestOnDeleted(t *testing.T) {
	b := newBench(t, sized(), newWidget())
	b.must()
	b.delete()
	b.must()
	b.must()
	if !slices.Equal(b.gone, []types.UID{"uid-1"}) {
		t.Errorf("gone %q, want once", b.gone)
	}
	// Deleted and created again between two reconciles.
	for _, uid := range []types.UID{"uid-2", "uid-3"} {
		if err := b.client.Create(t.Context(), newWidget(func(w *widget) { w.UID = uid })); err != nil {
			t.Fatal(err)
		}
		b.must()
		b.delete()
	}
	if !slices.Equal(b.gone, []types.UID{"uid-1", "uid-2"}) {
		t.Errorf("gone %q", b.gone)
	}
	if n := len(b.reconciler.(*baseReconciler[*widget]).tracker.objects); n != 1 {
		t.Errorf("%d records are kept, want 1", n)
	}
	b.must()
	if n := len(b.reconciler.(*baseReconciler[*widget]).tracker.objects); n != 0 {
		t.Errorf("%d records are kept, want 0", n)
	}
}

func TestDeletedDuringTheReconcile(t *testing.T) {
	var b *bench
	logic := sized()
	logic.Phases = append(logic.Phases, phase("deleting", func(*widget) error { b.delete(); return nil }))
	b = newBench(t, logic, newWidget())
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != RequeueSoon {
		t.Errorf("result %+v, error %v", result, err)
	}
	if len(b.events()) != 0 {
		t.Error("an event reports a status that was not written")
	}
}

func TestInterruptedReconcileWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	logic := sized()
	logic.Phases = append(logic.Phases, Phase[*widget]{Name: "stopping", Run: func(ctx context.Context, _ *widget) error {
		cancel(errors.New("shutdown"))
		return ctx.Err()
	}})
	b := newBench(t, logic, newWidget())
	result, err := b.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key})
	if err != nil || !result.IsZero() || len(b.writes) != 0 {
		t.Errorf("result %+v, error %v, writes %q", result, err, b.writes)
	}
}

func TestTimedOutReconcileIsAnError(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	logic := sized()
	logic.Phases = append(logic.Phases, Phase[*widget]{Name: "hanging", Run: func(ctx context.Context, _ *widget) error { return ctx.Err() }})
	b := newBench(t, logic, newWidget())
	_, err := b.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key})
	if !errors.Is(err, context.DeadlineExceeded) || len(b.writes) != 0 {
		t.Errorf("error %v, writes %q", err, b.writes)
	}
}

func TestGetFails(t *testing.T) {
	b := newBench(t, sized())
	b.reconciler.(*baseReconciler[*widget]).client = brokenReader{b.client}
	if _, err := b.reconcile(); err == nil || !strings.Contains(err.Error(), "getting widget: ") {
		t.Errorf("error %v", err)
	}
}

type brokenReader struct{ client.Client }

func (brokenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("cache is not started")
}

func TestMetrics(t *testing.T) {
	b := newBench(t, sized(), newWidget())
	value := func(condition, status string) float64 {
		return gaugeValue(t, conditionsGauge.WithLabelValues(t.Name(), "widget", condition, status))
	}
	b.must()
	b.must()
	if value(available, "True") != 1 || value(available, "False") != 0 {
		t.Errorf("one available object counts %v and %v", value(available, "True"), value(available, "False"))
	}
	b.change(func(w *widget) { w.Spec.Size = -1 })
	b.must()
	if value(available, "True") != 0 || value(available, "False") != 1 {
		t.Error("the transition was not counted")
	}
	b.delete()
	b.must()
	if value(available, "False") != 0 || value("Measured", "False") != 0 {
		t.Error("the deleted object is still counted")
	}
}
