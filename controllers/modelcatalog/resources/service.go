package resources

import (
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// publishedServer returns the catalog as exposed by its Service.
func publishedServer(c *aihubv1alpha1.Catalog) registry.Server {
	if HasProxy(c) {
		return registry.Server{Name: Name, Namespace: c.Namespace, Port: proxyPort, PortName: httpsPortName, Proxied: true}
	}
	return registry.Server{Name: Name, Namespace: c.Namespace, Port: serverPort, PortName: PortName}
}

func service(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ServiceApplyConfiguration {
	meta := objectMeta(c, Name)
	meta.Annotations = map[string]string{}
	if HasProxy(c) && ServingSecret(c) == CertificateSecret {
		meta.Annotations[AnnotationServingCert] = CertificateSecret
	}
	if address := externalAddress(in); address != "" {
		meta.Annotations[AnnotationAddress] = address
	}
	return publishedServer(c).Service(meta, Selector(Name))
}

// externalAddress returns the address outside of the cluster, "" if the catalog is not exposed.
func externalAddress(in Inputs) string {
	switch {
	case in.HasGatewayAddress():
		return in.Gateway.Domain + "/catalog"
	case in.RouteReport.RejectedBy(true):
		return ""
	case in.Exposure.Ingress():
		return ingressHost(in) + ":443"
	case in.OpenShift && in.Domain != "":
		return Name + "." + in.Domain + ":443"
	default:
		return ""
	}
}

// Published returns the objects that expose the catalog: NetworkPolicies, Ingress, Routes and HTTPRoutes.
func Published(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	if in.GatewayMode() {
		objects = publishedServer(c).GatewayObjects("catalog", registry.GatewayMetadata{
			Grant: objectMeta(c, GrantName), Authority: objectMeta(c, AuthorityName), Route: clusterMeta(c, Name),
		}, &in.Publishing)
	}
	if in.Exposure.Ingress() {
		objects.Add(publishedServer(c).Ingress(objectMeta(c, RouteName), ingressHost(in), &in.Publishing))
	}
	if in.OpenShift {
		objects.Add(route(c, in), routerPolicy(c))
		return objects
	}
	objects.Add(ingressPolicy(c))
	return objects
}

func ingressHost(in Inputs) string { return Name + "." + in.Exposure.IngressDomain }

// route returns the Route of the catalog. It sets all fields, including those with default values.
func route(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	p := resources.Published{
		Service:  Name,
		Port:     intstr.FromString(publishedServer(c).PortName),
		TLS:      &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt},
		Weight:   new(resources.RouteWeight),
		Wildcard: routev1.WildcardPolicyNone,
	}
	if !HasProxy(c) {
		p.TLS.Termination = routev1.TLSTerminationEdge
	}
	if in.Domain != "" {
		p.Host = Name + "." + in.Domain
	}
	return p.Route(objectMeta(c, RouteName))
}
