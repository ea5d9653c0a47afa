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

// RouteWeight is what the API server gives the one Service of a Route.
const RouteWeight int32 = 100

// Published is a server that is reached from outside of the cluster. Its objects get the name, namespace, labels and annotations
// that they are made with.
type Published struct {
	// Service is what requests are sent to.
	Service string
	// Namespace is that of the Service where an HTTPRoute lives in another one, which a ReferenceGrant has to allow.
	Namespace string
	// Port is one of the Service. Gateways know it by its number.
	Port intstr.IntOrString

	// ServerName is in the certificate of the server; empty for one without TLS.
	ServerName string

	// Host and Path are where routers and Ingresses publish it; without a host routers choose one.
	Host, Path string
	// TLS says who ends it, and with which CA the router knows the server.
	TLS *routev1.TLSConfig
	// Weight and Wildcard of a Route are left to the API server when they are not set.
	Weight   *int32
	Wildcard routev1.WildcardPolicyType

	// Gateway is where it is published below Prefixes, the longest first.
	Gateway  Gateway
	Prefixes []Prefix
}

// Gateway names a Gateway.
type Gateway struct{ Name, Namespace string }

// Is reports whether a route in a namespace refers to this Gateway. What the reference leaves out has its default.
func (g Gateway) Matches(ref gatewayv1.ParentReference, namespace string) bool {
	return string(ref.Name) == g.Name && ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace)) == gatewayv1.Namespace(g.Namespace) &&
		ptr.Deref(ref.Kind, "Gateway") == "Gateway" && ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName
}

// Prefix is a path that is led to the server, which sees Rewritten in its place; the path itself where that is empty.
type Prefix struct {
	Path, Rewritten string
	// Redirected sends the path itself on to the one with a slash at its end: the links of the page there are relative.
	Redirected bool
}

// Route publishes the server at the routers of OpenShift.
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

// HTTPRoute publishes the server behind the Gateway. References are spelled out in full, defaults included: the lists are ours as
// a whole, and would otherwise differ from what is stored.
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

// ruleFor takes requests for a path. Answers may take their time: where no timeout is set, some Gateways cut each after 15 s.
func httpRouteRule(kind gatewayv1.PathMatchType, path string) *gatewayv1ac.HTTPRouteRuleApplyConfiguration {
	return gatewayv1ac.HTTPRouteRule().WithTimeouts(gatewayv1ac.HTTPRouteTimeouts().WithRequest("0s")).
		WithMatches(gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().WithType(kind).WithValue(path)))
}

// ReferenceGrant lets the HTTPRoutes of a namespace lead to the Service, and to no other: databases have Services as well.
func (p Published) ReferenceGrant(meta metav1.ObjectMeta, routes string) runtime.ApplyConfiguration {
	return gatewayv1beta1ac.ReferenceGrant(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(gatewayv1ac.ReferenceGrantSpec().
		WithFrom(gatewayv1ac.ReferenceGrantFrom().
			WithGroup(gatewayv1.GroupName).WithKind("HTTPRoute").WithNamespace(gatewayv1.Namespace(routes))).
		WithTo(gatewayv1ac.ReferenceGrantTo().WithGroup("").WithKind("Service").WithName(gatewayv1.ObjectName(p.Service))))
}
