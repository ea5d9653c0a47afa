package raycluster

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// dashboard is what leads from outside to the dashboard.
func dashboard(c ray.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	switch {
	case in.viaGateway():
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
func clientPort(c ray.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	switch {
	case in.Publish == config.PublishNone || !in.published(c) || !in.encrypted(c):
	case in.OpenShift:
		desired.Add(clientRoute(c, in))
	case in.Domain != "":
		desired.Add(clientIngress(c, in))
	}
	return desired
}

// missingDomain tells that nothing is published for want of a domain.
func (in Inputs) missingDomain(c ray.Cluster) bool {
	return in.exposure(c) > unpublished && !in.viaGateway() && !in.OpenShift && in.Domain == ""
}

// dashboardRoute ends TLS before a dashboard without a sidecar, and speaks TLS to a sidecar.
func dashboardRoute(c ray.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	service, port, termination := n.HeadService, ray.PortDashboardName, "edge"
	if in.guard(c).Sidecar() {
		service, port, termination = n.ProxyService, ray.PortProxyName, "reencrypt"
	}
	return route(c, n.Dashboard, withHost(map[string]any{
		"to":   map[string]any{"kind": "Service", "name": service, "weight": int64(100)},
		"port": map[string]any{"targetPort": port},
		"tls":  map[string]any{"termination": termination, "insecureEdgeTerminationPolicy": "Redirect"},
	}, n.Dashboard+"-"+c.Namespace(), c.DashboardHost(), in))
}

func clientRoute(c ray.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	return route(c, n.Client, withHost(map[string]any{
		"to":   map[string]any{"kind": "Service", "name": n.HeadService, "weight": int64(100)},
		"port": map[string]any{"targetPort": ray.PortClientName},
		"tls":  map[string]any{"termination": "passthrough"},
	}, n.Client+"-"+c.Namespace(), c.ClientHost(), in))
}

func route(c ray.Cluster, name string, spec map[string]any) runtime.ApplyConfiguration {
	return resources.Literal(capability.Route.GroupVersion().String(), "Route", name, c.Namespace(), marks(c, nil), map[string]any{"spec": spec})
}

// withHost names the host where the one that the router would make is longer than a label may be.
func withHost(spec map[string]any, natural, host string, in Inputs) map[string]any {
	if len(natural) > validation.DNS1123LabelMaxLength && in.Domain != "" {
		spec["host"] = host + "." + in.Domain
	}
	return spec
}

// dashboardIngress has no class: that of the cluster counts.
func dashboardIngress(c ray.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	ingress := networkingv1ac.Ingress(n.Dashboard, c.Namespace()).WithLabels(marks(c, nil))
	backend := networkingv1ac.IngressServiceBackend().WithName(n.HeadService).
		WithPort(networkingv1ac.ServiceBackendPort().WithName(ray.PortDashboardName))
	if in.guard(c).Sidecar() {
		ingress.WithAnnotations(map[string]string{"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"})
		backend = networkingv1ac.IngressServiceBackend().WithName(n.ProxyService).
			WithPort(networkingv1ac.ServiceBackendPort().WithName(ray.PortProxyName))
	}
	return ingress.WithSpec(networkingv1ac.IngressSpec().
		WithRules(ingressRule(c.DashboardHost()+"."+in.Domain, networkingv1.PathTypePrefix, backend)))
}

// clientIngress passes TLS through, which nginx does with --enable-ssl-passthrough.
func clientIngress(c ray.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	backend := networkingv1ac.IngressServiceBackend().WithName(n.HeadService).
		WithPort(networkingv1ac.ServiceBackendPort().WithNumber(ray.PortClient))
	return networkingv1ac.Ingress(n.Client, c.Namespace()).
		WithLabels(marks(c, nil)).
		WithAnnotations(map[string]string{
			"nginx.ingress.kubernetes.io/rewrite-target":  "/",
			"nginx.ingress.kubernetes.io/ssl-redirect":    "true",
			"nginx.ingress.kubernetes.io/ssl-passthrough": "true",
		}).
		WithSpec(networkingv1ac.IngressSpec().WithIngressClassName("nginx").
			WithRules(ingressRule(c.ClientHost()+"."+in.Domain, networkingv1.PathTypeImplementationSpecific, backend)))
}

func ingressRule(host string, kind networkingv1.PathType, backend *networkingv1ac.IngressServiceBackendApplyConfiguration) *networkingv1ac.IngressRuleApplyConfiguration {
	return networkingv1ac.IngressRule().WithHost(host).WithHTTP(networkingv1ac.HTTPIngressRuleValue().
		WithPaths(networkingv1ac.HTTPIngressPath().WithPath("/").WithPathType(kind).
			WithBackend(networkingv1ac.IngressBackend().WithService(backend))))
}

// dashboardHTTPRoute publishes a dashboard without a sidecar below a path of the platform's gateway, which has one host for all. References are spelled
// out in full, defaults included, because the lists are ours as a whole.
func dashboardHTTPRoute(c ray.Cluster, in Inputs) runtime.ApplyConfiguration {
	n := c.Names()
	return resources.Literal(capability.HTTPRoute.GroupVersion().String(), "HTTPRoute", n.Dashboard, c.Namespace(), marks(c, nil), map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{
			"group": capability.HTTPRoute.Group, "kind": "Gateway", "name": in.GatewayName, "namespace": in.GatewayNamespace,
		}},
		"rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/ray/" + c.Namespace() + "/" + c.Name()}}},
			"filters": []any{map[string]any{
				"type":       "URLRewrite",
				"urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
			}},
			"backendRefs": []any{map[string]any{"group": "", "kind": "Service", "name": n.HeadService, "port": int64(ray.PortDashboard), "weight": int64(1)}},
		}},
	}})
}
