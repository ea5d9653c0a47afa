package modelregistry

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

type (
	policyConfig = networkingv1ac.NetworkPolicyApplyConfiguration
	peerConfig   = networkingv1ac.NetworkPolicyPeerApplyConfiguration
)

// ingressPolicy closes the port of the server to everybody but the proxy in the same pod, until when pods without a proxy serve. The port of the proxy is open to all, because every request is authorized, unless there is a Route: then the
// policy of the Route says who may come.
func ingressPolicy(m *v1beta1.ModelRegistry, in Inputs) *policyConfig {
	spec := ingressTo(selector(m))
	if !routed(m, in) {
		spec.WithIngress(allow(proxyPort(m)))
	}
	if in.Opening {
		spec.WithIngress(allow(restPort(m)))
	}
	return networkingv1ac.NetworkPolicy(ingressPolicyName(m), m.Namespace).WithLabels(labels(m, ingressPolicyName(m))).WithSpec(spec)
}

// routePolicy lets the router in, and the namespaces that the platform has made, among them that of the dashboard.
func routePolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return networkingv1ac.NetworkPolicy(routePolicyName(m), m.Namespace).
		WithLabels(labels(m, routePolicyName(m))).
		WithSpec(ingressTo(selector(m)).WithIngress(allow(proxyPort(m),
			namespacesWith("network.openshift.io/policy-group", "ingress"),
			namespacesWith("opendatahub.io/generated-namespace", "true"))))
}

// databasePolicy lets nobody but the server reach a generated database.
func databasePolicy(m *v1beta1.ModelRegistry) *policyConfig {
	server := networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selector(m)))
	return networkingv1ac.NetworkPolicy(databaseName(m), m.Namespace).
		WithLabels(databaseLabels(m)).
		WithSpec(ingressTo(databaseSelector(m)).WithIngress(allow(v1beta1.DefaultPostgresPort, server)))
}

// ingressTo selects pods and denies what no rule allows. Probes of the kubelet are no concern of policies.
func ingressTo(pods map[string]string) *networkingv1ac.NetworkPolicySpecApplyConfiguration {
	return networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress)
}

// allow opens one TCP port to the peers; without any, to everybody.
func allow(port int32, from ...*peerConfig) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyIngressRule().
		WithFrom(from...).
		WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
}

func namespacesWith(key, value string) *peerConfig {
	return networkingv1ac.NetworkPolicyPeer().
		WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{key: value}))
}
