package modelregistry

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	gatewayGroup = "gateway.networking.k8s.io"
	routeVersion = "route.openshift.io/v1"
)

// plainRoute is the Route that spec.rest.serviceRoute asks for. With a proxy, the Service has no port without TLS, so it
// leads to the proxy as well, and callers without TLS are sent on.
func plainRoute(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	spec := map[string]any{"to": routeTarget(m), "port": map[string]any{"targetPort": plainPortName}}
	if m.Spec.KubeRBACProxy != nil {
		spec["port"] = map[string]any{"targetPort": securePortName}
		spec["tls"] = map[string]any{"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"}
	}
	return resources.Literal(routeVersion, "Route", plainRouteName(m), m.Namespace, labels(m, plainRouteName(m)), map[string]any{"spec": spec})
}

// secureRoute is the Route to the proxy.
func secureRoute(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	spec := map[string]any{
		"to":             routeTarget(m),
		"port":           map[string]any{"targetPort": securePortName},
		"tls":            map[string]any{"termination": "reencrypt"},
		"wildcardPolicy": "None",
	}
	if host := routeHost(m); host != "" {
		spec["host"] = host
	}
	return resources.Literal(routeVersion, "Route", secureRouteName(m), m.Namespace, labels(m, secureRouteName(m)), map[string]any{"spec": spec})
}

func routeTarget(m *v1beta1.ModelRegistry) map[string]any {
	return map[string]any{"kind": "Service", "name": serviceName(m)}
}

// httpRoute publishes the Service behind the gateway of the platform. References are spelled out in full, defaults included:
// the lists are ours as a whole, and would otherwise differ from what is stored.
func httpRoute(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	rewrite := map[string]any{
		"type":       "URLRewrite",
		"urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
	}
	prefix := map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/" + gatewayPath(m) + "/"}}
	backend := map[string]any{
		"group": "", "kind": "Service", "name": serviceName(m), "namespace": m.Namespace, "port": int64(servingPort(m, in)), "weight": int64(1),
	}
	return resources.Literal(gatewayGroup+"/v1", "HTTPRoute", httpRouteName(m), in.Gateway.RouteNamespace,
		clusterLabels(m, httpRouteName(m)), map[string]any{"spec": map[string]any{
			"parentRefs": []any{map[string]any{
				"group": gatewayGroup, "kind": "Gateway", "name": in.Gateway.Name, "namespace": in.Gateway.Namespace,
			}},
			"rules": []any{map[string]any{"matches": []any{prefix}, "filters": []any{rewrite}, "backendRefs": []any{backend}}},
		}})
}

// referenceGrant lets HTTPRoutes of the platform lead to the Service of the registry, and to no other: databases have Services
// as well.
func referenceGrant(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	return resources.Literal(gatewayGroup+"/v1beta1", "ReferenceGrant", grantName(m), m.Namespace, labels(m, grantName(m)), map[string]any{
		"spec": map[string]any{
			"from": []any{map[string]any{"group": gatewayGroup, "kind": "HTTPRoute", "namespace": in.Gateway.RouteNamespace}},
			"to":   []any{map[string]any{"group": "", "kind": "Service", "name": serviceName(m)}},
		},
	})
}
