package mlflow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

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

// checkRoutes takes an external URL back while the gateway refuses the route that leads there, and says why.
func (r *objects) checkRoutes(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) error {
	var found *metav1.Condition
	for _, s := range resources.Servers(m) {
		refused, err := r.readRefusal(ctx, s.Name, in)
		if err != nil {
			setCondition(m, ConditionRoute, metav1.ConditionUnknown, ReasonRouteUnknown, err.Error())
			return err
		}
		if refused == nil {
			continue
		}
		withdraw(m, s.Name)
		if found != nil {
			continue
		}
		found = &metav1.Condition{Reason: refused.Reason, Message: fmt.Sprintf(
			"Gateway %s/%s does not take HTTPRoute %s (%s is False): %s; let a listener of the Gateway allow routes of namespace %s, or configure another Gateway",
			in.GatewayNamespace, in.GatewayName, s.Name, refused.Type, refused.Message, in.Namespace)}
		if found.Reason == "" {
			found.Reason = ReasonRouteRefused
		}
	}
	if found == nil {
		conditions.Remove(&m.Status.Conditions, ConditionRoute)
		return nil
	}
	setCondition(m, ConditionRoute, metav1.ConditionFalse, found.Reason, found.Message)
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
