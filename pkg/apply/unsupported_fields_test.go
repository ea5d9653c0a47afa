package apply

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"
)

// The timeouts of HTTPRoutes are omitted after the API server rejected them once as undeclared. Other rejections are errors.
func TestApplyOmitsUnsupportedTimeouts(t *testing.T) {
	route := func(name string) Object {
		return Object{Config: gatewayv1ac.HTTPRoute(name, "ns").WithSpec(gatewayv1ac.HTTPRouteSpec().WithRules(
			gatewayv1ac.HTTPRouteRule().WithName("a").WithTimeouts(gatewayv1ac.HTTPRouteTimeouts().WithRequest("0s"))))}
	}
	for text, rejections := range map[string]int{
		`errors:\n  .spec.rules[0].timeouts: field not declared in schema`:             1,
		`errors:\n  .spec.rules[0].retry: field not declared in schema`:                2,
		`spec.rules[0].timeouts: Invalid value: "0s": must match a regular expression`: 2,
	} {
		a, seen := newTestApplier(t), 0
		a.Client = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(_ context.Context, _ client.WithWatch, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
				a.must(err)
				rules, _, _ := unstructured.NestedSlice(content, "spec", "rules")
				rule, _ := rules[0].(map[string]any)
				if rule["name"] != "a" {
					t.Errorf("unexpected rule %v", rule)
				}
				if _, found := rule["timeouts"]; found {
					seen++
					return errors.New(text)
				}
				return nil
			},
		})
		first, second := a.Apply(t.Context(), a.owner, Desired{route("one")}), a.Apply(t.Context(), a.owner, Desired{route("two")})
		if (first == nil) != (rejections == 1) || (second == nil) != (rejections == 1) || seen != rejections {
			t.Errorf("%s: got %d rejections, errors %v and %v", text, seen, first, second)
		}
	}
}
