package mlflow

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const waiting = "Waiting for MLflowOperator to become ready before reconciling MLflow custom resources"

func operatorWith(changes ...func(*platformv1alpha1.MLflowOperator)) *platformv1alpha1.MLflowOperator {
	m := &platformv1alpha1.MLflowOperator{ObjectMeta: metav1.ObjectMeta{Name: "default-mlflowoperator", Generation: 3}}
	m.Spec.GatewayName, m.Spec.SectionTitle = "platform-gateway", "Platform"
	m.Status.ObservedGeneration = 3
	m.Status.Conditions = []platformv1alpha1.Condition{
		{Type: "Provisioned", Status: metav1.ConditionFalse, Reason: "Whatever"},
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 3},
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

func withReady(status metav1.ConditionStatus, reason, message string) func(*platformv1alpha1.MLflowOperator) {
	return func(m *platformv1alpha1.MLflowOperator) {
		m.Status.Conditions[1] = platformv1alpha1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message}
	}
}

func terminatingOperator(m *platformv1alpha1.MLflowOperator) {
	m.DeletionTimestamp, m.Finalizers, m.Generation = new(metav1.Now()), []string{platformv1alpha1.MLflowOperatorFinalizer}, 4
}

func withObservedGeneration(generation int64) func(*platformv1alpha1.MLflowOperator) {
	return func(m *platformv1alpha1.MLflowOperator) { m.Status.ObservedGeneration = generation }
}

// [mlflow-65] The gate is open only if the MLflowOperator is ready or terminating. A closed gate has the reason of its Ready condition, unless
// the status is stale.
func TestGateStateOf(t *testing.T) {
	closed := func(reason, message string) gateState {
		return gateState{ready: metav1.ConditionFalse, reason: reason, message: message}
	}
	const blocked = "cannot delete MLflowOperator while 1 MLflow instance(s) still exist: delete them first"
	for name, c := range map[string]struct {
		operator *platformv1alpha1.MLflowOperator
		want     gateState
	}{
		"missing": {nil, closed("MLflowOperatorMissing", waiting+": MLflowOperator default-mlflowoperator does not exist; create it")},
		"ready": {operatorWith(), gateState{open: true, ready: metav1.ConditionTrue, reason: "Ready",
			message: "MLflowOperator is ready to manage MLflow custom resources"}},
		"stale":                   {operatorWith(withObservedGeneration(2)), closed("MLflowOperatorStatusStale", waiting+": its status.observedGeneration is 2, but its generation is 3: check the log of the manager")},
		"stale and not ready":     {operatorWith(withObservedGeneration(2), withReady("False", "ConfigPending", "x")), closed("MLflowOperatorStatusStale", waiting+": its status.observedGeneration is 2, but its generation is 3: check the log of the manager")},
		"generation not reported": {operatorWith(withObservedGeneration(0)), gateState{open: true, ready: metav1.ConditionTrue, reason: "Ready", message: "MLflowOperator is ready to manage MLflow custom resources"}},
		"no condition": {operatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Status.Conditions = m.Status.Conditions[:1] }),
			closed("MLflowOperatorNotReady", waiting)},
		"no status":                  {operatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Status = platformv1alpha1.MLflowOperatorStatus{} }), closed("MLflowOperatorNotReady", waiting)},
		"pending":                    {operatorWith(withReady("False", "ConfigPending", "spec.gatewayName")), closed("ConfigPending", waiting+": spec.gatewayName")},
		"unknown":                    {operatorWith(withReady("Unknown", "Asking", "")), closed("Asking", waiting)},
		"no reason":                  {operatorWith(withReady("False", "", "soon")), closed("MLflowOperatorNotReady", waiting+": soon")},
		"being deleted":              {operatorWith(terminatingOperator), gateState{open: true}},
		"deletion is blocked":        {operatorWith(terminatingOperator, withObservedGeneration(4), withReady("False", "MLflowInstancesPresent", blocked)), gateState{open: true, ready: metav1.ConditionFalse, reason: "MLflowInstancesPresent", message: blocked}},
		"being deleted, not ready":   {operatorWith(terminatingOperator, withObservedGeneration(4), withReady("False", "ConfigPending", "x")), closed("ConfigPending", waiting+": x")},
		"blocked, not being deleted": {operatorWith(withReady("False", "MLflowInstancesPresent", blocked)), closed("MLflowInstancesPresent", waiting+": "+blocked)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, gateStateOf(c.operator), cmp.AllowUnexported(gateState{})); diff != "" {
				t.Errorf("gateState differs (-want +got):\n%s", diff)
			}
		})
	}
}

var gateSettings = resources.Inputs{GatewayName: "env-gateway", SectionTitle: "Env", ExternalURL: "https://env.example.com"}

// newGate returns the gate with the component platform enabled and a cache of the given objects.
func newGate(t *testing.T, served capability.Set, objects ...client.Object) *platformGate {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(mlflowv1.AddToScheme(scheme), platformv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &platformGate{settings: Settings{Inputs: gateSettings, Platform: true}, cached: cached, served: func() capability.Set { return served }}
}

var servedCapabilities = capability.NewSet(mlflowOperatorKind)

// [mlflow-65] A closed gate sets three conditions and returns a Wait; an open one sets at most one. While the deletion of the
// MLflowOperator is blocked, Available is not changed [D32].
func TestPlatformGateWait(t *testing.T) {
	const before = "Available=True DeploymentReady: up"
	for name, c := range map[string]struct {
		gate *platformGate
		want []string
		open bool
	}{
		"ready": {newGate(t, servedCapabilities, operatorWith()),
			[]string{before, "MLflowOperatorReady=True Ready: MLflowOperator is ready to manage MLflow custom resources"}, true},
		"pending": {newGate(t, servedCapabilities, operatorWith(withReady("False", "ConfigPending", "m"))), []string{
			"Available=False ConfigPending: " + waiting + ": m", "MLflowOperatorReady=False ConfigPending: " + waiting + ": m",
			"Progressing=True ConfigPending: " + waiting + ": m"}, false},
		"missing": {newGate(t, servedCapabilities), []string{
			"Available=False MLflowOperatorMissing: " + waiting + ": MLflowOperator default-mlflowoperator does not exist; create it",
			"MLflowOperatorReady=False MLflowOperatorMissing: " + waiting + ": MLflowOperator default-mlflowoperator does not exist; create it",
			"Progressing=True MLflowOperatorMissing: " + waiting + ": MLflowOperator default-mlflowoperator does not exist; create it"}, false},
		"API missing": {newGate(t, capability.NewSet(), operatorWith()), []string{
			"Available=False MLflowOperatorMissing: " + waiting + ": the cluster does not serve MLflowOperator.components.platform.opendatahub.io; install its CustomResourceDefinition",
			"MLflowOperatorReady=False MLflowOperatorMissing: " + waiting + ": the cluster does not serve MLflowOperator.components.platform.opendatahub.io; install its CustomResourceDefinition",
			"Progressing=True MLflowOperatorMissing: " + waiting + ": the cluster does not serve MLflowOperator.components.platform.opendatahub.io; install its CustomResourceDefinition"}, false},
		"deletion is blocked": {newGate(t, servedCapabilities, operatorWith(terminatingOperator, withReady("False", "MLflowInstancesPresent", "m"))),
			[]string{before, "MLflowOperatorReady=False MLflowInstancesPresent: m"}, true},
		"being deleted": {newGate(t, servedCapabilities, operatorWith(terminatingOperator)), []string{before}, true},
		"disabled":      {&platformGate{}, []string{before}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow", Generation: 5}}
			setCondition(m, "Available", metav1.ConditionTrue, "DeploymentReady", "up")
			if name == "disabled" {
				setCondition(m, ConditionMLflowOperator, metav1.ConditionTrue, "Ready", "previous")
			}
			err := c.gate.wait(t.Context(), m)
			wait, waits := errors.AsType[*reconciler.Wait](err)
			if open := err == nil; open != c.open || !open && (!waits || wait.Retry != 0) {
				t.Errorf("open %t, want %t; want a Wait without Retry, got %v", open, c.open, err)
			}
			got := stateOf(m)
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			if got, ok := conditions.Get(m.Status.Conditions, ConditionMLflowOperator); ok && got.ObservedGeneration != 5 {
				t.Errorf("%s describes generation %d", ConditionMLflowOperator, got.ObservedGeneration)
			}
		})
	}
}

func TestGateReturnsReadError(t *testing.T) {
	gate := newGate(t, servedCapabilities)
	gate.cached = interceptor.NewClient(gate.cached.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
	m := &mlflowv1.MLflow{}
	if err := gate.wait(t.Context(), m); err == nil || len(m.Status.Conditions) > 0 {
		t.Errorf("error %v, conditions %v: want an error and no condition", err, m.Status.Conditions)
	}
}

// [mlflow-66] Fields of the MLflowOperator override the settings only while the component platform is enabled.
func TestGateInputs(t *testing.T) {
	domain := func(text string) func(*platformv1alpha1.MLflowOperator) {
		return func(m *platformv1alpha1.MLflowOperator) { m.Spec.Gateway = &platformv1alpha1.GatewaySpec{Domain: text} }
	}
	for name, c := range map[string]struct {
		gate                *platformGate
		gateway, title, url string
	}{
		"enabled":       {newGate(t, servedCapabilities, operatorWith(domain("apps.example.com"))), "platform-gateway", "Platform", "https://apps.example.com"},
		"no domain":     {newGate(t, servedCapabilities, operatorWith()), "platform-gateway", "Platform", "https://env.example.com"},
		"blank gateway": {newGate(t, servedCapabilities, operatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Spec.GatewayName = " " })), "env-gateway", "Platform", "https://env.example.com"},
		"empty spec":    {newGate(t, servedCapabilities, operatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Spec = platformv1alpha1.MLflowOperatorSpec{} }, domain(" / "))), "env-gateway", "Env", "https://env.example.com"},
		"missing":       {newGate(t, servedCapabilities), "env-gateway", "Env", "https://env.example.com"},
		"not served":    {newGate(t, capability.NewSet(), operatorWith(domain("apps.example.com"))), "env-gateway", "Env", "https://env.example.com"},
		"disabled": {&platformGate{settings: Settings{Inputs: gateSettings}, cached: newGate(t, servedCapabilities, operatorWith(domain("apps.example.com"))).cached,
			served: func() capability.Set { return servedCapabilities }}, "env-gateway", "Env", "https://env.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = c.gate.wait(t.Context(), &mlflowv1.MLflow{}) // the result does not matter here
			in := c.gate.inputs()
			if in.GatewayName != c.gateway || in.SectionTitle != c.title || in.ExternalURL != c.url {
				t.Errorf("got gateway %q, title %q, URL %q", in.GatewayName, in.SectionTitle, in.ExternalURL)
			}
		})
	}
}

// [mlflow-67] gatewayURL returns the domain with a scheme and without a trailing slash.
func TestGatewayURL(t *testing.T) {
	for domain, want := range map[string]string{
		"": "", "  ": "", "/": "",
		"apps.example.com":            "https://apps.example.com",
		" apps.example.com/ ":         "https://apps.example.com",
		"apps.example.com///":         "https://apps.example.com",
		"https://apps.example.com/":   "https://apps.example.com",
		"http://apps.example.com":     "http://apps.example.com",
		"apps.example.com:8443/base/": "https://apps.example.com:8443/base",
	} {
		if got := gatewayURL(domain); got != want {
			t.Errorf("gatewayURL(%q) = %q, want %q", domain, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		normalized := gatewayURL(rapid.String().Draw(t, "domain"))
		if normalizedAgain := gatewayURL(normalized); normalizedAgain != normalized {
			t.Fatalf("gatewayURL is not idempotent: %q becomes %q", normalized, normalizedAgain)
		}
	})
}

// [mlflow-68] Only the MLflowOperator default-mlflowoperator triggers a reconcile of MLflow objects.
func TestWatchIgnoresOtherMLflowOperators(t *testing.T) {
	other := operatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Name = "another" })
	for object, want := range map[*platformv1alpha1.MLflowOperator]bool{operatorWith(): true, other: false} {
		if got := isDefaultMLflowOperator().Create(event.CreateEvent{Object: object}); got != want {
			t.Errorf("creation of %s triggers a reconcile: %t", object.Name, got)
		}
		if got := isDefaultMLflowOperator().Delete(event.DeleteEvent{Object: object}); got != want {
			t.Errorf("deletion of %s triggers a reconcile: %t", object.Name, got)
		}
		if got := isDefaultMLflowOperator().Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object}); got != want {
			t.Errorf("update of %s triggers a reconcile: %t", object.Name, got)
		}
	}
}
