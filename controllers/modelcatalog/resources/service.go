package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
)

// endpoint is the port at which clients reach the catalog.
type endpoint struct {
	name, protocol string
	port           int32
}

func endpointOf(c *aihubv1alpha1.Catalog) endpoint {
	if Proxied(c) {
		return endpoint{httpsPortName, "https", proxyPort}
	}
	return endpoint{PortName, "http", serverPort}
}

func service(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ServiceApplyConfiguration {
	annotations := map[string]string{}
	if Proxied(c) && ServingSecret(c) == CertificateSecret {
		annotations[AnnotationServingCert] = CertificateSecret
	}
	if address := externalAddress(in); address != "" {
		annotations[AnnotationAddress] = address
	}
	e := endpointOf(c)
	s := corev1ac.Service(Name, c.Namespace).WithLabels(Labels(Name)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(Selector(Name)).
			WithPorts(corev1ac.ServicePort().WithName(e.name).WithPort(e.port).WithProtocol(corev1.ProtocolTCP).WithAppProtocol(e.protocol)))
	if len(annotations) > 0 {
		s.WithAnnotations(annotations)
	}
	return s
}

// externalAddress is where the catalog is reached from outside; empty where nothing publishes it.
func externalAddress(in Inputs) string {
	switch {
	case in.GatewayMode():
		return in.Gateway.Domain + "/catalog"
	case in.Exposure.Ingress():
		return ingressHost(in) + ":443"
	case in.OpenShift && in.Domain != "":
		return Name + "." + in.Domain + ":443"
	default:
		return ""
	}
}
