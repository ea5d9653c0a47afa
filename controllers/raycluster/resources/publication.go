package resources

import (
	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// dashboard is what leads from outside to the dashboard.
func dashboard(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	switch {
	case in.ViaGateway():
		desired.Add(dashboardHTTPRoute(c, in))
	case in.OpenShift:
		desired.Add(dashboardRoute(c, in))
	case in.Domain != "":
		desired.Add(dashboardIngress(c, in))
	}
	return desired
}

// clientPort is what leads from outside to the client port. That needs TLS, because a router tells clusters apart by what stands
// in the hello of TLS.
func clientPort(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	switch {
	case in.Publish == config.PublishNone || !in.Published(c) || !in.encrypted(c):
	case in.OpenShift:
		desired.Add(clientRoute(c, in))
	case in.Domain != "":
		desired.Add(clientIngress(c, in))
	}
	return desired
}

// MissingDomain tells that nothing is published for want of a domain.
func (in Inputs) MissingDomain(c raycluster.Cluster) bool {
	return in.Exposure(c) > Unpublished && !in.ViaGateway() && !in.OpenShift && in.Domain == ""
}

// front is what leads to a dashboard within the cluster: the sidecar, or the head where there is none.
func front(c raycluster.Cluster, in Inputs) (service, port string) {
	if in.Guard(c).Sidecar() {
		return c.Names().ProxyService, raycluster.PortProxyName
	}
	return c.Names().HeadService, raycluster.PortDashboardName
}

// dashboardRoute ends TLS before a dashboard without a sidecar, and speaks TLS to a sidecar.
func dashboardRoute(c raycluster.Cluster, in Inputs) runtime.ApplyConfiguration {
	name := c.Names().Dashboard
	tls := &routev1.TLSConfig{
		Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
	}
	if in.Guard(c).Sidecar() {
		tls.Termination = routev1.TLSTerminationReencrypt
	}
	service, port := front(c, in)
	return route(c, name, resources.Published{
		Service: service, Port: intstr.FromString(port), TLS: tls, Host: longHost(name+"-"+c.Namespace(), c.DashboardHost(), in),
	})
}

func clientRoute(c raycluster.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	return route(c, n.Client, resources.Published{
		Service: n.HeadService, Port: intstr.FromString(raycluster.PortClientName), TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough},
		Host: longHost(n.Client+"-"+c.Namespace(), c.ClientHost(), in),
	})
}

func route(c raycluster.Cluster, name string, p resources.Published) runtime.ApplyConfiguration {
	p.Weight = new(resources.RouteWeight)
	return p.Route(metaOf(c, name))
}

func metaOf(c raycluster.Cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace(), Labels: marks(c, nil)}
}

// longHost is the host where the one that the router would make is longer than a label may be.
func longHost(natural, host string, in Inputs) string {
	if len(natural) > validation.DNS1123LabelMaxLength && in.Domain != "" {
		return host + "." + in.Domain
	}
	return ""
}

// dashboardIngress has no class: that of the cluster counts.
func dashboardIngress(c raycluster.Cluster, in Inputs) runtime.ApplyConfiguration {
	var annotations map[string]string
	if in.Guard(c).Sidecar() {
		annotations = map[string]string{"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
	}
	service, port := front(c, in)
	return networkingv1ac.Ingress(c.Names().Dashboard, c.Namespace()).WithLabels(marks(c, nil)).WithAnnotations(annotations).
		WithSpec(ingressTo(c.DashboardHost()+"."+in.Domain, networkingv1.PathTypePrefix, service, networkingv1ac.ServiceBackendPort().WithName(port)))
}

// clientIngress passes TLS through, which nginx does with --enable-ssl-passthrough.
func clientIngress(c raycluster.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	spec := ingressTo(c.ClientHost()+"."+in.Domain, networkingv1.PathTypeImplementationSpecific, n.HeadService,
		networkingv1ac.ServiceBackendPort().WithNumber(raycluster.PortClient))
	return networkingv1ac.Ingress(n.Client, c.Namespace()).
		WithLabels(marks(c, nil)).
		WithAnnotations(map[string]string{
			"nginx.ingress.kubernetes.io/rewrite-target":  "/",
			"nginx.ingress.kubernetes.io/ssl-redirect":    "true",
			"nginx.ingress.kubernetes.io/ssl-passthrough": "true",
		}).
		WithSpec(spec.WithIngressClassName("nginx"))
}

func ingressTo(host string, kind networkingv1.PathType, service string, port *networkingv1ac.ServiceBackendPortApplyConfiguration) *networkingv1ac.IngressSpecApplyConfiguration {
	return networkingv1ac.IngressSpec().WithRules(networkingv1ac.IngressRule().WithHost(host).WithHTTP(networkingv1ac.HTTPIngressRuleValue().
		WithPaths(networkingv1ac.HTTPIngressPath().WithPath("/").WithPathType(kind).
			WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().WithName(service).WithPort(port))))))
}

// dashboardHTTPRoute publishes a dashboard without a sidecar below a path of the platform's gateway, which has one host for all.
func dashboardHTTPRoute(c raycluster.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	return resources.Published{
		Service:  n.HeadService,
		Port:     intstr.FromInt32(raycluster.PortDashboard),
		Gateway:  resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace},
		Prefixes: []resources.Prefix{{Path: "/ray/" + c.Namespace() + "/" + c.Name(), Rewritten: "/"}},
	}.HTTPRoute(metaOf(c, n.Dashboard))
}
