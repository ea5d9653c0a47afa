package resources

import (
	"net/http"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"
	gatewayv1beta1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1beta1"
)

// RouteWeight is the default weight of the API server for the Service of a Route.
const RouteWeight int32 = 100

// Published is the exposure of a Service outside of the cluster. The methods return objects with the given metadata.
type Published struct {
	// Service is the name of the Service.
	Service string
	// Namespace is the namespace of the Service if the HTTPRoute is in another one, which requires a ReferenceGrant.
	Namespace string
	// Port is the port of the Service. HTTPRoutes require a number.
	Port intstr.IntOrString

	// ServerName is the name in the certificate of the server; empty without TLS.
	ServerName string

	// Host and Path are those of the Route or Ingress. OpenShift assigns a host to a Route without one.
	Host, Path string
	// TLS is the termination of the Route and the CA of the server.
	TLS *routev1.TLSConfig
	// Weight and Wildcard are those of the Route. The API server sets defaults if they are unset.
	Weight   *int32
	Wildcard routev1.WildcardPolicyType

	// Gateway is the parent of the HTTPRoute. Prefixes are ordered from longest to shortest.
	Gateway  Gateway
	Prefixes []Prefix
}

// Gateway identifies a Gateway.
type Gateway struct{ Name, Namespace string }

// Matches reports whether a parent reference of a route in a namespace refers to this Gateway. Missing fields have their defaults.
func (g Gateway) Matches(ref gatewayv1.ParentReference, namespace string) bool {
	return string(ref.Name) == g.Name && ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace)) == gatewayv1.Namespace(g.Namespace) &&
		ptr.Deref(ref.Kind, "Gateway") == "Gateway" && ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName
}

// Prefix is a path prefix of a route. Rewritten replaces it, unless empty.
type Prefix struct {
	Path, Rewritten string
	// Redirected is true if the path is redirected to the same path with a trailing slash, because the page has relative links.
	Redirected bool
}

// Route returns the Route of OpenShift.
func (p Published) Route(meta metav1.ObjectMeta) runtime.ApplyConfiguration {
	return Typed(routev1.GroupVersion.WithKind("Route"), &routev1.Route{ObjectMeta: meta, Spec: routev1.RouteSpec{
		Host:           p.Host,
		Path:           p.Path,
		To:             routev1.RouteTargetReference{Kind: "Service", Name: p.Service, Weight: p.Weight},
		Port:           &routev1.RoutePort{TargetPort: p.Port},
		TLS:            p.TLS,
		WildcardPolicy: p.Wildcard,
	}})
}

// HTTPRoute returns the HTTPRoute for the Gateway. It sets all defaults, because its lists are atomic and would otherwise differ from the
// stored object.
func (p Published) HTTPRoute(meta metav1.ObjectMeta) runtime.ApplyConfiguration {
	backend := gatewayv1ac.HTTPBackendRef().WithGroup("").WithKind("Service").WithName(gatewayv1.ObjectName(p.Service)).
		WithPort(p.Port.IntVal).WithWeight(1)
	if p.Namespace != "" {
		backend.WithNamespace(gatewayv1.Namespace(p.Namespace))
	}
	spec := gatewayv1ac.HTTPRouteSpec().WithParentRefs(gatewayv1ac.ParentReference().
		WithGroup(gatewayv1.GroupName).WithKind("Gateway").
		WithName(gatewayv1.ObjectName(p.Gateway.Name)).WithNamespace(gatewayv1.Namespace(p.Gateway.Namespace)))
	for _, prefix := range p.Prefixes {
		if prefix.Redirected {
			spec.WithRules(httpRouteRule(gatewayv1.PathMatchExact, prefix.Path).WithFilters(gatewayv1ac.HTTPRouteFilter().
				WithType(gatewayv1.HTTPRouteFilterRequestRedirect).WithRequestRedirect(gatewayv1ac.HTTPRequestRedirectFilter().WithStatusCode(http.StatusFound).
				WithPath(gatewayv1ac.HTTPPathModifier().WithType(gatewayv1.FullPathHTTPPathModifier).WithReplaceFullPath(prefix.Path + "/")))))
		}
		rule := httpRouteRule(gatewayv1.PathMatchPathPrefix, prefix.Path).WithBackendRefs(backend)
		if prefix.Rewritten != "" {
			rule.WithFilters(gatewayv1ac.HTTPRouteFilter().WithType(gatewayv1.HTTPRouteFilterURLRewrite).
				WithURLRewrite(gatewayv1ac.HTTPURLRewriteFilter().WithPath(gatewayv1ac.HTTPPathModifier().
					WithType(gatewayv1.PrefixMatchHTTPPathModifier).WithReplacePrefixMatch(prefix.Rewritten))))
		}
		spec.WithRules(rule)
	}
	return gatewayv1ac.HTTPRoute(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(spec)
}

// httpRouteRule returns a rule without a timeout for a path, because some Gateways default to 15 s.
func httpRouteRule(matchType gatewayv1.PathMatchType, path string) *gatewayv1ac.HTTPRouteRuleApplyConfiguration {
	return gatewayv1ac.HTTPRouteRule().WithTimeouts(gatewayv1ac.HTTPRouteTimeouts().WithRequest("0s")).
		WithMatches(gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().WithType(matchType).WithValue(path)))
}

// ReferenceGrant allows HTTPRoutes of a namespace to refer to this Service only, because databases have Services too.
func (p Published) ReferenceGrant(meta metav1.ObjectMeta, routeNamespace string) runtime.ApplyConfiguration {
	return gatewayv1beta1ac.ReferenceGrant(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(gatewayv1ac.ReferenceGrantSpec().
		WithFrom(gatewayv1ac.ReferenceGrantFrom().
			WithGroup(gatewayv1.GroupName).WithKind("HTTPRoute").WithNamespace(gatewayv1.Namespace(routeNamespace))).
		WithTo(gatewayv1ac.ReferenceGrantTo().WithGroup("").WithKind("Service").WithName(gatewayv1.ObjectName(p.Service))))
}
