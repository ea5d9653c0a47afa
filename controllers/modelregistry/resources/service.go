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
	// AnnotationServingCert requests a certificate of OpenShift in the named Secret.
	AnnotationServingCert = "service.beta.openshift.io/serving-cert-secret-name"
	// annotationAddress is the external address of the server for clients.
	annotationAddress = "routing.opendatahub.io/external-address-rest"

	plainPortName  = "http-api"
	securePortName = "https-api"
)

// publishedServer returns the server as exposed by its Service: through the proxy, unless the serving pods have none.
func publishedServer(m *v1beta1.ModelRegistry, in Inputs) registry.Server {
	s := registry.Server{Name: ServiceName(m), Namespace: m.Namespace, Port: restPort(m), PortName: plainPortName}
	if m.Spec.KubeRBACProxy != nil && !in.ProxyPending {
		s.Port, s.PortName, s.Proxied = proxyPort(m), securePortName, true
	}
	return s
}

// service returns the Service of the proxy, or of the server without a proxy.
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

// Published returns the objects that expose the server outside of the cluster. Routes are kept in addition to an HTTPRoute, because clients
// use their hosts.
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
	return append(desired, publishedServer(m, in).GatewayObjects(gatewayPath(m), registry.GatewayMetadata{
		Grant: objectMeta(m, GrantName(m)), Authority: objectMeta(m, ServiceName(m)+"-ca"), Route: clusterMeta(m, HTTPRouteName(m)),
	}, &in.Publishing)...)
}

// plainRoute returns the Route of spec.rest.serviceRoute. With a proxy it targets the port with TLS and redirects callers without TLS.
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

// wantsRoute reports whether the spec exposes the proxy.
func wantsRoute(m *v1beta1.ModelRegistry) bool {
	proxy := m.Spec.KubeRBACProxy
	return proxy != nil && proxy.ServiceRoute != v1beta1.RouteDisabled
}

// hasRoute reports whether the proxy has a Route.
func hasRoute(m *v1beta1.ModelRegistry, in Inputs) bool { return in.OpenShift && wantsRoute(m) }

// externalAddress returns the address of the proxy outside of the cluster, "" if it is not exposed.
func externalAddress(m *v1beta1.ModelRegistry, in Inputs) string {
	if m.Spec.KubeRBACProxy != nil && in.HasGatewayAddress() {
		return gatewayHost(m, in)
	}
	if host := externalHost(m, in); host != "" {
		return fmt.Sprintf("%s:%d", host, orDefault(m.Spec.KubeRBACProxy.RoutePort, v1beta1.DefaultRoutePort))
	}
	return ""
}

// Hosts returns the hosts of the server, external ones first. Hosts that Gateway or router rejected are omitted.
func Hosts(m *v1beta1.ModelRegistry, in Inputs) []string {
	var all []string
	if in.HasGatewayAddress() {
		all = append(all, gatewayHost(m, in))
	}
	if host := externalHost(m, in); host != "" {
		all = append(all, host)
	}
	inside := ServiceName(m) + "." + m.Namespace
	return append(all, inside+".svc.cluster.local", inside, ServiceName(m))
}

// externalHost returns the host of Route or Ingress, or the one that the user provides for the domain in the spec if there are no Routes;
// "" if the proxy is not exposed.
func externalHost(m *v1beta1.ModelRegistry, in Inputs) string {
	byUser := m.Spec.KubeRBACProxy != nil && in.HasCustomDomain && !in.OpenShift
	if (byUser || hasRoute(m, in) || wantsRoute(m) && in.Exposure.Ingress()) && !in.RouteReport.RejectedBy(true) {
		return routeHost(m)
	}
	return ""
}

func gatewayHost(m *v1beta1.ModelRegistry, in Inputs) string {
	return in.Gateway.Domain + "/" + gatewayPath(m)
}

// routeHost returns the host of Route N-https, "" without a domain, in which case the router assigns it.
func routeHost(m *v1beta1.ModelRegistry) string {
	if m.Spec.KubeRBACProxy.Domain == "" {
		return ""
	}
	return routeHostLabel(m) + "." + m.Spec.KubeRBACProxy.Domain
}
