package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// publication is what the status says of one kind that leads to the server or looks at it, while it cannot be written.
type publication struct{ condition, reason, what string }

var publications = map[string]publication{
	capability.HTTPRoute.Kind:        {ConditionRoute, ReasonHTTPRouteFailed, "HttpRoute"},
	capability.ConsoleLink.Kind:      {ConditionConsoleLink, ReasonConsoleLinkFailed, "ConsoleLink"},
	budgetKind.Kind:                  {ConditionBudget, ReasonBudgetFailed, "PodDisruptionBudget"},
	capability.ServiceMonitor.Kind:   {ConditionMonitor, ReasonServiceMonitorFailed, "ServiceMonitor"},
	capability.BackendTLSPolicy.Kind: {ConditionRoute, ReasonHTTPRouteFailed, "BackendTLSPolicy"},
	configMapKind.Kind:               {ConditionRoute, ReasonHTTPRouteFailed, "the ConfigMap of the BackendTLSPolicy"},
	ingressKind.Kind:                 {ConditionRoute, ReasonHTTPRouteFailed, "Ingress"},
}

// expose writes what leads to the server, whatever the server and its database do, and says of each kind in a condition of
// its own that it could not be written. The error for the Service, without which the server is unreachable, comes apart.
func (r *objects) expose(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposed apply.Desired, aside *troubles) (service error) {
	reported := map[string]bool{}
	for _, object := range exposed {
		err := r.applier.Apply(ctx, m, apply.Desired{object})
		aside.add("publishing the server", err)
		if err == nil || apply.Vanishing(err) {
			continue
		}
		condition, ok := reportPublication(m, err)
		if !ok {
			service = err
		}
		reported[condition] = true
	}
	for _, c := range []string{ConditionConsoleLink, ConditionMonitor, ConditionBudget} {
		if !reported[c] {
			conditions.Remove(&m.Status.Conditions, c)
		}
	}
	aside.add("checking the route", r.checkRoutes(ctx, m, in, reported[ConditionRoute]))
	return service
}

// reportPublication shows what could not be published, and returns the condition; false when the error is about something else.
func reportPublication(m *mlflowv1.MLflow, err error) (condition string, ok bool) {
	failed, ok := errors.AsType[*apply.Error](err)
	if !ok {
		return "", false
	}
	p, ok := publications[failed.Kind]
	if !ok {
		return "", false
	}
	if p.condition == ConditionRoute {
		withdraw(m, failed.Name)
	}
	setCondition(m, p.condition, metav1.ConditionFalse, p.reason, fmt.Sprintf("Failed to reconcile %s: %v", p.what, failed.Err))
	return p.condition, true
}

// refusal is the first condition in which our gateway says no to the present route, nil when there is none. A gateway
// that has not spoken yet, or has spoken about an older route only, does not refuse.
func refusal(route *gatewayv1.HTTPRoute, in resources.Inputs) *metav1.Condition {
	for _, parent := range route.Status.Parents {
		if !in.Gateway().Is(parent.ParentRef, in.Namespace) {
			continue
		}
		for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			c, found := conditions.Get(parent.Conditions, string(kind))
			if found && c.Status == metav1.ConditionFalse && (c.ObservedGeneration == 0 || c.ObservedGeneration >= route.Generation) {
				return &c
			}
		}
	}
	return nil
}

// checkRoutes takes an external URL back while the gateway refuses the route that leads there, and reports why, unless the condition is taken.
func (r *objects) checkRoutes(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, reported bool) error {
	var found *metav1.Condition
	for _, s := range resources.Servers(m) {
		refused, err := r.readRefusal(ctx, s.Name, in)
		if err != nil {
			if !reported {
				setCondition(m, ConditionRoute, metav1.ConditionUnknown, ReasonRouteUnknown, err.Error())
			}
			return err
		}
		if refused == nil {
			continue
		}
		withdraw(m, s.Name)
		if found == nil {
			found = refused
			found.Message = fmt.Sprintf("Gateway %s/%s does not take HTTPRoute %s (%s is False): %s; "+
				"let a listener of the Gateway allow routes of namespace %s, or configure another Gateway",
				in.GatewayNamespace, in.GatewayName, s.Name, refused.Type, refused.Message, in.Namespace)
		}
	}
	switch {
	case reported:
	case in.LacksGateway() && in.ExternalURL != "": // a URL is the wish to be reached by a Gateway; without one nothing is amiss
		setCondition(m, ConditionRoute, metav1.ConditionFalse, ReasonGatewayNotNamed, "no Gateway is named, so there is no HTTPRoute: set MLFLOW_GATEWAY_NAMESPACE "+
			"(mlflow.gatewayNamespace), or publish the server by an Ingress (--exposure=ingress)")
	case found == nil:
		conditions.Remove(&m.Status.Conditions, ConditionRoute)
	default:
		setCondition(m, ConditionRoute, metav1.ConditionFalse, cmp.Or(found.Reason, ReasonRouteRefused), found.Message)
	}
	return nil
}

// withdraw takes the external URL back to which a route should lead that does not.
func withdraw(m *mlflowv1.MLflow, route string) {
	if route == resources.Artifacts(m).Name {
		m.Status.ArtifactsURL = ""
		return
	}
	m.Status.URL = ""
}

// readRefusal looks the route up in the cache. A route that is not there, or whose API just goes, is not refused.
func (r *objects) readRefusal(ctx context.Context, name string, in resources.Inputs) (*metav1.Condition, error) {
	if !in.ViaGateway() {
		return nil, nil
	}
	route := wholeObject(capability.HTTPRoute)
	err := r.whole.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: name}, route)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("reading HTTPRoute %s from the cache: %w", name, err)
	}
	if err != nil {
		return nil, nil
	}
	typed, err := common.Decode[gatewayv1.HTTPRoute](route)
	if err != nil {
		return nil, err
	}
	return refusal(typed, in), nil
}

// wholeObject is an empty object of a kind that has no Go type here.
func wholeObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
