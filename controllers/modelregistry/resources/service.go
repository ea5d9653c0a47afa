package resources

import (
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// AnnotationServingCert asks OpenShift for a certificate in the Secret of this name.
	AnnotationServingCert = "service.beta.openshift.io/serving-cert-secret-name"
	// annotationAddress shows clients where the server is reached from outside.
	annotationAddress = "routing.opendatahub.io/external-address-rest"

	plainPortName  = "http-api"
	securePortName = "https-api"
)

// asPublished is the server as its Service shows it: through the proxy, if there is one before the pods that serve.
func publishedServer(m *v1beta1.ModelRegistry, in Inputs) registry.Server {
	s := registry.Server{Name: ServiceName(m), Namespace: m.Namespace, Port: restPort(m), PortName: plainPortName}
	if m.Spec.KubeRBACProxy != nil && !in.ProxyPending {
		s.Port, s.PortName, s.Proxied = proxyPort(m), securePortName, true
	}
	return s
}

// service leads to the proxy, or to the server where there is none.
func service(m *v1beta1.ModelRegistry, in Inputs) *corev1ac.ServiceApplyConfiguration {
	meta := objectMeta(m, ServiceName(m))
	meta.Annotations = serviceAnnotations(m, in)
	return publishedServer(m, in).Service(meta, ServerSelector(m))
}

func serviceAnnotations(m *v1beta1.ModelRegistry, in Inputs) map[string]string {
	annotations := map[string]string{}
	for _, key := range []string{annotationDisplayName, annotationDescription} {
		if text, found := m.Annotations[key]; found {
			annotations[key] = text
		}
	}
	if m.Spec.KubeRBACProxy != nil && in.ServingCertificate {
		annotations[AnnotationServingCert] = ServingSecretName(m)
	}
	if address := externalAddress(m, in); address != "" {
		annotations[annotationAddress] = address
	}
	return annotations
}

// Published lists what makes the server reachable from outside of the cluster. Routes stay in addition to an HTTPRoute,
// because clients know their addresses.
func Published(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	var desired apply.Desired
	if in.OpenShift && m.Spec.Rest.ServiceRoute == v1beta1.RouteEnabled {
		desired.Add(plainRoute(m))
	}
	if hasRoute(m, in) {
		desired.Add(resources.Published{
			Service: ServiceName(m), Port: intstr.FromString(securePortName), Host: routeHost(m),
			TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt}, Wildcard: routev1.WildcardPolicyNone,
		}.Route(objectMeta(m, SecureRouteName(m))))
	}
	if in.Exposure.Ingress() && wantsRoute(m) && routeHost(m) != "" {
		desired.Add(publishedServer(m, in).Ingress(objectMeta(m, SecureRouteName(m)), routeHost(m), &in.Publishing))
	}
	if !in.GatewayMode() {
		return desired
	}
	return append(desired, publishedServer(m, in).BehindGateway(gatewayPath(m), registry.GatewayNames{
		Grant: objectMeta(m, GrantName(m)), Authority: objectMeta(m, ServiceName(m)+"-ca"), Route: clusterMeta(m, HTTPRouteName(m)),
	}, &in.Publishing)...)
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
	return p.Route(objectMeta(m, PlainRouteName(m)))
}

// wantsRoute reports whether the proxy is to be reached from outside.
func wantsRoute(m *v1beta1.ModelRegistry) bool {
	proxy := m.Spec.KubeRBACProxy
	return proxy != nil && proxy.ServiceRoute != v1beta1.RouteDisabled
}

// routed reports whether there is a Route to the proxy.
func hasRoute(m *v1beta1.ModelRegistry, in Inputs) bool { return in.OpenShift && wantsRoute(m) }

// externalAddress is where the proxy is reached from outside of the cluster, "" when nothing leads there.
func externalAddress(m *v1beta1.ModelRegistry, in Inputs) string {
	if m.Spec.KubeRBACProxy != nil && in.AtGateway() {
		return gatewayHost(m, in)
	}
	if host := externalHost(m, in); host != "" {
		return fmt.Sprintf("%s:%d", host, orDefault(m.Spec.KubeRBACProxy.RoutePort, v1beta1.DefaultRoutePort))
	}
	return ""
}

// Hosts are the names by which the server is reached, the most public one first. Only what exists is listed, and what no Gateway or router refuses to serve.
func Hosts(m *v1beta1.ModelRegistry, in Inputs) []string {
	var all []string
	if in.AtGateway() {
		all = append(all, gatewayHost(m, in))
	}
	if host := externalHost(m, in); host != "" {
		all = append(all, host)
	}
	inside := ServiceName(m) + "." + m.Namespace
	return append(all, inside+".svc.cluster.local", inside, ServiceName(m))
}

// outerHost is the host at which Route or Ingress publish the proxy, or, where there are no Routes, something of the user's who names the
// domain; "" where nothing does.
func externalHost(m *v1beta1.ModelRegistry, in Inputs) string {
	byUser := m.Spec.KubeRBACProxy != nil && in.HasCustomDomain && !in.OpenShift
	if byUser || hasRoute(m, in) && !in.Said.RefusedBy(true) || wantsRoute(m) && in.Exposure.Ingress() {
		return routeHost(m)
	}
	return ""
}

func gatewayHost(m *v1beta1.ModelRegistry, in Inputs) string {
	return in.Gateway.Domain + "/" + gatewayPath(m)
}

// routeHost is the host of Route N-https, "" where no domain is known: the router then chooses one.
func routeHost(m *v1beta1.ModelRegistry) string {
	if m.Spec.KubeRBACProxy.Domain == "" {
		return ""
	}
	return routeHostLabel(m) + "." + m.Spec.KubeRBACProxy.Domain
}
