package resources

import (
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// published are the objects that let clients in: policies everywhere, Routes and HTTPRoutes on OpenShift.
func published(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	if in.GatewayMode() {
		if in.ReferenceGrants {
			objects.Add(referenceGrant(c, in))
		}
		objects = append(objects, apply.Object{Config: httpRoute(c, in), Ownership: apply.Unowned})
		objects.Add(trust(c, in)...)
	}
	if in.Exposure.Ingress() {
		objects.Add(ingress(c, in))
	}
	if in.OpenShift {
		objects.Add(route(c, in), routerPolicy(c))
		return objects
	}
	objects.Add(openPolicy(c))
	return objects
}

// route publishes the catalog at the routers. References are spelled out in full, defaults included.
func route(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	p := resources.Published{
		Service:  Name,
		Port:     intstr.FromString(endpointOf(c).name),
		TLS:      &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt},
		Weight:   new(resources.RouteWeight),
		Wildcard: routev1.WildcardPolicyNone,
	}
	if !Proxied(c) {
		p.TLS.Termination = routev1.TLSTerminationEdge
	}
	if in.Domain != "" {
		p.Host = Name + "." + in.Domain
	}
	return p.Route(metaOf(c, RouteName))
}

// atGateway is the catalog as the Gateway publishes it, which lives in another namespace.
func atGateway(c *aihubv1alpha1.Catalog, in Inputs) resources.Published {
	return resources.Published{
		Service:   Name,
		Namespace: c.Namespace,
		Port:      intstr.FromInt32(endpointOf(c).port),
		Gateway:   resources.Gateway{Name: in.Gateway.Name, Namespace: in.Gateway.Namespace},
		Prefixes:  []resources.Prefix{{Path: "/catalog/", Rewritten: "/"}},
	}
}

func ingress(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	p := resources.Published{Service: Name, Port: intstr.FromString(endpointOf(c).name), Host: ingressHost(in)}
	if Proxied(c) {
		p.ServerName = serverName(c)
	}
	return p.Ingress(metaOf(c, RouteName), in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

func ingressHost(in Inputs) string { return Name + "." + in.Exposure.IngressDomain }

// trust lets Gateways speak TLS to a proxy whose certificate was issued here.
func trust(c *aihubv1alpha1.Catalog, in Inputs) []runtime.ApplyConfiguration {
	if !Proxied(c) || !in.BackendTLSPolicies || len(in.Authority) == 0 {
		return nil
	}
	return resources.Published{Service: Name, ServerName: serverName(c)}.Trust(metaOf(c, AuthorityName), in.Authority)
}

func serverName(c *aihubv1alpha1.Catalog) string { return Name + "." + c.Namespace + ".svc" }

func httpRoute(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	return atGateway(c, in).HTTPRoute(metav1.ObjectMeta{
		Name: Name, Namespace: in.Gateway.RouteNamespace, Labels: withLabels(Name, map[string]string{LabelNamespace: c.Namespace}),
	})
}

func referenceGrant(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	return atGateway(c, in).ReferenceGrant(metaOf(c, GrantName), in.Gateway.RouteNamespace)
}
