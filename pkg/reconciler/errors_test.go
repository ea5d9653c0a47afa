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
	invalid = apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "w", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template", "spec", "serviceAccountName"), "My Account", "a lowercase RFC 1123 subdomain"),
	})
	badRequest  = apierrors.NewBadRequest("strict decoding error: unknown field")
	quota       = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "w", errors.New("exceeded quota"))
	broken      = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	terminating = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "namespace ns is being terminated",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
	}}
	policy = &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "deployments.apps \"w\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
	}}
	patchTest = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing path failed", 0, false)
)

func TestIsTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                    {nil, false},
		"invalid":                     {invalid, true},
		"bad request":                 {badRequest, true},
		"wrapped":                     {fmt.Errorf("applying: %w", invalid), true},
		"several":                     {errors.Join(invalid, fmt.Errorf("and %w", badRequest)), true},
		"joined with a context error": {errors.Join(invalid, broken), false},
		"quota":                       {quota, false},
		"a policy":                    {policy, false},
		"a webhook": {apierrors.NewBadRequest(
			`admission webhook "validation.gatekeeper.sh" denied the request: no`), false},
		"failed test of a JSON patch": {patchTest, false},
		"something else":              {errors.New("boom"), false},
	} {
		if got := IsTerminal(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// failing returns a Logic whose only phase returns *err.
func failing(err *error) Logic[*widget] {
	return Logic[*widget]{
		Phases:  []Phase[*widget]{phase("applying objects", func(*widget) error { return *err })},
		Summary: func(w *widget) { set(w, available, metav1.ConditionTrue, "Up") },
	}
}

// Terminal responses of the API server are not retried, and the status shows their message until it is outdated.
func TestInvalidRequestIsTerminal(t *testing.T) {
	err := fmt.Errorf("applying Deployment ns/w: %w", invalid)
	b := newBench(t, failing(&err), newWidget())
	_, got := b.reconcile()
	if !errors.Is(got, reconcile.TerminalError(nil)) {
		t.Errorf("the error is tried again: %v", got)
	}
	c, _ := conditions.Get(b.get().Status.Conditions, conditions.Stalled)
	if c.Status != metav1.ConditionTrue || c.Reason != "RequestInvalid" || !strings.Contains(c.Message, `"My Account"`) || c.ObservedGeneration != 1 {
		t.Errorf("condition %+v", c)
	}
	if events := b.events(); len(events) != 2 || !strings.Contains(strings.Join(events, "\n"), "Warning RequestInvalid Stalled is True") {
		t.Errorf("events %q", events)
	}
	writes := len(b.writes)
	if _, got = b.reconcile(); !errors.Is(got, reconcile.TerminalError(nil)) || len(b.writes) != writes {
		t.Errorf("the second pass: %v, writes %q", got, b.writes[writes:])
	}
	err = nil
	b.must()
	if _, found := conditions.Get(b.get().Status.Conditions, conditions.Stalled); found {
		t.Error("the condition Stalled was not removed")
	}
}

// Reconciled is set for an error only if no other condition reports it.
func TestEveryErrorIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		reported string // message of a condition of the component
		want     bool
	}{
		"no condition":            {quota, "", true},
		"a condition reports it":  {quota, "unexpected: " + quota.Error(), false},
		"one of two":              {errors.Join(quota, broken), quota.Error(), true},
		"the object moved":        {apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "w", errors.New("changed")), "", false},
		"a wait":                  {&Wait{For: "pods"}, "", false},
		"an error for the user":   {reconcile.TerminalError(errors.New("no such class")), "", true},
		"a namespace that ends":   {terminating, "", false},
		"both of two are awaited": {errors.Join(terminating, &Wait{For: "pods"}), "", false},
		"terminating object":      {&apply.TerminatingError{Kind: "Service"}, "", false},
		"one that does not":       {&apply.TerminatingError{Kind: "Service", TimedOut: true}, "", true},
		"one that is reported":    {&apply.TerminatingError{Kind: "Service", TimedOut: true}, "oh: " + (&apply.TerminatingError{Kind: "Service"}).Error(), false},
		"foreign object":          {&apply.Error{Err: &apply.ForeignError{Kind: "Service"}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			logic := failing(&err)
			logic.Summary = func(w *widget) {
				if tc.reported != "" {
					conditions.Set(w.ConditionsRef(), available, metav1.ConditionFalse, "Down", tc.reported, 1)
				}
			}
			logic.Phases = append([]Phase[*widget]{phase("telling", func(w *widget) error { logic.Summary(w); return nil })}, logic.Phases...)
			b := newBench(t, logic, newWidget())
			for range 2 {
				_, _ = b.reconcile() // other tests check the result
				c, found := conditions.Get(b.get().Status.Conditions, ConditionReconciled)
				if found != tc.want || found && (c.Status != metav1.ConditionFalse || c.Reason != "ReconcileError") {
					t.Errorf("there %t, %+v", found, c)
				}
			}
			err = nil
			b.must()
			if _, found := conditions.Get(b.get().Status.Conditions, ConditionReconciled); found {
				t.Error("the condition Reconciled was not removed after a successful reconcile")
			}
		})
	}
}

// Clients of kstatus wait for an object that is not available.
func TestUnavailableIsReconciling(t *testing.T) {
	var err error
	ready := metav1.ConditionFalse
	logic := failing(&err)
	logic.Summary = nil
	logic.Phases = append([]Phase[*widget]{phase("judging", func(w *widget) error {
		conditions.Set(w.ConditionsRef(), available, ready, "Down", "no pod answers", 1)
		return nil
	})}, logic.Phases...)
	b := newBench(t, logic, newWidget())
	for _, step := range []struct {
		err   error
		ready metav1.ConditionStatus
		want  bool
	}{
		{ready: metav1.ConditionFalse, want: true}, {ready: metav1.ConditionUnknown, want: true}, {ready: metav1.ConditionTrue},
		{ready: metav1.ConditionFalse, want: true}, {ready: metav1.ConditionFalse, err: invalid},
	} {
		err, ready = step.err, step.ready
		_, _ = b.reconcile() // other tests check the result
		c, found := conditions.Get(b.get().Status.Conditions, conditions.Reconciling)
		if found != step.want || found && (c.Status != metav1.ConditionTrue || c.Message != "no pod answers") {
			t.Errorf("%+v: there %t, %+v", step, found, c)
		}
	}
}

// A failed finalizer reports why the object remains.
func TestFailedFinalizerIsReported(t *testing.T) {
	logic := sized()
	logic.Finalizer = finalizer
	logic.Finalize = func(context.Context, *widget) error { return quota }
	b := newBench(t, logic, newWidget(func(w *widget) { w.Finalizers = []string{finalizer} }))
	b.delete()
	if _, err := b.reconcile(); err == nil {
		t.Error("want the error returned")
	}
	if c, _ := conditions.Get(b.get().Status.Conditions, ConditionReconciled); !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("condition %+v", c)
	}
}

// Create requests in a terminating namespace fail without an error, and are retried after a minute.
func TestTerminatingNamespaceIsWaitedFor(t *testing.T) {
	err := fmt.Errorf("applying Service ns/w: %w", terminating)
	b := newBench(t, failing(&err), newWidget())
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("result %+v, error %v", result, err)
	}
}

// Reconcilers that were not created by New classify errors alike.
func TestClassifyErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		terminal bool
		after    time.Duration
		failed   bool
	}{
		"nothing":               {nil, false, time.Second, false},
		"a refusal of the spec": {invalid, true, 0, true},
		"a namespace that ends": {terminating, false, time.Minute, false},
		"trouble":               {broken, false, 0, true},
	} {
		r := ClassifyErrors(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			if tc.err != nil {
				return ctrl.Result{}, tc.err
			}
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}))
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if (err != nil) != tc.failed || errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal || result.RequeueAfter != tc.after {
			t.Errorf("%s: result %+v, error %v", name, result, err)
		}
	}
}

// State that phases store for an object is released when it is deleted during its first reconcile.
func TestObjectDeletedDuringFirstReconcileIsReleased(t *testing.T) {
	logic := sized()
	b := newBench(t, logic, newWidget())
	b.failing = func(string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, key.Name)
	}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	b.failing = nil
	b.delete()
	b.must()
	if len(b.gone) != 1 || b.gone[0] != types.UID("uid-1") {
		t.Errorf("forgotten: %q", b.gone)
	}
}

// After a restore of etcd, resourceVersions are lower than the written one.
func TestStaleCacheTimesOut(t *testing.T) {
	clk := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	writes := NewStatusWrites(clk, 0)
	obj, written := newWidget(func(w *widget) { w.ResourceVersion = "901" }), newWidget(func(w *widget) { w.ResourceVersion = "1000" })
	writes.Record(t.Context(), nil, written, written)
	for _, after := range []time.Duration{0, 9 * time.Second} {
		clk.SetTime(time.Unix(1000, 0).Add(after))
		if !writes.IsStale(obj) {
			t.Errorf("after %s it is not behind", after)
		}
	}
	clk.SetTime(time.Unix(1010, 0))
	if writes.IsStale(obj) {
		t.Error("the object still counts as stale after 10 s")
	}
}

// An invalid value of the annotation is reported and does not pause.
func TestInvalidPauseAnnotation(t *testing.T) {
	b := newBench(t, sized(), newWidget(func(w *widget) { w.Annotations = map[string]string{names.PausedAnnotation: "please"} }))
	b.must()
	w := b.get()
	c, _ := conditions.Get(w.Status.Conditions, ConditionPaused)
	if c.Status != metav1.ConditionFalse || c.Reason != "AnnotationInvalid" || !strings.Contains(c.Message, `"please"`) {
		t.Errorf("condition %+v", c)
	}
	if !conditions.IsTrue(w.Status.Conditions, available) {
		t.Error("want the object reconciled")
	}
	b.change(func(w *widget) { w.Annotations[names.PausedAnnotation] = "Yes" })
	b.must()
	if !conditions.IsTrue(b.get().Status.Conditions, ConditionPaused) {
		t.Error("want the value Yes to pause the object")
	}
}

// Both kinds of reconcilers wait for blocking objects, and report a failure that is joined with the wait.
func TestBlockingObjectsAreWaitedFor(t *testing.T) {
	going, stuck, foreign := &apply.TerminatingError{}, &apply.TerminatingError{TimedOut: true}, &apply.ForeignError{}
	for name, tc := range map[string]struct {
		err   error
		after time.Duration // 0 for an error
	}{
		"terminating":                         {going, time.Second},
		"deletion is stuck":                   {stuck, time.Minute},
		"foreign":                             {foreign, time.Minute},
		"joined errors":                       {fmt.Errorf("x: %w", fmt.Errorf("%w; more", errors.Join(&apply.Error{Err: stuck}, &apply.Error{Err: foreign}))), time.Minute},
		"joined with a shorter wait":          {errors.Join(foreign, &Wait{For: "pods", Retry: time.Second}), time.Second},
		"joined with a failure":               {errors.Join(stuck, broken), 0},
		"joined with a terminating namespace": {errors.Join(stuck, terminating), time.Minute},
		"a refusal of the object":             {errors.Join(stuck, invalid), 0},
	} {
		err := tc.err
		b := newBench(t, failing(&err), newWidget())
		shell, shellErr := b.reconcile()
		plain, plainErr := ClassifyErrors(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, err
		})).Reconcile(t.Context(), ctrl.Request{})
		if shell.RequeueAfter != tc.after || plain.RequeueAfter != tc.after || (shellErr == nil) != (tc.after > 0) || (plainErr == nil) != (tc.after > 0) {
			t.Errorf("%s: got requeue %s, error %v from the base reconciler, and %s, %v from ClassifyErrors", name, shell.RequeueAfter, shellErr, plain.RequeueAfter, plainErr)
		}
	}
}
