package modelcatalog

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const gatewayGroup = "gateway.networking.k8s.io"

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
	e := endpointOf(c)
	termination := "reencrypt"
	if !proxied(c) {
		termination = "edge"
	}
	spec := map[string]any{
		"to":             map[string]any{"kind": "Service", "name": baseName, "weight": int64(100)},
		"port":           map[string]any{"targetPort": e.name},
		"tls":            map[string]any{"termination": termination},
		"wildcardPolicy": "None",
	}
	if in.Domain != "" {
		spec["host"] = baseName + "." + in.Domain
	}
	return resources.Literal("route.openshift.io/v1", "Route", routeName, c.Namespace, labels(baseName), map[string]any{"spec": spec})
}

// httpRoute publishes the catalog behind the Gateway, which lives in another namespace.
func httpRoute(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	own := withLabels(baseName, map[string]string{labelNamespace: c.Namespace})
	return resources.Literal(gatewayGroup+"/v1", "HTTPRoute", baseName, in.Gateway.RouteNamespace, own, map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{
			"group": gatewayGroup, "kind": "Gateway", "name": in.Gateway.Name, "namespace": in.Gateway.Namespace,
		}},
		"rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/catalog/"}}},
			"filters": []any{map[string]any{
				"type":       "URLRewrite",
				"urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
			}},
			"backendRefs": []any{map[string]any{
				"group": "", "kind": "Service", "name": baseName, "namespace": c.Namespace, "port": int64(endpointOf(c).port), "weight": int64(1),
			}},
		}},
	}})
}

// referenceGrant lets HTTPRoutes of the one namespace reach the one Service, and no database.
func referenceGrant(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	return resources.Literal(gatewayGroup+"/v1beta1", "ReferenceGrant", grantName, c.Namespace, labels(baseName), map[string]any{"spec": map[string]any{
		"from": []any{map[string]any{"group": gatewayGroup, "kind": "HTTPRoute", "namespace": in.Gateway.RouteNamespace}},
		"to":   []any{map[string]any{"group": "", "kind": "Service", "name": baseName}},
	}})
}

// routerPolicy admits the routers and the namespaces of the dashboard.
func routerPolicy(c *aihubv1alpha1.Catalog) *networkingv1ac.NetworkPolicyApplyConfiguration {
	from := func(key, value string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
		return networkingv1ac.NetworkPolicyPeer().
			WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{key: value}))
	}
	rule := networkingv1ac.NetworkPolicyIngressRule().
		WithFrom(from("network.openshift.io/policy-group", "ingress"), from("opendatahub.io/generated-namespace", "true")).
		WithPorts(tcp(endpointOf(c).port))
	return policy(c, routePolicy, baseName, baseName, rule)
}

// openPolicy admits everybody to the port where callers are authenticated, and nobody to the server behind it.
func openPolicy(c *aihubv1alpha1.Catalog) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return policy(c, ingressPolicy, baseName, baseName, networkingv1ac.NetworkPolicyIngressRule().WithPorts(tcp(endpointOf(c).port)))
}

// policy guards the pods of the server, or of the database.
func policy(c *aihubv1alpha1.Catalog, name, pods, component string, rule *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration,
) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(name, c.Namespace).WithLabels(labels(component)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selector(pods))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rule))
}

func tcp(port int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port))
}
