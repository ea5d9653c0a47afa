package resources

import (
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// metaOf is the metadata of an object in the namespace of the registry.
func metaOf(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: Labels(m, name)}
}

// plainRoute is the Route that spec.rest.serviceRoute asks for. With a proxy, the Service has no port without TLS, so it
// leads to the proxy as well, and callers without TLS are sent on.
func plainRoute(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	p := resources.Published{Service: ServiceName(m), Port: intstr.FromString(plainPortName)}
	if m.Spec.KubeRBACProxy != nil {
		p.Port = intstr.FromString(securePortName)
		p.TLS = &routev1.TLSConfig{
			Termination: routev1.TLSTerminationReencrypt, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
		}
	}
	return p.Route(metaOf(m, PlainRouteName(m)))
}

// secureRoute is the Route to the proxy.
func secureRoute(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	return resources.Published{
		Service:  ServiceName(m),
		Port:     intstr.FromString(securePortName),
		Host:     routeHost(m),
		TLS:      &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt},
		Wildcard: routev1.WildcardPolicyNone,
	}.Route(metaOf(m, SecureRouteName(m)))
}

// atGateway is the server as the gateway of the platform publishes it.
func atGateway(m *v1beta1.ModelRegistry, in Inputs) resources.Published {
	return resources.Published{
		Service:   ServiceName(m),
		Namespace: m.Namespace,
		Port:      intstr.FromInt32(servingPort(m, in)),
		Gateway:   resources.Gateway{Name: in.Gateway.Name, Namespace: in.Gateway.Namespace},
		Prefixes:  []resources.Prefix{{Path: "/" + gatewayPath(m) + "/", Rewritten: "/"}},
	}
}

// published reports whether there is an Ingress to the proxy.
func published(m *v1beta1.ModelRegistry, in Inputs) bool {
	proxy := m.Spec.KubeRBACProxy
	return in.Exposure.Ingress() && proxy != nil && proxy.ServiceRoute != v1beta1.RouteDisabled && routeHost(m) != ""
}

func ingress(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	return resources.Published{
		Service: ServiceName(m), Port: intstr.FromString(securePortName), ServerName: serverName(m), Host: routeHost(m),
	}.Ingress(metaOf(m, SecureRouteName(m)), in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

// trust lets Gateways speak TLS to a proxy whose certificate was issued here.
func trust(m *v1beta1.ModelRegistry, in Inputs) []runtime.ApplyConfiguration {
	if m.Spec.KubeRBACProxy == nil || in.Opening || !in.BackendTLSPolicies || len(in.Authority) == 0 {
		return nil
	}
	return resources.Published{Service: ServiceName(m), ServerName: serverName(m)}.Trust(metaOf(m, ServiceName(m)+"-ca"), in.Authority)
}

func serverName(m *v1beta1.ModelRegistry) string { return ServiceName(m) + "." + m.Namespace + ".svc" }

func httpRoute(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	name := HTTPRouteName(m)
	return atGateway(m, in).HTTPRoute(metav1.ObjectMeta{Name: name, Namespace: in.Gateway.RouteNamespace, Labels: ClusterLabels(m, name)})
}

func referenceGrant(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	return atGateway(m, in).ReferenceGrant(metaOf(m, GrantName(m)), in.Gateway.RouteNamespace)
}
