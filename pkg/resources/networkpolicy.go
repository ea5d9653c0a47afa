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

// Labels of the namespaces of OpenShift's routers, and of namespaces that the platform creates, such as the one of the dashboard.
const (
	labelPolicyGroup = "network.openshift.io/policy-group"
	labelGenerated   = "opendatahub.io/generated-namespace"
)

// IngressPolicy denies ingress to pods except by the rules. Policies do not affect kubelet probes.
func IngressPolicy(meta metav1.ObjectMeta, pods map[string]string, rules ...*ingressRule) *policyConfig {
	policy := denyAll(meta, pods, networkingv1.PolicyTypeIngress)
	policy.Spec.WithIngress(rules...)
	return policy
}

// EgressPolicy denies egress of pods except by the rules.
func EgressPolicy(meta metav1.ObjectMeta, pods map[string]string, rules ...*egressRule) *policyConfig {
	policy := denyAll(meta, pods, networkingv1.PolicyTypeEgress)
	policy.Spec.WithEgress(rules...)
	return policy
}

// denyAll returns a policy without rules for one direction.
func denyAll(meta metav1.ObjectMeta, pods map[string]string, direction networkingv1.PolicyType) *policyConfig {
	return networkingv1ac.NetworkPolicy(meta.Name, meta.Namespace).WithLabels(meta.Labels).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithPolicyTypes(direction))
}

// AllowAllEgress returns a rule that allows all egress, for peers that a policy cannot select.
func AllowAllEgress() *egressRule { return networkingv1ac.NetworkPolicyEgressRule() }

// RouterPolicy allows ingress to a port from the routers of OpenShift and the namespaces of the platform.
func RouterPolicy(meta metav1.ObjectMeta, pods map[string]string, port int32) *policyConfig {
	return IngressPolicy(meta, pods, AllowTCP(port).WithFrom(RouterPeer(), NamespacePeer(labelGenerated, "true")))
}

// AllowTCP returns a rule that allows ingress from all peers to TCP ports. WithFrom restricts the peers.
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

// RouterPeer selects the routers of OpenShift.
func RouterPeer() *peerConfig { return NamespacePeer(labelPolicyGroup, "ingress") }

// NamespacePeer selects all pods of namespaces with a label.
func NamespacePeer(key, value string) *peerConfig {
	return networkingv1ac.NetworkPolicyPeer().
		WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{key: value}))
}

// PodPeer selects the pods with labels in the same namespace, or all its pods if labels is empty.
func PodPeer(labels map[string]string) *peerConfig {
	return networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
}
