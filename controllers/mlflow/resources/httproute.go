package resources

import (
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// GatewayGroup is the API group of HTTPRoutes and Gateways.
const GatewayGroup = "gateway.networking.k8s.io"

// httpRoute publishes the server behind the platform gateway. The ingestion of
// OpenTelemetry traces is served without the static prefix, so the first rule
// strips it. References are spelled out in full, defaults included: the lists
// are ours as a whole, and would otherwise differ from what is stored.
func httpRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	backends := []any{map[string]any{"group": "", "kind": "Service", "name": name, "port": int64(port), "weight": int64(1)}}
	prefix := func(path string) []any {
		return []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path}}}
	}
	stripped := map[string]any{
		"type": "URLRewrite",
		"urlRewrite": map[string]any{
			"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v1"},
		},
	}
	return resources.Literal(GatewayGroup+"/v1", "HTTPRoute", name, in.Namespace, map[string]string{LabelApp: BaseName}, map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{
			"group": GatewayGroup, "kind": "Gateway", "name": in.GatewayName, "namespace": in.GatewayNamespace,
		}},
		"rules": []any{
			map[string]any{"matches": prefix("/" + name + "/v1"), "filters": []any{stripped}, "backendRefs": backends},
			map[string]any{"matches": prefix("/" + name), "backendRefs": backends},
		},
	}})
}
