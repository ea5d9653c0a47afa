package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

type egressRule = networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration

// networkPolicy opens the server port to all pods of the cluster, because every
// request is authorized, unless the spec names the callers, and lets the server
// reach name resolution, HTTPS, the supported databases and the usual object
// stores.
func networkPolicy(m *mlflowv1.MLflow, in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	name := NameOf(m)
	egress := []*egressRule{
		dnsRule(),
		tcpRule(443, 6443, 8443),
		tcpRule(5432),
		tcpRule(3306),
		tcpRule(9000, 8333, 8334),
	}
	if len(m.Spec.NetworkPolicyEgressRules) > 0 {
		egress = userRules(m.Spec.NetworkPolicyEgressRules)
	}
	spec := isolated(metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{labelInstance: name}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement(). // those have a policy of their own
										WithKey(LabelComponent).WithOperator(metav1.LabelSelectorOpNotIn).WithValues(migrationName))).
		WithIngress(networkingv1ac.NetworkPolicyIngressRule().
			WithFrom(ingressFrom(m)...).
			WithPorts(policyPort(corev1.ProtocolTCP, port))).
		WithEgress(egress...).
		WithEgress(userRules(m.Spec.NetworkPolicyAdditionalEgressRules)...)
	return networkingv1ac.NetworkPolicy(name, in.Namespace).WithLabels(Labels(name)).WithSpec(spec)
}

// ingressFrom are those who may call the server.
func ingressFrom(m *mlflowv1.MLflow) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	if len(m.Spec.NetworkPolicyIngressFrom) == 0 {
		return []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
			networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector()),
			networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()),
		}
	}
	var peers []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	for i := range m.Spec.NetworkPolicyIngressFrom {
		peers = append(peers, resources.MustApply[networkingv1ac.NetworkPolicyPeerApplyConfiguration](&m.Spec.NetworkPolicyIngressFrom[i]))
	}
	return peers
}

// migrationPolicy keeps the pods that migrate the database from everything but
// name resolution and the database. Where users say themselves what may be
// reached, that holds in place of the usual database ports.
func migrationPolicy(m *mlflowv1.MLflow, in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	databases := []*egressRule{tcpRule(5432, 3306)}
	if len(m.Spec.NetworkPolicyEgressRules) > 0 {
		databases = userRules(m.Spec.NetworkPolicyEgressRules)
	}
	spec := isolated(metav1ac.LabelSelector().WithMatchLabels(map[string]string{LabelComponent: migrationName})).
		WithEgress(dnsRule()).
		WithEgress(databases...).
		WithEgress(userRules(m.Spec.NetworkPolicyAdditionalEgressRules)...)
	return networkingv1ac.NetworkPolicy(NameOf(m)+"-migration", in.Namespace).
		WithLabels(map[string]string{LabelComponent: migrationName}).
		WithSpec(spec)
}

// isolated denies what no rule allows.
func isolated(pods *metav1ac.LabelSelectorApplyConfiguration) *networkingv1ac.NetworkPolicySpecApplyConfiguration {
	return networkingv1ac.NetworkPolicySpec().
		WithPodSelector(pods).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
}

func dnsRule() *egressRule {
	rule := networkingv1ac.NetworkPolicyEgressRule()
	for _, number := range []int32{53, 5353} {
		rule.WithPorts(policyPort(corev1.ProtocolUDP, number), policyPort(corev1.ProtocolTCP, number))
	}
	return rule
}

func tcpRule(ports ...int32) *egressRule {
	rule := networkingv1ac.NetworkPolicyEgressRule()
	for _, number := range ports {
		rule.WithPorts(policyPort(corev1.ProtocolTCP, number))
	}
	return rule
}

func policyPort(protocol corev1.Protocol, number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}

// userRules translates rules of the spec. The default protocol is filled in
// here, because the API server would fill it into a list that is ours as a
// whole, and the two would then differ for ever.
func userRules(from []networkingv1.NetworkPolicyEgressRule) []*egressRule {
	rules := make([]*egressRule, 0, len(from))
	for i := range from {
		rule := resources.MustApply[egressRule](&from[i])
		for p := range rule.Ports {
			if rule.Ports[p].Protocol == nil {
				rule.Ports[p].WithProtocol(corev1.ProtocolTCP)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}
