package resources

import (
	"cmp"
	"maps"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// ProtocolHTTPS is the appProtocol of Service ports with TLS, which Ingress controllers such as Contour evaluate.
const ProtocolHTTPS = "https"

// caConfigMapKey is the key of a CA in a ConfigMap for a BackendTLSPolicy.
const caConfigMapKey = "ca.crt"

// Ingress returns an Ingress with TLS for the host and path, which defaults to all paths. With annotations of cert-manager it names the
// Secret that cert-manager creates; otherwise the Ingress controller serves its own certificate.
func (p Published) Ingress(meta metav1.ObjectMeta, class string, extraAnnotations map[string]string) *networkingv1ac.IngressApplyConfiguration {
	annotations, tls := map[string]string{}, networkingv1ac.IngressTLS().WithHosts(p.Host)
	if p.ServerName != "" {
		annotations["nginx.ingress.kubernetes.io/backend-protocol"] = "HTTPS"
	}
	maps.Copy(annotations, extraAnnotations)
	for key := range annotations {
		if strings.HasPrefix(key, "cert-manager.io/") {
			tls.WithSecretName(meta.Name + "-ingress-tls")
		}
	}
	port := networkingv1ac.ServiceBackendPort().WithName(p.Port.StrVal)
	if p.Port.Type == intstr.Int {
		port = networkingv1ac.ServiceBackendPort().WithNumber(p.Port.IntVal)
	}
	spec := networkingv1ac.IngressSpec().WithTLS(tls).WithRules(networkingv1ac.IngressRule().WithHost(p.Host).
		WithHTTP(networkingv1ac.HTTPIngressRuleValue().WithPaths(networkingv1ac.HTTPIngressPath().WithPath(cmp.Or(p.Path, "/")).WithPathType(networkingv1.PathTypePrefix).
			WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().WithName(p.Service).WithPort(port))))))
	if class != "" {
		spec.WithIngressClassName(class)
	}
	return networkingv1ac.Ingress(meta.Name, meta.Namespace).WithLabels(meta.Labels).
		WithLabels(map[string]string{names.HostLabel: names.Truncate(strings.ToLower(p.Host), validation.LabelValueMaxLength)}).WithAnnotations(annotations).WithSpec(spec)
}

// BackendTLS returns a ConfigMap with a CA and a BackendTLSPolicy, with which Gateways verify the server. A named port limits the policy to
// that port. The namespace of meta must be that of the Service.
func (p Published) BackendTLS(meta metav1.ObjectMeta, authority []byte) []runtime.ApplyConfiguration {
	target := gatewayv1ac.LocalPolicyTargetReferenceWithSectionName().WithGroup("").WithKind("Service").WithName(gatewayv1.ObjectName(p.Service))
	if p.Port.Type == intstr.String {
		target.WithSectionName(gatewayv1.SectionName(p.Port.StrVal))
	}
	return []runtime.ApplyConfiguration{
		corev1ac.ConfigMap(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithData(map[string]string{caConfigMapKey: string(authority)}),
		gatewayv1ac.BackendTLSPolicy(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(gatewayv1ac.BackendTLSPolicySpec().
			WithTargetRefs(target).
			WithValidation(gatewayv1ac.BackendTLSPolicyValidation().WithHostname(gatewayv1.PreciseHostname(p.ServerName)).
				WithCACertificateRefs(gatewayv1ac.LocalObjectReference().WithGroup("").WithKind("ConfigMap").WithName(gatewayv1.ObjectName(meta.Name))))),
	}
}
