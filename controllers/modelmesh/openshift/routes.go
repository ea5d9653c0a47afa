package openshift

import (
	"cmp"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// defaultTimeoutSeconds is the timeout of a component that sets none.
const defaultTimeoutSeconds = 30

// routeOptions are the inputs of the Route, HTTPRoute or Ingress of an InferenceService, in addition to the InferenceService.
type routeOptions struct {
	served   capability.Set
	exposure exposure
	settings meshsettings.Settings
	proxy    *authproxy.Proxy
	// runtimeAnnotations are the annotations of the runtime that serves the model; nil without a runtime.
	runtimeAnnotations map[string]string
	// meshCA contains the PEM certificates that verify the REST proxy if it uses TLS.
	meshCA string
}

// isRouteRequested reports whether the runtime requests that its models are published.
func (o routeOptions) isRouteRequested() bool {
	return o.runtimeAnnotations[modelmesh.AnnotationRoute] == valueTrue
}

// isAuthRequired reports whether the runtime requires that callers authenticate.
func (o routeOptions) isAuthRequired() bool {
	return o.runtimeAnnotations[modelmesh.AnnotationAuth] == valueTrue
}

// exposure configures how models are published if the cluster serves no Routes.
type exposure struct {
	config.Exposure
	gateway resources.Gateway
}

// routeKind returns the kind of the objects that publish models; empty if models are not published.
func (e exposure) routeKind(served capability.Set) schema.GroupVersionKind {
	switch {
	case served.Has(capability.Route):
		return capability.Route
	case e.UsesGateway() && e.gateway.Namespace != "":
		return capability.HTTPRoute
	case e.UsesIngress():
		return ingressKind
	}
	return schema.GroupVersionKind{}
}

// buildRoute returns the object that publishes an InferenceService if the runtime requests it, or the problem that prevents it. A model
// with required authentication is never published without it.
func buildRoute(s *v1beta1.InferenceService, o routeOptions) (objects apply.Desired, problem string) {
	kind := o.exposure.routeKind(o.served)
	if !o.isRouteRequested() || kind.Empty() {
		return nil, ""
	}
	server, reason := o.buildBackend(s)
	if reason == "" && len(s.Name) > validation.LabelValueMaxLength {
		reason = fmt.Sprintf(", because the name of the InferenceService has %d characters and label %s can have %d: recreate it under a shorter name",
			len(s.Name), LabelInferenceService, validation.LabelValueMaxLength)
	}
	if reason == "" && kind == ingressKind {
		host := s.Name + "-" + s.Namespace
		if errs := validation.IsDNS1123Label(host); len(errs) > 0 {
			reason = fmt.Sprintf(", because %s is not a valid label of a host name (%s): recreate the InferenceService under another name", host, errs[0])
		}
		server.Host = host + "." + o.exposure.IngressDomain
	}
	if reason == "" && !o.served.Has(kind) && kind != ingressKind {
		reason = ", because the cluster does not serve the kind: install its API, or choose another --exposure"
	}
	if reason != "" {
		return nil, "there is no " + kind.Kind + reason
	}
	meta := metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: map[string]string{LabelInferenceService: s.Name}}
	switch kind {
	case capability.Route:
		meta.Annotations = map[string]string{AnnotationTimeout: routeTimeout(s)}
		objects.Add(server.Route(meta))
	case capability.HTTPRoute:
		objects.Add(server.HTTPRoute(meta))
	default:
		objects.Add(server.Ingress(meta, o.exposure.IngressClass, o.exposure.IngressAnnotations))
	}
	return objects, ""
}

// buildBackend returns the REST backend of a model, or the reason why the model cannot be published, as the end of a message.
func (o routeOptions) buildBackend(s *v1beta1.InferenceService) (server resources.Published, reason string) {
	rest := o.settings.RESTProxy
	if !rest.Enabled {
		return server, ", because restProxy.enabled is false: set it to true, so that REST is served"
	}
	port, serverName, tls := rest.Port, "", routev1.TLSConfig{Termination: routev1.TLSTerminationEdge}
	switch {
	case o.isAuthRequired() && o.proxy == nil:
		return server, fmt.Sprintf(", because annotation %s is set and authProxy.mode is %s, so callers would not be authenticated: set authProxy.mode to always, or remove the annotation", modelmesh.AnnotationAuth, o.settings.AuthProxy.Mode)
	case o.isAuthRequired():
		port, serverName, tls.Termination = authproxy.Port, proxyName(o.settings, s.Namespace), routev1.TLSTerminationReencrypt
	case o.isBlockedByNetworkPolicy():
		return server, fmt.Sprintf(", because the NetworkPolicy closes REST without authentication to other namespaces: set annotation %s on the runtime", modelmesh.AnnotationAuth)
	case o.settings.TLS.Enabled() && o.settings.TLS.ClientAuth == "require":
		return server, fmt.Sprintf(", because tls.clientAuth is require and routers have no certificate to show: set annotation %s on the runtime", modelmesh.AnnotationAuth)
	case o.settings.TLS.Enabled() && o.meshCA == "":
		return server, fmt.Sprintf(" yet, because Secret %s holds no certificate: add tls.crt", o.settings.TLS.SecretName)
	case o.settings.TLS.Enabled():
		serverName = o.settings.ServiceName + "." + s.Namespace
		tls.Termination, tls.DestinationCACertificate = routev1.TLSTerminationReencrypt, o.meshCA
	}
	tls.InsecureEdgeTerminationPolicy = routev1.InsecureEdgeTerminationPolicyRedirect
	path := "/v2/models/" + s.Name
	return resources.Published{
		Service:    o.settings.ServiceName,
		Port:       intstr.FromInt32(port),
		Path:       path,
		ServerName: serverName,
		TLS:        &tls,
		Weight:     new(resources.RouteWeight),
		Gateway:    o.exposure.gateway,
		Prefixes:   []resources.Prefix{{Path: "/modelmesh/" + s.Namespace + path, Rewritten: path}},
	}, ""
}

// isBlockedByNetworkPolicy reports whether the NetworkPolicy denies Gateways and Ingress controllers access to REST without authentication.
// The routers of OpenShift are not affected.
func (o routeOptions) isBlockedByNetworkPolicy() bool {
	s := o.settings
	return !o.served.Has(capability.Route) && s.NetworkPolicyEnabled && (s.NetworkPolicyRestricted || o.proxy != nil)
}

// proxyName returns the DNS name of the sidecar in its certificate.
func proxyName(s meshsettings.Settings, namespace string) string {
	return s.ServiceName + "." + namespace + ".svc"
}

// routeTimeout returns the timeout of routers: the annotation of the InferenceService, or the sum of the timeouts of its components.
func routeTimeout(s *v1beta1.InferenceService) string {
	configured := s.Annotations[AnnotationTimeout]
	total := ptr.Deref(s.Spec.Predictor.Timeout, defaultTimeoutSeconds)
	for _, c := range []*v1beta1.Component{s.Spec.Transformer, s.Spec.Explainer} {
		if c != nil {
			total += ptr.Deref(c.Timeout, defaultTimeoutSeconds)
		}
	}
	return cmp.Or(configured, fmt.Sprintf("%ds", total))
}
