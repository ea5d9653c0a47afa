package resources

import (
	"cmp"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// dashboardRoutes returns the HTTPRoute, Route or Ingress of the dashboard.
func dashboardRoutes(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	backend, meta := dashboardBackend(c, in), objectMeta(c, c.Names().Dashboard)
	switch {
	case in.ViaGateway():
		meta.Labels[raycluster.LabelDashboard], meta.Labels[raycluster.LabelDashboardNamespace] = c.Name(), c.Namespace()
		desired.Add(backend.HTTPRoute(meta))
	case in.OpenShift:
		backend.Host = explicitHost(meta.Name, backend.Host, c, in)
		desired.Add(backend.Route(meta))
	case in.Domain != "":
		ingress := backend.Ingress(meta, in.RayCluster.Exposure.IngressClass, in.RayCluster.Exposure.IngressAnnotations)
		if !in.RayCluster.Exposure.UsesIngress() {
			ingress.Spec.TLS = nil // as in Ingresses of the CodeFlare operator
		}
		desired.Add(ingress)
	}
	return desired
}

// dashboardBackend returns the backend of the dashboard: the sidecar by TLS, or else the head in plain text.
func dashboardBackend(c raycluster.Cluster, in Inputs) resources.Published {
	n := c.Names()
	backend := resources.Published{
		Service: n.HeadService, Port: servicePort(string(raycluster.PortDashboard), c.Port(raycluster.PortDashboard)),
		Host: c.DashboardHostLabel() + "." + in.Domain, Weight: new(resources.RouteWeight),
		TLS:     &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect},
		Gateway: resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace},
		// all clusters share the host of the Gateway
		Prefixes: []resources.Prefix{{Path: "/ray/" + c.Namespace() + "/" + c.Name(), Rewritten: "/", Redirected: true}},
	}
	if in.EffectiveAuth(c).UsesSidecar() {
		backend.Service, backend.Port, backend.ServerName = n.ProxyService, servicePort(raycluster.PortProxyName, portHTTPS), n.ProxyService+"."+c.Namespace()+".svc"
		backend.TLS.Termination = routev1.TLSTerminationReencrypt
	}
	return backend
}

// servicePort returns a port of a Service by name, with its number for Gateways.
func servicePort(name string, number int32) intstr.IntOrString {
	return intstr.IntOrString{Type: intstr.String, StrVal: name, IntVal: number}
}

// clientPortRoutes returns the Route or Ingress of the client port. The port must use TLS, because the router selects the cluster by SNI
// and passes TLS through; ingress-nginx needs --enable-ssl-passthrough.
func clientPortRoutes(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	n := c.Names()
	meta, backend := objectMeta(c, n.Client), resources.Published{
		Service: n.HeadService, Port: intstr.FromString(string(raycluster.PortClient)), Host: c.ClientHostLabel() + "." + in.Domain,
		TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}, Weight: new(resources.RouteWeight),
	}
	switch {
	case in.Publish == config.PublishNone || c.Suspended() || !in.clientPortEncrypted(c):
	case in.OpenShift:
		backend.Host = explicitHost(meta.Name, backend.Host, c, in)
		desired.Add(backend.Route(meta))
	case in.Domain != "":
		backend.Port = intstr.FromInt32(c.Port(raycluster.PortClient))
		ingress := backend.Ingress(meta, cmp.Or(in.RayCluster.Exposure.IngressClass, "nginx"), map[string]string{
			"nginx.ingress.kubernetes.io/rewrite-target":  "/",
			"nginx.ingress.kubernetes.io/ssl-redirect":    "true",
			"nginx.ingress.kubernetes.io/ssl-passthrough": "true",
		})
		ingress.Spec.TLS = nil
		ingress.Spec.Rules[0].HTTP.Paths[0].WithPathType(networkingv1.PathTypeImplementationSpecific)
		desired.Add(ingress)
	}
	return desired
}

// MissingDomain reports whether the dashboard has no Ingress because the domain is unknown.
func (in Inputs) MissingDomain(c raycluster.Cluster) bool {
	return in.Exposure(c) > Unpublished && !in.ViaGateway() && !in.OpenShift && in.Domain == ""
}

func objectMeta(c raycluster.Cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace(), Labels: clusterLabels(c)}
}

// explicitHost returns host, or "" if the domain is unknown or the router generates a valid host.
func explicitHost(name, host string, c raycluster.Cluster, in Inputs) string {
	if len(name)+len("-")+len(c.Namespace()) > validation.DNS1123LabelMaxLength && in.Domain != "" {
		return host
	}
	return ""
}
