package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

var (
	invalidErr = apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "w", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template", "spec", "serviceAccountName"), "My Account", "a lowercase RFC 1123 subdomain"),
	})
	badRequestErr           = apierrors.NewBadRequest("strict decoding error: unknown field")
	quotaErr                = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "w", errors.New("exceeded quota"))
	internalErr             = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	namespaceTerminatingErr = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "namespace ns is being terminated",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
	}}
	policyErr = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "deployments.apps \"w\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
	}}
	jsonPatchTestErr = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing path failed", 0, false)
)

func TestIsTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                      {nil, false},
		"invalid":                       {invalidErr, true},
		"bad request":                   {badRequestErr, true},
		"wrapped":                       {fmt.Errorf("applying: %w", invalidErr), true},
		"joined":                        {errors.Join(invalidErr, fmt.Errorf("applying: %w", badRequestErr)), true},
		"joined with an internal error": {errors.Join(invalidErr, internalErr), false},
		"quota":                         {quotaErr, false},
		"denied by a policy":            {policyErr, false},
		"denied by a webhook": {apierrors.NewBadRequest(
			`admission webhook "validation.gatekeeper.sh" denied the request: no`), false},
		"failed test of a JSON patch": {jsonPatchTestErr, false},
		"other error":                 {errors.New("boom"), false},
	} {
		if got := IsTerminal(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// logicWithError returns a Logic with one phase, which returns *err.
func logicWithError(err *error) Logic[*widget] {
	return Logic[*widget]{
		Phases:  []Phase[*widget]{phase("applying objects", func(*widget) error { return *err })},
		Summary: func(w *widget) { set(w, available, metav1.ConditionTrue, "Up") },
	}
}

// Terminal responses of the API server are not retried, and Stalled shows their message until a reconcile succeeds.
func TestInvalidRequestIsTerminal(t *testing.T) {
	err := fmt.Errorf("applying Deployment ns/w: %w", invalidErr)
	f := newFixture(t, logicWithError(&err), newWidget())
	_, got := f.reconcile()
	if !errors.Is(got, reconcile.TerminalError(nil)) {
		t.Errorf("got error %v, want a terminal error", got)
	}
	c, _ := conditions.Get(f.get().Status.Conditions, conditions.Stalled)
	if c.Status != metav1.ConditionTrue || c.Reason != "RequestInvalid" || !strings.Contains(c.Message, `"My Account"`) || c.ObservedGeneration != 1 {
		t.Errorf("got condition %+v, want reason RequestInvalid with the message of the API server", c)
	}
	if events := f.events(); len(events) != 2 || !strings.Contains(strings.Join(events, "\n"), "Warning RequestInvalid Stalled is True") {
		t.Errorf("got events %q, want two, one of them for Stalled", events)
	}
	writes := len(f.writes)
	if _, got = f.reconcile(); !errors.Is(got, reconcile.TerminalError(nil)) || len(f.writes) != writes {
		t.Errorf("second reconcile: got error %v and writes %q, want a terminal error and no writes", got, f.writes[writes:])
	}
	err = nil
	f.mustReconcile()
	if _, found := conditions.Get(f.get().Status.Conditions, conditions.Stalled); found {
		t.Error("the condition Stalled was not removed")
	}
}

// Reconciled is set for an error that no other condition reports, but not for conflicts, waits, terminating namespaces, and objects whose
// deletion has not timed out.
func TestUnreportedErrorSetsReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		reported string // message of a condition of the component
		want     bool
	}{
		"no condition":                          {quotaErr, "", true},
		"a condition reports it":                {quotaErr, "unexpected: " + quotaErr.Error(), false},
		"one of two joined errors is reported":  {errors.Join(quotaErr, internalErr), quotaErr.Error(), true},
		"conflict":                              {apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "w", errors.New("changed")), "", false},
		"wait":                                  {&Wait{For: "pods"}, "", false},
		"terminal error":                        {reconcile.TerminalError(errors.New("no such class")), "", true},
		"terminating namespace":                 {namespaceTerminatingErr, "", false},
		"terminating namespace and wait":        {errors.Join(namespaceTerminatingErr, &Wait{For: "pods"}), "", false},
		"terminating object":                    {&apply.TerminatingError{Kind: "Service"}, "", false},
		"terminating object timed out":          {&apply.TerminatingError{Kind: "Service", TimedOut: true}, "", true},
		"reported terminating object timed out": {&apply.TerminatingError{Kind: "Service", TimedOut: true}, "waiting: " + (&apply.TerminatingError{Kind: "Service"}).Error(), false},
		"foreign object":                        {&apply.Error{Err: &apply.ForeignError{Kind: "Service"}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			logic := logicWithError(&err)
			logic.Summary = func(w *widget) {
				if tc.reported != "" {
					conditions.Set(w.ConditionsRef(), available, metav1.ConditionFalse, "Down", tc.reported, 1)
				}
			}
			logic.Phases = append([]Phase[*widget]{phase("setting condition", func(w *widget) error { logic.Summary(w); return nil })}, logic.Phases...)
			f := newFixture(t, logic, newWidget())
			for range 2 {
				_, _ = f.reconcile() // other tests check the result
				c, found := conditions.Get(f.get().Status.Conditions, ConditionReconciled)
				if found != tc.want || found && (c.Status != metav1.ConditionFalse || c.Reason != "ReconcileError") {
					t.Errorf("got condition Reconciled %t, %+v, want %t", found, c, tc.want)
				}
			}
			err = nil
			f.mustReconcile()
			if _, found := conditions.Get(f.get().Status.Conditions, ConditionReconciled); found {
				t.Error("the condition Reconciled was not removed after a successful reconcile")
			}
		})
	}
}

// Clients that use kstatus wait for an unavailable object.
func TestUnavailableIsReconciling(t *testing.T) {
	var err error
	ready := metav1.ConditionFalse
	logic := logicWithError(&err)
	logic.Summary = nil
	logic.Phases = append([]Phase[*widget]{phase("setting condition", func(w *widget) error {
		conditions.Set(w.ConditionsRef(), available, ready, "Down", "no pod is ready", 1)
		return nil
	})}, logic.Phases...)
	f := newFixture(t, logic, newWidget())
	for _, step := range []struct {
		err   error
		ready metav1.ConditionStatus
		want  bool
	}{
		{ready: metav1.ConditionFalse, want: true}, {ready: metav1.ConditionUnknown, want: true}, {ready: metav1.ConditionTrue},
		{ready: metav1.ConditionFalse, want: true}, {ready: metav1.ConditionFalse, err: invalidErr},
	} {
		err, ready = step.err, step.ready
		_, _ = f.reconcile() // other tests check the result
		c, found := conditions.Get(f.get().Status.Conditions, conditions.Reconciling)
		if found != step.want || found && (c.Status != metav1.ConditionTrue || c.Message != "no pod is ready") {
			t.Errorf("%+v: got condition Reconciling %t, %+v", step, found, c)
		}
	}
}

// If Finalize fails, the condition Reconciled reports its error.
func TestFailedFinalizerIsReported(t *testing.T) {
	logic := measuringLogic()
	logic.Finalizer = finalizer
	logic.Finalize = func(context.Context, *widget) error { return quotaErr }
	f := newFixture(t, logic, newWidget(func(w *widget) { w.Finalizers = []string{finalizer} }))
	f.delete()
	if _, err := f.reconcile(); err == nil {
		t.Error("got no error, want that of the finalizer")
	}
	if c, _ := conditions.Get(f.get().Status.Conditions, ConditionReconciled); !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("got condition %+v, want the error of the finalizer", c)
	}
}

// A create request that fails because its namespace is terminating is retried after a minute, without an error.
func TestTerminatingNamespaceIsRequeued(t *testing.T) {
	err := fmt.Errorf("applying Service ns/w: %w", namespaceTerminatingErr)
	f := newFixture(t, logicWithError(&err), newWidget())
	if result, err := f.reconcile(); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got result %+v, error %v, want a requeue after a minute", result, err)
	}
}

// ClassifyErrors handles errors in the same way as the reconcilers that New returns.
func TestClassifyErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		terminal bool
		after    time.Duration
		failed   bool
	}{
		"no error":              {nil, false, time.Second, false},
		"invalid spec":          {invalidErr, true, 0, true},
		"terminating namespace": {namespaceTerminatingErr, false, time.Minute, false},
		"internal error":        {internalErr, false, 0, true},
	} {
		r := ClassifyErrors(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			if tc.err != nil {
				return ctrl.Result{}, tc.err
			}
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}))
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if (err != nil) != tc.failed || errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal || result.RequeueAfter != tc.after {
			t.Errorf("%s: got result %+v, error %v", name, result, err)
		}
	}
}

// OnDeleted is called for an object that is deleted during its first reconcile: the phases may have stored state.
func TestOnDeletedRunsForObjectDeletedDuringFirstReconcile(t *testing.T) {
	logic := measuringLogic()
	f := newFixture(t, logic, newWidget())
	f.failWrite = func(string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, key.Name)
	}
	if _, err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	f.failWrite = nil
	f.delete()
	f.mustReconcile()
	if len(f.deleted) != 1 || f.deleted[0] != types.UID("uid-1") {
		t.Errorf("got OnDeleted calls %q, want one for uid-1", f.deleted)
	}
}

// An object is stale for maxCacheLag only: after a restore of etcd, all resourceVersions are lower than that of the last update.
func TestStaleCacheTimesOut(t *testing.T) {
	clk := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	writes := NewStatusWrites(clk, 0)
	obj, written := newWidget(func(w *widget) { w.ResourceVersion = "901" }), newWidget(func(w *widget) { w.ResourceVersion = "1000" })
	writes.Record(t.Context(), nil, written, written)
	for _, after := range []time.Duration{0, 9 * time.Second} {
		clk.SetTime(time.Unix(1000, 0).Add(after))
		if !writes.IsStale(obj) {
			t.Errorf("after %s the object is not stale", after)
		}
	}
	clk.SetTime(time.Unix(1010, 0))
	if writes.IsStale(obj) {
		t.Error("the object is still stale after 10s")
	}
}

// An invalid value of the paused annotation is reported, and the object is reconciled.
func TestInvalidPauseAnnotation(t *testing.T) {
	f := newFixture(t, measuringLogic(), newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "please"} }))
	f.mustReconcile()
	w := f.get()
	c, _ := conditions.Get(w.Status.Conditions, ConditionPaused)
	if c.Status != metav1.ConditionFalse || c.Reason != "AnnotationInvalid" || !strings.Contains(c.Message, `"please"`) {
		t.Errorf("got condition %+v", c)
	}
	if !conditions.IsTrue(w.Status.Conditions, available) {
		t.Error("the object was not reconciled")
	}
	f.change(func(w *widget) { w.Annotations[names.PausedAnnotation] = "Yes" })
	f.mustReconcile()
	if !conditions.IsTrue(f.get().Status.Conditions, ConditionPaused) {
		t.Error("the object is not paused by the value Yes")
	}
}

// The base reconciler and ClassifyErrors requeue for terminating and foreign objects. If another failure is joined, they return the joined
// error.
func TestBlockingObjectsAreRequeued(t *testing.T) {
	terminating, timedOut, foreign := &apply.TerminatingError{}, &apply.TerminatingError{TimedOut: true}, &apply.ForeignError{}
	for name, tc := range map[string]struct {
		err   error
		after time.Duration // 0 if an error is returned
	}{
		"terminating":                         {terminating, time.Second},
		"deletion timed out":                  {timedOut, time.Minute},
		"foreign":                             {foreign, time.Minute},
		"two, joined and wrapped":             {fmt.Errorf("x: %w", fmt.Errorf("%w; more", errors.Join(&apply.Error{Err: timedOut}, &apply.Error{Err: foreign}))), time.Minute},
		"joined with a shorter wait":          {errors.Join(foreign, &Wait{For: "pods", Retry: time.Second}), time.Second},
		"joined with an internal error":       {errors.Join(timedOut, internalErr), 0},
		"joined with a terminating namespace": {errors.Join(timedOut, namespaceTerminatingErr), time.Minute},
		"joined with an invalid request":      {errors.Join(timedOut, invalidErr), 0},
	} {
		err := tc.err
		f := newFixture(t, logicWithError(&err), newWidget())
		base, baseErr := f.reconcile()
		classified, classifiedErr := ClassifyErrors(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, err
		})).Reconcile(t.Context(), ctrl.Request{})
		if base.RequeueAfter != tc.after || classified.RequeueAfter != tc.after || (baseErr == nil) != (tc.after > 0) || (classifiedErr == nil) != (tc.after > 0) {
			t.Errorf("%s: got requeue %s, error %v from the base reconciler, and %s, %v from ClassifyErrors", name, base.RequeueAfter, baseErr, classified.RequeueAfter, classifiedErr)
		}
	}
}

func TestSooner(t *testing.T) {
	for _, c := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}, {1, 1, 1}} {
		if got := Sooner(c.a, c.b); got != c.want {
			t.Errorf("Sooner(%d, %d) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
