package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

type (
	policyConfig = networkingv1ac.NetworkPolicyApplyConfiguration
	peerConfig   = networkingv1ac.NetworkPolicyPeerApplyConfiguration
	ingressRule  = networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration
	egressRule   = networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration
)

// labelPolicyGroup is on the namespaces of OpenShift's routers, labelGenerated on those that the platform has made, among them
// that of the dashboard.
const labelPolicyGroup, labelGenerated = "network.openshift.io/policy-group", "opendatahub.io/generated-namespace"

// IngressPolicy closes pods to what no rule allows. Probes of the kubelet are no concern of policies.
func IngressPolicy(meta metav1.ObjectMeta, pods map[string]string, rules ...*ingressRule) *policyConfig {
	policy := denyAll(meta, pods, networkingv1.PolicyTypeIngress)
	policy.Spec.WithIngress(rules...)
	return policy
}

// EgressPolicy keeps pods from what no rule allows.
func EgressPolicy(meta metav1.ObjectMeta, pods map[string]string, rules ...*egressRule) *policyConfig {
	policy := denyAll(meta, pods, networkingv1.PolicyTypeEgress)
	policy.Spec.WithEgress(rules...)
	return policy
}

// closed allows nothing in one direction.
func denyAll(meta metav1.ObjectMeta, pods map[string]string, direction networkingv1.PolicyType) *policyConfig {
	return networkingv1ac.NetworkPolicy(meta.Name, meta.Namespace).WithLabels(meta.Labels).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithPolicyTypes(direction))
}

// Anywhere is a rule that allows everything: for pods whose peers have no names that a policy could use.
func AllowAllEgress() *egressRule { return networkingv1ac.NetworkPolicyEgressRule() }

// RouterPolicy admits the routers of OpenShift to a port of pods, and the namespaces of the platform.
func RouterPolicy(meta metav1.ObjectMeta, pods map[string]string, port int32) *policyConfig {
	return IngressPolicy(meta, pods, AllowTCP(port).WithFrom(RouterPeer(), NamespacePeer(labelGenerated, "true")))
}

// AllowTCP opens a port to all users, as long as no user in particular is named.
func AllowTCP(ports ...int32) *ingressRule {
	return networkingv1ac.NetworkPolicyIngressRule().WithPorts(policyPorts(corev1.ProtocolTCP, ports)...)
}

func policyPorts(protocol corev1.Protocol, ports []int32) []*networkingv1ac.NetworkPolicyPortApplyConfiguration {
	var out []*networkingv1ac.NetworkPolicyPortApplyConfiguration
	for _, port := range ports {
		out = append(out, networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(port)))
	}
	return out
}

// Routers are those of OpenShift.
func RouterPeer() *peerConfig { return NamespacePeer(labelPolicyGroup, "ingress") }

// NamespacesWith are all pods of namespaces that bear a label.
func NamespacePeer(key, value string) *peerConfig {
	return networkingv1ac.NetworkPolicyPeer().
		WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{key: value}))
}

// PodsWith are pods of the same namespace; without labels all of them.
func PodPeer(labels map[string]string) *peerConfig {
	return networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
}
