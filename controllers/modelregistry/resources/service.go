package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

const (
	// AnnotationServingCert asks OpenShift for a certificate in the Secret of this name.
	AnnotationServingCert = "service.beta.openshift.io/serving-cert-secret-name"
	// annotationAddress shows clients where the server is reached from outside.
	annotationAddress = "routing.opendatahub.io/external-address-rest"

	plainPortName  = "http-api"
	securePortName = "https-api"
)

// service leads to the proxy, or to the server where there is none. Its target port is the same number, which the API server
// fills in.
func service(m *v1beta1.ModelRegistry, in Inputs) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().WithName(plainPortName).WithAppProtocol("http")
	if m.Spec.KubeRBACProxy != nil && !in.Opening {
		port = corev1ac.ServicePort().WithName(securePortName).WithAppProtocol("https")
	}
	return corev1ac.Service(ServiceName(m), m.Namespace).
		WithLabels(Labels(m, ServiceName(m))).
		WithAnnotations(serviceAnnotations(m, in)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(ServerSelector(m)).
			WithPorts(port.WithPort(servingPort(m, in)).WithProtocol(corev1.ProtocolTCP)))
}

func serviceAnnotations(m *v1beta1.ModelRegistry, in Inputs) map[string]string {
	annotations := map[string]string{}
	for _, key := range []string{annotationDisplayName, annotationDescription} {
		if text, found := m.Annotations[key]; found {
			annotations[key] = text
		}
	}
	if m.Spec.KubeRBACProxy == nil {
		return annotations
	}
	if in.ServingCertificate {
		annotations[AnnotationServingCert] = ServingSecretName(m)
	}
	if address := externalAddress(m, in); address != "" {
		annotations[annotationAddress] = address
	}
	return annotations
}

// externalAddress is where the proxy is reached from outside of the cluster, "" when nothing leads there.
func externalAddress(m *v1beta1.ModelRegistry, in Inputs) string {
	switch {
	case m.Spec.KubeRBACProxy == nil:
		return ""
	case in.GatewayMode():
		return gatewayHost(m, in)
	case (routed(m, in) || ownHost(m, in) || published(m, in)) && routeHost(m) != "":
		return fmt.Sprintf("%s:%d", routeHost(m), orDefault(m.Spec.KubeRBACProxy.RoutePort, v1beta1.DefaultRoutePort))
	}
	return ""
}

// Hosts are the names by which the server is reached, the most public one first. Only what exists is listed.
func Hosts(m *v1beta1.ModelRegistry, in Inputs) []string {
	var all []string
	if in.GatewayMode() {
		all = append(all, gatewayHost(m, in))
	}
	if (routed(m, in) || ownHost(m, in) || published(m, in)) && routeHost(m) != "" {
		all = append(all, routeHost(m))
	}
	inside := ServiceName(m) + "." + m.Namespace
	return append(all, inside+".svc.cluster.local", inside, ServiceName(m))
}

// ownHost reports whether the user publishes the host that the spec names, where there are no Routes: by an Ingress, for example.
func ownHost(m *v1beta1.ModelRegistry, in Inputs) bool {
	return m.Spec.KubeRBACProxy != nil && in.NamedDomain && !in.OpenShift
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
