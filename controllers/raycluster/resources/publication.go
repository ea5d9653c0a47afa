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

// dashboard is what leads from outside to the dashboard.
func dashboard(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	p, meta := publishedDashboard(c, in), metaOf(c, c.Names().Dashboard)
	switch {
	case in.ViaGateway():
		meta.Labels[raycluster.LabelDashboard], meta.Labels[raycluster.LabelDashboardNamespace] = c.Name(), c.Namespace()
		desired.Add(p.HTTPRoute(meta))
	case in.OpenShift:
		p.Host = longHost(meta.Name, p.Host, c, in)
		desired.Add(p.Route(meta))
	case in.Domain != "" && !in.HostTaken:
		ingress := p.Ingress(meta, in.RayCluster.Exposure.IngressClass, in.RayCluster.Exposure.IngressAnnotations)
		if !in.RayCluster.Exposure.Ingress() {
			ingress.Spec.TLS = nil // as the CodeFlare operator left it
		}
		desired.Add(ingress)
	}
	return desired
}

// publishedDashboard is the sidecar, or the head where there is none, at which TLS ends before it.
func publishedDashboard(c raycluster.Cluster, in Inputs) resources.Published {
	n := c.Names()
	p := resources.Published{
		Service: n.HeadService, Port: port(string(raycluster.PortDashboard), c.Port(raycluster.PortDashboard)),
		Host: c.DashboardHost() + "." + in.Domain, Weight: new(resources.RouteWeight),
		TLS:     &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect},
		Gateway: resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace},
		// a gateway has one host for all
		Prefixes: []resources.Prefix{{Path: "/ray/" + c.Namespace() + "/" + c.Name(), Rewritten: "/", Redirected: true}},
	}
	if in.Guard(c).Sidecar() {
		p.Service, p.Port, p.ServerName = n.ProxyService, port(raycluster.PortProxyName, portHTTPS), n.ProxyService+"."+c.Namespace()+".svc"
		p.TLS.Termination = routev1.TLSTerminationReencrypt
	}
	return p
}

// port is one of a Service, which gateways know by its number.
func port(name string, number int32) intstr.IntOrString {
	return intstr.IntOrString{Type: intstr.String, StrVal: name, IntVal: number}
}

// clientPort is what leads from outside to the client port. That needs TLS, because a router tells clusters apart by what stands
// in the hello of TLS, and passes it through: nginx does with --enable-ssl-passthrough.
func clientPort(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	n := c.Names()
	meta, p := metaOf(c, n.Client), resources.Published{
		Service: n.HeadService, Port: intstr.FromString(string(raycluster.PortClient)), Host: c.ClientHost() + "." + in.Domain,
		TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}, Weight: new(resources.RouteWeight),
	}
	switch {
	case in.Publish == config.PublishNone || !in.Published(c) || !in.encrypted(c):
	case in.OpenShift:
		p.Host = longHost(meta.Name, p.Host, c, in)
		desired.Add(p.Route(meta))
	case in.Domain != "" && !in.HostTaken:
		p.Port = intstr.FromInt32(c.Port(raycluster.PortClient))
		ingress := p.Ingress(meta, cmp.Or(in.RayCluster.Exposure.IngressClass, "nginx"), map[string]string{
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

// MissingDomain tells that nothing is published for want of a domain.
func (in Inputs) MissingDomain(c raycluster.Cluster) bool {
	return in.Exposure(c) > Unpublished && !in.ViaGateway() && !in.OpenShift && in.Domain == ""
}

func metaOf(c raycluster.Cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace(), Labels: marks(c)}
}

// longHost is the host where the one that the router would make is longer than a label may be.
func longHost(name, host string, c raycluster.Cluster, in Inputs) string {
	if len(name)+len("-")+len(c.Namespace()) > validation.DNS1123LabelMaxLength && in.Domain != "" {
		return host
	}
	return ""
}
