package routestatus

import (
	"context"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

var (
	public = resources.Gateway{Name: "public", Namespace: "gateways"}
	now    = time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
)

// objectWithStatus returns an object that was applied the given number of seconds ago. A nil status is omitted.
func objectWithStatus(kind schema.GroupVersionKind, ago int, status any) *unstructured.Unstructured {
	u := resources.NewUnstructured(kind)
	u.SetNamespace("team")
	u.SetName("x")
	u.SetGeneration(2)
	u.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	at := metav1.NewTime(now.Add(-time.Duration(ago) * time.Second))
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "operator", Operation: "Apply", Time: &at}})
	u.Object["spec"] = map[string]any{"host": "x.apps.example.com"}
	if status != nil {
		u.Object["status"] = status
	}
	return u
}

// routeCondition returns a condition as Envoy Gateway writes it.
func routeCondition(conditionType, status, reason string, generation int64) map[string]any {
	return map[string]any{"type": conditionType, "status": status, "reason": reason, "message": "no listener matches",
		"observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func statusOf(ref, list string, gateway resources.Gateway, conditions ...any) any {
	return map[string]any{list: []any{map[string]any{
		ref:              map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": gateway.Namespace, "name": gateway.Name},
		"controllerName": "gateway.envoyproxy.io/gatewayclass-controller", "conditions": conditions,
	}}}
}

func parent(conditions ...any) any { return statusOf("parentRef", "parents", public, conditions...) }
func ancestor(conditions ...any) any {
	return statusOf("ancestorRef", "ancestors", public, conditions...)
}

// routers returns the status of a Route in the format of OpenShift's router, with a router for each given status of condition Admitted.
func routers(statuses ...string) any {
	var all []any
	for _, status := range statuses {
		condition := map[string]any{"type": "Admitted", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
		if status == "False" {
			condition["reason"], condition["message"] = "HostAlreadyClaimed", "route thief already exposes x.apps.example.com and is older"
		}
		all = append(all, map[string]any{"host": "x.apps.example.com", "routerName": "default", "wildcardPolicy": "None", "conditions": []any{condition}})
	}
	return map[string]any{"ingress": all}
}

func read(t *testing.T, objects ...*unstructured.Unstructured) (Report, error) {
	t.Helper()
	desired := apply.Desired{{Config: gatewayv1ac.ReferenceGrant("other", "team")}}
	for _, o := range objects {
		desired.Add(client.ApplyConfigurationFromUnstructured(o))
	}
	desired.Add(gatewayv1ac.HTTPRoute("missing", "team"))
	return Read(t.Context(), fakeCache{objects: objects}, public, desired, now)
}

// fakeCache is a cache of the given objects.
type fakeCache struct {
	client.Reader
	objects []*unstructured.Unstructured
}

func (h fakeCache) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range h.objects {
		if u, ok := into.(*unstructured.Unstructured); ok && o.GroupVersionKind() == u.GroupVersionKind() && client.ObjectKeyFromObject(o) == name {
			o.DeepCopyInto(u)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
}

// With several routes, Retry is the remaining time of the route that was applied first.
func TestRetryIsThatOfOldestRoute(t *testing.T) {
	older, newer := objectWithStatus(capability.HTTPRoute, 50, nil), objectWithStatus(capability.HTTPRoute, 20, nil)
	newer.SetName("newer")
	for name, objects := range map[string][]*unstructured.Unstructured{"older first": {older, newer}, "newer first": {newer, older}} {
		if got, err := read(t, objects...); err != nil || got.Retry != 10*time.Second {
			t.Errorf("%s: got retry after %s and error %v", name, got.Retry, err)
		}
	}
}

func TestRead(t *testing.T) {
	http, policy, route := capability.HTTPRoute, capability.BackendTLSPolicy, capability.Route
	acceptedConditions := []any{routeCondition("Accepted", "True", "Accepted", 2), routeCondition("ResolvedRefs", "True", "ResolvedRefs", 2)}
	for name, c := range map[string]struct {
		object   *unstructured.Unstructured
		retry    time.Duration
		rejected bool
		reason   string // empty without a problem
		message  string
	}{
		"accepted HTTPRoute":                     {objectWithStatus(http, 90, parent(acceptedConditions...)), 0, false, "", ""},
		"not allowed":                            {objectWithStatus(http, 90, parent(routeCondition("Accepted", "False", "NotAllowedByListeners", 2))), 0, true, "NotAllowedByListeners", "Gateway gateways/public rejects HTTPRoute team/x (Accepted is False): no listener matches; let a listener of the Gateway allow routes of namespace team, or configure another Gateway"},
		"without generation":                     {objectWithStatus(http, 90, parent(routeCondition("Accepted", "False", "NoMatchingParent", 0))), 0, true, "NoMatchingParent", "Gateway gateways/public rejects HTTPRoute team/x (Accepted is False): no listener matches"},
		"without reason":                         {objectWithStatus(http, 90, parent(routeCondition("Accepted", "False", "", 2))), 0, true, ReasonNotAccepted, "no listener"},
		"server cannot be resolved":              {objectWithStatus(http, 90, parent(acceptedConditions[0], routeCondition("ResolvedRefs", "False", "RefNotPermitted", 2))), 0, true, "RefNotPermitted", "ResolvedRefs is False"},
		"previous generation rejected":           {objectWithStatus(http, 0, parent(routeCondition("Accepted", "False", "NotAllowedByListeners", 1))), 0, false, "", ""},
		"status Unknown":                         {objectWithStatus(http, 90, parent(routeCondition("Accepted", "Unknown", "Pending", 2))), 0, false, "", ""},
		"no status before the timeout":           {objectWithStatus(http, 20, nil), 40 * time.Second, false, "", ""},
		"no status after the timeout":            {objectWithStatus(http, 60, nil), 0, false, ReasonNotSeen, "no Gateway has reported a status for HTTPRoute team/x: check that Gateway gateways/public exists, and that the controller of its class runs"},
		"rejected by another Gateway only":       {objectWithStatus(http, 90, statusOf("parentRef", "parents", resources.Gateway{Name: "public", Namespace: "team"}, routeCondition("Accepted", "False", "X", 2))), 0, false, ReasonNotSeen, "gateways/public"},
		"accepted policy":                        {objectWithStatus(policy, 90, ancestor(acceptedConditions...)), 0, false, "", ""},
		"policy without a status":                {objectWithStatus(policy, 90, nil), 0, false, "", ""},
		"rejected policy":                        {objectWithStatus(policy, 90, ancestor(routeCondition("Accepted", "False", "NoValidCACertificate", 2))), 0, true, "NoValidCACertificate", "Gateway gateways/public rejects BackendTLSPolicy team/x (Accepted is False): no listener matches"},
		"admitted Route":                         {objectWithStatus(route, 90, routers("True")), 0, false, "", ""},
		"Route admitted by one of two routers":   {objectWithStatus(route, 90, routers("False", "True")), 0, false, "", ""},
		"Route without a status":                 {objectWithStatus(route, 90, nil), 0, false, "", ""},
		"Route with status Unknown":              {objectWithStatus(route, 90, routers("Unknown")), 0, false, "", ""},
		"Route whose host is claimed by another": {objectWithStatus(route, 90, routers("False")), 0, true, ReasonNotAdmitted, "router default does not admit Route team/x with host x.apps.example.com (HostAlreadyClaimed): route thief already exposes x.apps.example.com and is older"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, c.object)
			if err != nil || got.Retry != c.retry || (got.FirstProblem() == nil) != (c.reason == "") || (got.Wait() == nil) != (c.retry == 0) {
				t.Fatalf("got report %+v, error %v", got, err)
			}
			atRouter := c.object.GetKind() == "Route"
			if got.RejectedByRouter() != (c.rejected && atRouter) || got.RejectedByGateway() != (c.rejected && !atRouter) {
				t.Errorf("rejected by a router: %t, by a Gateway: %t; want %t only for the %s", got.RejectedByRouter(), got.RejectedByGateway(), c.rejected, c.object.GetKind())
			}
			if first := got.FirstProblem(); first != nil && (first.Reason != c.reason || !strings.Contains(first.Message, c.message) || first.Rejected != c.rejected) {
				t.Errorf("got problem %+v", first)
			}
			list := []metav1.Condition{{Type: Condition, Status: metav1.ConditionTrue, Reason: "Before"}}
			got.Set(&list, 3)
			want := map[bool]metav1.ConditionStatus{true: metav1.ConditionFalse, false: metav1.ConditionUnknown}[c.rejected]
			if c.reason == "" && len(list) > 0 || c.reason != "" && (list[0].Status != want || list[0].Reason != c.reason || list[0].Message != got.FirstProblem().Message) {
				t.Errorf("got conditions %+v", list)
			}
		})
	}
}

// A rejection takes precedence over a missing response.
func TestFirstProblemPrefersRejection(t *testing.T) {
	r := Report{Problems: []Problem{{Reason: "NotSeen"}, {Reason: "First", Rejected: true}, {Reason: "Second", Rejected: true}}}
	if got := r.FirstProblem().Reason; got != "First" {
		t.Errorf("got problem %s, want First", got)
	}
	if got := (Report{}).FirstProblem(); got != nil {
		t.Errorf("got problem %+v", got)
	}
}

func TestReadFailsForInvalidStatus(t *testing.T) {
	_, err := read(t, objectWithStatus(capability.HTTPRoute, 0, map[string]any{"parents": "x"}))
	if err == nil || !strings.Contains(err.Error(), "HTTPRoute team/x") {
		t.Errorf("got error %v", err)
	}
}

// [B-5] An older Ingress with the same host is reported with its owner and the fix.
func TestReadHostOfOlderIngress(t *testing.T) {
	const host = "data-a-rest.apps.example.org"
	holder := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a-rest", Name: "data", UID: "1", Labels: map[string]string{names.HostLabel: host},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "serving.kserve.io/v1beta1", Kind: "InferenceService", Name: "data", UID: "2", Controller: new(true)}},
	}}
	published := resources.Published{Service: "data-a", Port: intstr.FromInt32(8443), Host: host}.Ingress(metav1.ObjectMeta{Namespace: "team", Name: "data-a-https"}, "", nil)
	server := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(holder).Build()
	got, err := Read(t.Context(), server, public, apply.Desired{{Config: published}}, now)
	if err != nil || !got.RejectedByRouter() || got.RejectedByGateway() || got.Retry != reconciler.RequeueBlocked {
		t.Fatalf("got report %+v, error %v", got, err)
	}
	want := Problem{Kind: "Ingress", Name: "data-a-https", Rejected: true, Reason: ReasonHostTaken,
		Message: "there is no Ingress, because the older Ingress a-rest/data of InferenceService data has the host " + host +
			": recreate one of the two resources under another name or in another namespace"}
	if *got.FirstProblem() != want {
		t.Errorf("got problem %+v", got.FirstProblem())
	}
	if err := server.Delete(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	if got, err = Read(t.Context(), server, public, apply.Desired{{Config: published}}, now); err != nil || len(got.Problems) != 0 || got.Retry != 0 {
		t.Errorf("got report %+v, error %v", got, err)
	}
}
