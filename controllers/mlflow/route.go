package mlflow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
)

// routeStatus is the part of the status of an HTTPRoute that says what its parents make of it.
type routeStatus struct {
	Parents []routeParent `json:"parents"`
}

type routeParent struct {
	ParentRef struct {
		Group     *string `json:"group"`
		Kind      *string `json:"kind"`
		Namespace *string `json:"namespace"`
		Name      string  `json:"name"`
	} `json:"parentRef"`
	Conditions []metav1.Condition `json:"conditions"`
}

// is reports whether this parent is the gateway of the platform. What the reference leaves out has its default.
func (p routeParent) is(in resources.Inputs) bool {
	ref := p.ParentRef
	return ref.Name == in.GatewayName && orElse(ref.Namespace, in.Namespace) == in.GatewayNamespace &&
		orElse(ref.Kind, "Gateway") == "Gateway" && orElse(ref.Group, resources.GatewayGroup) == resources.GatewayGroup
}

func orElse(p *string, otherwise string) string {
	if p == nil {
		return otherwise
	}
	return *p
}

// refusal is the first condition in which our gateway says no to the present route, nil when there is none. A gateway
// that has not spoken yet, or has spoken about an older route only, does not refuse.
func refusal(parents []routeParent, generation int64, in resources.Inputs) *metav1.Condition {
	for _, parent := range parents {
		if !parent.is(in) {
			continue
		}
		for _, kind := range []string{"Accepted", "ResolvedRefs"} {
			c, found := conditions.Get(parent.Conditions, kind)
			if found && c.Status == metav1.ConditionFalse && (c.ObservedGeneration == 0 || c.ObservedGeneration >= generation) {
				return &c
			}
		}
	}
	return nil
}

// checkRoute takes the external URL back while the gateway refuses the route, and says why.
func (r *objects) checkRoute(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) error {
	refused, err := r.readRefusal(ctx, m, in)
	if err != nil {
		setCondition(m, ConditionRoute, metav1.ConditionUnknown, ReasonRouteUnknown, err.Error())
		return err
	}
	if refused == nil {
		conditions.Remove(&m.Status.Conditions, ConditionRoute)
		return nil
	}
	m.Status.URL = "" // nothing leads there
	reason := refused.Reason
	if reason == "" {
		reason = ReasonRouteRefused
	}
	setCondition(m, ConditionRoute, metav1.ConditionFalse, reason, fmt.Sprintf(
		"Gateway %s/%s does not take HTTPRoute %s (%s is False): %s; let a listener of the Gateway allow routes of namespace %s, or configure another Gateway",
		in.GatewayNamespace, in.GatewayName, resources.NameOf(m), refused.Type, refused.Message, in.Namespace))
	return nil
}

// readRefusal looks the route up in the cache. A route that is not there, or whose API just goes, is refused by nobody.
func (r *objects) readRefusal(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) (*metav1.Condition, error) {
	if !in.HTTPRoutes {
		return nil, nil
	}
	route := wholeObject(capability.HTTPRoute)
	err := r.whole.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: resources.NameOf(m)}, route)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("reading HTTPRoute %s from the cache: %w", resources.NameOf(m), err)
	}
	if err != nil {
		return nil, nil
	}
	said, found, err := unstructured.NestedMap(route.Object, "status")
	if err != nil || !found {
		return nil, nil // no gateway has spoken
	}
	status := routeStatus{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(said, &status); err != nil {
		return nil, fmt.Errorf("reading the status of HTTPRoute %s: %w", resources.NameOf(m), err)
	}
	return refusal(status.Parents, route.GetGeneration(), in), nil
}

// wholeObject is an empty object of a kind that has no Go type here.
func wholeObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
