package openshift

import (
	"cmp"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// defaultTimeout is how long, in seconds, a component may take to answer when it does not say.
const defaultTimeout = 30

// publication is what the Route of an InferenceService depends on beside itself.
type publication struct {
	settings meshsettings.Settings
	proxy    *authproxy.Proxy
	// annotations are those of the runtime that serves the model; nil when there is none.
	annotations map[string]string
	// trust are the certificates by which the REST proxy is known where it speaks TLS.
	trust string
}

// wanted tells whether the runtime publishes its models.
func (p publication) wanted() bool { return p.annotations[AnnotationRoute] == yes }

// guarded tells whether callers are to be checked.
func (p publication) guarded() bool { return p.annotations[AnnotationAuth] == yes }

// publish returns the Route of an InferenceService, none when it is not wanted. Where it cannot be as it is wanted, there is
// none either, and the problem says why: a model whose callers are to be checked is never open to all.
func publish(s *v1beta1.InferenceService, p publication) (route apply.Desired, problem string) {
	if !p.wanted() {
		return nil, ""
	}
	rest := p.settings.RESTProxy
	if !rest.Enabled {
		return nil, "there is no Route, because restProxy.enabled is false: nothing answers REST"
	}
	port, tls := rest.Port, routev1.TLSConfig{Termination: routev1.TLSTerminationEdge}
	switch {
	case p.guarded() && p.proxy == nil:
		return nil, fmt.Sprintf("there is no Route, because annotation %s is set and authProxy.mode is %s: callers would not be checked",
			AnnotationAuth, p.settings.AuthProxy.Mode)
	case p.guarded():
		port, tls.Termination = authproxy.Port, routev1.TLSTerminationReencrypt
	case p.settings.TLS.Enabled() && p.settings.TLS.ClientAuth == "require":
		return nil, fmt.Sprintf("there is no Route, because tls.clientAuth is require and routers have no certificate to show: set annotation %s on the runtime",
			AnnotationAuth)
	case p.settings.TLS.Enabled() && p.trust == "":
		return nil, fmt.Sprintf("there is no Route yet, because Secret %s holds no certificate", p.settings.TLS.SecretName)
	case p.settings.TLS.Enabled():
		tls.Termination, tls.DestinationCACertificate = routev1.TLSTerminationReencrypt, p.trust
	}
	tls.InsecureEdgeTerminationPolicy = routev1.InsecureEdgeTerminationPolicyRedirect
	route.Add(resources.Published{
		Service: p.settings.ServiceName,
		Port:    intstr.FromInt32(port),
		Path:    "/v2/models/" + s.Name,
		TLS:     &tls,
		Weight:  new(resources.RouteWeight),
	}.Route(metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace,
		Labels: map[string]string{LabelInferenceService: s.Name}, Annotations: map[string]string{AnnotationTimeout: timeout(s)},
	}))
	return route, ""
}

// timeout is how long routers wait for an answer: what the InferenceService says, else as long as all its components may take.
func timeout(s *v1beta1.InferenceService) string {
	own := s.Annotations[AnnotationTimeout]
	total := seconds(s.Spec.Predictor.Timeout)
	for _, c := range []*v1beta1.Component{s.Spec.Transformer, s.Spec.Explainer} {
		if c != nil {
			total += seconds(c.Timeout)
		}
	}
	return cmp.Or(own, fmt.Sprintf("%ds", total))
}

func seconds(given *int64) int64 {
	if given == nil {
		return defaultTimeout
	}
	return *given
}
