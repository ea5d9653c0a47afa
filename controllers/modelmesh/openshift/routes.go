package openshift

import (
	"cmp"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// defaultTimeout is how long, in seconds, a component may take to answer when it does not say.
const defaultTimeoutSeconds = 30

// publication is what the Route, HTTPRoute or Ingress of an InferenceService depends on beside itself.
type routeOptions struct {
	served   capability.Set
	exposure exposure
	settings meshsettings.Settings
	proxy    *authproxy.Proxy
	// annotations are those of the runtime that serves the model; nil when there is none.
	runtimeAnnotations map[string]string
	// trust are the certificates by which the REST proxy is known where it speaks TLS.
	meshCA string
}

// wanted tells whether the runtime publishes its models.
func (p routeOptions) isRouteRequested() bool {
	return p.runtimeAnnotations[mm.AnnotationRoute] == valueTrue
}

// guarded tells whether callers are to be checked.
func (p routeOptions) isAuthRequired() bool {
	return p.runtimeAnnotations[mm.AnnotationAuth] == valueTrue
}

// exposure says how models are published where there are no Routes.
type exposure struct {
	config.Exposure
	gateway resources.Gateway
}

// publisher is the kind of object that publishes models; empty where none does.
func (e exposure) routeKind(served capability.Set) schema.GroupVersionKind {
	switch {
	case served.Has(capability.Route):
		return capability.Route
	case e.Gateway() && e.gateway.Namespace != "":
		return capability.HTTPRoute
	case e.Ingress():
		return ingressKind
	}
	return schema.GroupVersionKind{}
}

// publish returns what publishes an InferenceService, nothing when that is not wanted. Where it cannot be as it is wanted, there is
// nothing either, and the problem says why: a model whose callers are to be checked is never open to all.
func buildRoute(s *v1beta1.InferenceService, p routeOptions) (objects apply.Desired, problem string) {
	kind := p.exposure.routeKind(p.served)
	if !p.isRouteRequested() || kind.Empty() {
		return nil, ""
	}
	server, why := p.buildBackend(s)
	if why == "" && kind == ingressKind {
		host := s.Name + "-" + s.Namespace
		if wrong := validation.IsDNS1123Label(host); len(wrong) > 0 {
			why = fmt.Sprintf(", because %s is no label of a host: %s", host, wrong[0])
		}
		server.Host = host + "." + p.exposure.IngressDomain
	}
	if why == "" && !p.served.Has(kind) && kind != ingressKind {
		why = ", because the cluster does not serve the kind"
	}
	if why != "" {
		return nil, "there is no " + kind.Kind + why
	}
	meta := metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: map[string]string{LabelInferenceService: s.Name}}
	switch kind {
	case capability.Route:
		meta.Annotations = map[string]string{AnnotationTimeout: routeTimeout(s)}
		objects.Add(server.Route(meta))
	case capability.HTTPRoute:
		objects.Add(server.HTTPRoute(meta))
	default:
		objects.Add(server.Ingress(meta, p.exposure.IngressClass, p.exposure.IngressAnnotations))
	}
	return objects, ""
}

// server is what answers REST for a model, or why nothing does.
func (p routeOptions) buildBackend(s *v1beta1.InferenceService) (server resources.Published, why string) {
	rest := p.settings.RESTProxy
	if !rest.Enabled {
		return server, ", because restProxy.enabled is false: nothing answers REST"
	}
	port, name, tls := rest.Port, "", routev1.TLSConfig{Termination: routev1.TLSTerminationEdge}
	switch {
	case p.isAuthRequired() && p.proxy == nil:
		return server, fmt.Sprintf(", because annotation %s is set and authProxy.mode is %s: callers would not be checked", mm.AnnotationAuth, p.settings.AuthProxy.Mode)
	case p.isAuthRequired():
		port, name, tls.Termination = authproxy.Port, proxyName(p.settings, s.Namespace), routev1.TLSTerminationReencrypt
	case p.isBlockedByNetworkPolicy():
		return server, fmt.Sprintf(", because the NetworkPolicy closes REST without authentication to other namespaces: set annotation %s on the runtime", mm.AnnotationAuth)
	case p.settings.TLS.Enabled() && p.settings.TLS.ClientAuth == "require":
		return server, fmt.Sprintf(", because tls.clientAuth is require and routers have no certificate to show: set annotation %s on the runtime", mm.AnnotationAuth)
	case p.settings.TLS.Enabled() && p.meshCA == "":
		return server, fmt.Sprintf(" yet, because Secret %s holds no certificate", p.settings.TLS.SecretName)
	case p.settings.TLS.Enabled():
		name = p.settings.ServiceName + "." + s.Namespace
		tls.Termination, tls.DestinationCACertificate = routev1.TLSTerminationReencrypt, p.meshCA
	}
	tls.InsecureEdgeTerminationPolicy = routev1.InsecureEdgeTerminationPolicyRedirect
	path := "/v2/models/" + s.Name
	return resources.Published{
		Service:    p.settings.ServiceName,
		Port:       intstr.FromInt32(port),
		Path:       path,
		ServerName: name,
		TLS:        &tls,
		Weight:     new(resources.RouteWeight),
		Gateway:    p.exposure.gateway,
		Prefixes:   []resources.Prefix{{Path: "/modelmesh/" + s.Namespace + path, Rewritten: path}},
	}, ""
}

// closed tells whether the NetworkPolicy keeps Gateways and controllers of Ingresses, unlike the routers of OpenShift, from what does
// not check its callers.
func (p routeOptions) isBlockedByNetworkPolicy() bool {
	s := p.settings
	return !p.served.Has(capability.Route) && s.NetworkPolicy && (s.NetworkPolicyRestricted || p.proxy != nil)
}

// proxyName is in the certificate of the sidecar.
func proxyName(s meshsettings.Settings, namespace string) string {
	return s.ServiceName + "." + namespace + ".svc"
}

// timeout is how long routers wait for an answer: what the InferenceService says, else as long as all its components may take.
func routeTimeout(s *v1beta1.InferenceService) string {
	own := s.Annotations[AnnotationTimeout]
	total := timeoutSeconds(s.Spec.Predictor.Timeout)
	for _, c := range []*v1beta1.Component{s.Spec.Transformer, s.Spec.Explainer} {
		if c != nil {
			total += timeoutSeconds(c.Timeout)
		}
	}
	return cmp.Or(own, fmt.Sprintf("%ds", total))
}

func timeoutSeconds(given *int64) int64 {
	if given == nil {
		return defaultTimeoutSeconds
	}
	return *given
}
