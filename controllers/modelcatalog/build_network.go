package modelcatalog

import (
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// endpoint is the port at which clients reach the catalog.
type endpoint struct {
	name, protocol string
	port           int32
}

func endpointOf(c *aihubv1alpha1.Catalog) endpoint {
	if proxied(c) {
		return endpoint{httpsPortName, "https", proxyPort}
	}
	return endpoint{httpPortName, "http", serverPort}
}

func service(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ServiceApplyConfiguration {
	annotations := map[string]string{}
	if proxied(c) && servingSecret(c) == certificateSecret {
		annotations[annotationServingCert] = certificateSecret
	}
	if address := externalAddress(in); address != "" {
		annotations[annotationAddress] = address
	}
	e := endpointOf(c)
	s := corev1ac.Service(baseName, c.Namespace).WithLabels(labels(baseName)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector(baseName)).
			WithPorts(corev1ac.ServicePort().WithName(e.name).WithPort(e.port).WithProtocol(corev1.ProtocolTCP).WithAppProtocol(e.protocol)))
	if len(annotations) > 0 {
		s.WithAnnotations(annotations)
	}
	return s
}

// externalAddress is where the catalog is reached from outside; empty where nothing publishes it.
func externalAddress(in Inputs) string {
	switch {
	case in.gatewayMode():
		return in.Gateway.Domain + "/catalog"
	case in.OpenShift && in.Domain != "":
		return baseName + "." + in.Domain + ":443"
	default:
		return ""
	}
}

// published are the objects that let clients in: policies everywhere, Routes and HTTPRoutes on OpenShift.
func published(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	if in.gatewayMode() {
		if in.ReferenceGrants {
			objects.Add(referenceGrant(c, in))
		}
		objects = append(objects, apply.Object{Config: httpRoute(c, in), Ownership: apply.Unowned})
	}
	if in.OpenShift {
		objects.Add(route(c, in), routerPolicy(c))
		return objects
	}
	objects.Add(openPolicy(c))
	return objects
}

// route publishes the catalog at the routers. References are spelled out in full, defaults included.
func route(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	p := resources.Published{
		Service:  baseName,
		Port:     intstr.FromString(endpointOf(c).name),
		TLS:      &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt},
		Weight:   new(resources.RouteWeight),
		Wildcard: routev1.WildcardPolicyNone,
	}
	if !proxied(c) {
		p.TLS.Termination = routev1.TLSTerminationEdge
	}
	if in.Domain != "" {
		p.Host = baseName + "." + in.Domain
	}
	return p.Route(metaOf(c, routeName))
}

// atGateway is the catalog as the Gateway publishes it, which lives in another namespace.
func atGateway(c *aihubv1alpha1.Catalog, in Inputs) resources.Published {
	return resources.Published{
		Service:   baseName,
		Namespace: c.Namespace,
		Port:      intstr.FromInt32(endpointOf(c).port),
		Gateway:   resources.Gateway{Name: in.Gateway.Name, Namespace: in.Gateway.Namespace},
		Prefixes:  []resources.Prefix{{Path: "/catalog/", Rewritten: "/"}},
	}
}

func httpRoute(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	return atGateway(c, in).HTTPRoute(metav1.ObjectMeta{
		Name: baseName, Namespace: in.Gateway.RouteNamespace, Labels: withLabels(baseName, map[string]string{labelNamespace: c.Namespace}),
	})
}

func referenceGrant(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	return atGateway(c, in).ReferenceGrant(metaOf(c, grantName), in.Gateway.RouteNamespace)
}

// routerPolicy admits the routers and the namespaces of the dashboard.
func routerPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.RouterPolicy(metaOf(c, routePolicy), selector(baseName), endpointOf(c).port)
}

// openPolicy admits everybody to the port where callers are authenticated, and nobody to the server behind it.
func openPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.IngressPolicy(metaOf(c, ingressPolicy), selector(baseName), resources.AllowTCP(endpointOf(c).port))
}

// metaOf is the metadata of an object of the server.
func metaOf(c *aihubv1alpha1.Catalog, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: labels(baseName)}
}
