package mlflow

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// routeCondition returns a condition of a route status.
func routeCondition(conditionType string, status metav1.ConditionStatus, generation int64) map[string]any {
	return map[string]any{
		"type": conditionType, "status": string(status), "reason": "NotAllowedByListeners", "message": "no matching listener",
		"observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
}

func parent(name, namespace string, conditions ...any) map[string]any {
	ref := map[string]any{"name": name}
	if namespace != "" {
		ref["namespace"] = namespace
	}
	return map[string]any{"parentRef": ref, "controllerName": "example.com/gateway", "conditions": conditions}
}

// reconcileRoute returns an MLflow after a reconcile of its addresses with the given status of its HTTPRoute.
func reconcileRoute(t *testing.T, in resources.Inputs, status any) *mlflowv1.MLflow {
	t.Helper()
	route := framework.Unstructured(capability.HTTPRoute, in.Namespace, "mlflow")
	route.SetGeneration(2)
	route.SetCreationTimestamp(metav1.NewTime(midday.Add(-20 * time.Second)))
	if status != nil {
		route.Object["status"] = status
	}
	r := &mlflowReconciler{Reconciler: reconcilerWithRoutes(route), inputs: func() resources.Inputs { return in }}
	m := mlflowtest.MLflow()
	if err := r.publishAddresses(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Status.URL = resources.ExternalURL(m, in)
	err := r.checkRoutes(t.Context(), m, in, resources.NewPlan(m, in).Exposure, false)
	if _, waits := reconciler.AsWait(err); err != nil && !waits {
		t.Fatal(err)
	}
	return m
}

// reconcilerWithRoutes returns a Reconciler that reads routes from a fake cache.
func reconcilerWithRoutes(routes ...client.Object) *servers.Reconciler {
	return &servers.Reconciler{
		FullObjects: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(routes...).Build(), Clock: clocktesting.NewFakePassiveClock(midday),
	}
}

func TestRejectedRoute(t *testing.T) {
	no, yes := metav1.ConditionFalse, metav1.ConditionTrue
	// gatewayStatus returns a route status with the configured Gateway as parent.
	gatewayStatus := func(conditions ...any) any {
		return map[string]any{"parents": []any{parent("data-science-gateway", "openshift-ingress", conditions...)}}
	}
	for name, c := range map[string]struct {
		status   any
		rejected bool
	}{
		"[D30] no status":                                      {nil, false},
		"[D30] no parent":                                      {map[string]any{"parents": []any{}}, false},
		"[D30] accepted":                                       {gatewayStatus(routeCondition("Accepted", yes, 2), routeCondition("ResolvedRefs", yes, 2)), false},
		"[D30] rejected":                                       {gatewayStatus(routeCondition("Accepted", no, 2)), true},
		"[D30] rejected, without generation":                   {gatewayStatus(routeCondition("Accepted", no, 0)), true},
		"[D30] references not resolved":                        {gatewayStatus(routeCondition("Accepted", yes, 2), routeCondition("ResolvedRefs", no, 2)), true},
		"[D30] rejected in a previous generation":              {gatewayStatus(routeCondition("Accepted", no, 1)), false},
		"[D30] Accepted unknown":                               {gatewayStatus(routeCondition("Accepted", metav1.ConditionUnknown, 2)), false},
		"[D30] other condition is False":                       {gatewayStatus(routeCondition("PartiallyInvalid", no, 2)), false},
		"[D30] rejected by another Gateway":                    {map[string]any{"parents": []any{parent("other", "openshift-ingress", routeCondition("Accepted", no, 2))}}, false},
		"[D30] Gateway of the same name in another namespace":  {map[string]any{"parents": []any{parent("data-science-gateway", "other", routeCondition("Accepted", no, 2))}}, false},
		"[D30] rejected by a Gateway in the route's namespace": {map[string]any{"parents": []any{parent("data-science-gateway", "", routeCondition("Accepted", no, 2))}}, false},
		"[D30] one of two parents rejects":                     {map[string]any{"parents": []any{parent("other", "x", routeCondition("Accepted", yes, 2)), parent("data-science-gateway", "openshift-ingress", routeCondition("Accepted", no, 2))}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := reconcileRoute(t, platformInputs["plain"], c.status)
			condition, found := conditions.Get(m.Status.Conditions, ConditionRoute)
			if found != c.rejected || (m.Status.URL == "") != c.rejected || m.Status.Address == nil {
				t.Fatalf("got condition %v, url %q, address %v", condition, m.Status.URL, m.Status.Address)
			}
			if !found {
				return
			}
			if condition.Status != no || condition.Reason != "NotAllowedByListeners" {
				t.Errorf("got condition %v, want False with the reason of the Gateway", condition)
			}
			for _, part := range []string{"Gateway openshift-ingress/data-science-gateway", "no matching listener", "namespace opendatahub"} {
				if !strings.Contains(condition.Message, part) {
					t.Errorf("%q lacks %q", condition.Message, part)
				}
			}
		})
	}
	t.Run("[D30] the namespace of the Gateway is configurable", func(t *testing.T) {
		in := platformInputs["plain"]
		in.GatewayNamespace = "gateways"
		refs, _, _ := unstructured.NestedSlice(mlflowtest.Object(renderObjects(t, mlflowtest.MLflow(), in), "HTTPRoute", "mlflow").Object, "spec", "parentRefs")
		if got := refs[0].(map[string]any)["namespace"]; got != "gateways" {
			t.Errorf("got namespace %v, want gateways", got)
		}
		m := reconcileRoute(t, in, map[string]any{"parents": []any{parent("data-science-gateway", "gateways", routeCondition("Accepted", no, 2))}})
		if m.Status.URL != "" {
			t.Errorf("got URL %s, want none, because the Gateway rejects the route", m.Status.URL)
		}
	})
	t.Run("without a configured Gateway no HTTPRoute is created, because a tenant could create the Gateway", func(t *testing.T) {
		in := platformInputs["plain"]
		in.GatewayNamespace = ""
		in = Settings{Inputs: in}.InputsFor(capability.NewSet(capability.HTTPRoute))
		if slices.ContainsFunc(renderObjects(t, mlflowtest.MLflow(), in), func(u *unstructured.Unstructured) bool { return u.GetKind() == "HTTPRoute" }) {
			t.Error("an HTTPRoute was rendered")
		}
		m := reconcileRoute(t, in, nil)
		condition, _ := conditions.Get(m.Status.Conditions, ConditionRoute)
		if m.Status.URL != "" || condition.Reason != ReasonGatewayNotNamed || !strings.Contains(condition.Message, "set MLFLOW_GATEWAY_NAMESPACE") {
			t.Errorf("got URL %q and condition %+v, want no URL and reason %s", m.Status.URL, condition, ReasonGatewayNotNamed)
		}
		in.ExternalURL = ""
		if conditions := reconcileRoute(t, in, nil).Status.Conditions; len(conditions) > 0 {
			t.Errorf("unexpected conditions without an external URL: %+v", conditions)
		}
		openShift := Settings{Inputs: in}.InputsFor(capability.NewSet(capability.HTTPRoute, capability.Route, capability.OpenShiftIngress))
		if openShift.GatewayNamespace != "openshift-ingress" || !openShift.ViaGateway() {
			t.Errorf("got %+v, want the Gateway of OpenShift", openShift)
		}
	})
	t.Run("[D30] a rejection without a reason", func(t *testing.T) {
		condition := routeCondition("Accepted", no, 2)
		delete(condition, "reason")
		got, _ := conditions.Get(reconcileRoute(t, platformInputs["plain"], gatewayStatus(condition)).Status.Conditions, ConditionRoute)
		if got.Reason != routestatus.ReasonNotAccepted {
			t.Errorf("got condition %v, want reason %s", got, routestatus.ReasonNotAccepted)
		}
	})
	t.Run("[D30] an invalid status is an error", func(t *testing.T) {
		route := framework.Unstructured(capability.HTTPRoute, "opendatahub", "mlflow")
		route.Object["status"] = map[string]any{"parents": "x"}
		r := &mlflowReconciler{Reconciler: reconcilerWithRoutes(route)}
		m := mlflowtest.MLflow()
		if err := r.checkRoutes(t.Context(), m, platformInputs["plain"], resources.NewPlan(m, platformInputs["plain"]).Exposure, false); err == nil || !strings.Contains(err.Error(), "HTTPRoute opendatahub/mlflow") {
			t.Errorf("got error %v, want one that names the HTTPRoute", err)
		}
	})
	t.Run("[mlflow-31] without the HTTPRoute API the condition is removed", func(t *testing.T) {
		m := mlflowtest.MLflow()
		setCondition(m, ConditionRoute, no, "Old", "old")
		r := &mlflowReconciler{Reconciler: reconcilerWithRoutes()}
		if err := r.checkRoutes(t.Context(), m, platformInputs["bare"], resources.NewPlan(m, platformInputs["bare"]).Exposure, false); err != nil || len(m.Status.Conditions) != 0 {
			t.Errorf("got conditions %v and error %v, want none", m.Status.Conditions, err)
		}
	})
}

// The URL of a rejected route stays empty if a reconcile ends before it reads the route.
func TestURLOfRejectedRouteStaysEmpty(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	route := framework.Unstructured(capability.HTTPRoute, "", "")
	if !w.get("mlflow", route) || getMLflow(t, w.server).Status.URL == "" {
		t.Fatal("the server is not published")
	}
	rejected := []any{parent("data-science-gateway", "openshift-ingress", routeCondition("Accepted", metav1.ConditionFalse, route.GetGeneration()))}
	if err := unstructured.SetNestedSlice(route.Object, rejected, "status", "parents"); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	expectNoURL := func(state string) {
		t.Helper()
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
		if s := getMLflow(t, w.server).Status; s.URL != "" || s.Address == nil {
			t.Errorf("%s: got URL %q, address %v, want no URL", state, s.URL, s.Address)
		}
	}
	expectNoURL("rejected")
	w.edit(func(s *mlflowv1.MLflowSpec) { s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "missing"} })
	expectNoURL("rejected, without the CA bundle")
	if c := w.condition(ConditionAvailable); c.Reason != ReasonCABundleConfigMap {
		t.Errorf("Available=%s %s: %s", c.Status, c.Reason, c.Message)
	}
}

func TestCredentialsInSpec(t *testing.T) {
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.BackendStoreURI, s.RegistryStoreURI = "postgresql://a:hidden@db/x", "mysql://b:hidden@db/x"
	})
	reportCredentials(m)
	got, found := conditions.Get(m.Status.Conditions, ConditionCredentials)
	if !found || got.Status != metav1.ConditionTrue || got.Reason != ReasonPasswordInURI || strings.Contains(got.Message, "hidden") {
		t.Errorf("[D28] condition %v", got)
	}
	for _, part := range []string{"spec.backendStoreUri and spec.registryStoreUri", "name the Secret in spec.backendStoreUriFrom and spec.registryStoreUriFrom"} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("[D28] %q lacks %q", got.Message, part)
		}
	}
	m.Spec.BackendStoreURI, m.Spec.RegistryStoreURI = "postgresql://a@db/x", ""
	reportCredentials(m)
	if len(m.Status.Conditions) != 0 {
		t.Errorf("[D28] the condition was not removed: %v", m.Status.Conditions)
	}
}
