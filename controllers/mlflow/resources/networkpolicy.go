package resources

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	ingress := networkingv1ac.NetworkPolicyIngressRule().WithPorts(policyPort(corev1.ProtocolTCP, port))
	ingress.From = resources.MustApplyEach[networkingv1ac.NetworkPolicyPeerApplyConfiguration](m.Spec.NetworkPolicyIngressFrom)
	if len(ingress.From) == 0 {
		ingress.WithFrom(
			networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector()),
			networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()))
	}
	pods := metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{labelInstance: NameOf(m)}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement(). // those have a policy of their own
										WithKey(LabelComponent).WithOperator(metav1.LabelSelectorOpNotIn).WithValues(migrationName))
	spec := policySpec(m, pods, nil, withURIPorts(append(storeURIs(m), objectStores(m)...),
		dnsRule(),
		tcpRule(443, 6443, 8443),
		tcpRule(5432),
		tcpRule(3306),
		tcpRule(9000, 8333, 8334),
	))
	return networkingv1ac.NetworkPolicy(NameOf(m), in.Namespace).WithLabels(Labels(NameOf(m))).WithSpec(spec.WithIngress(ingress))
}

// migrationPolicy keeps the pods that migrate the database from everything but
// name resolution and the database. Where users say themselves what may be
// reached, that holds in place of the usual database ports.
func migrationPolicy(m *mlflowv1.MLflow, in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	labels := map[string]string{LabelComponent: migrationName}
	spec := policySpec(m, metav1ac.LabelSelector().WithMatchLabels(labels), []*egressRule{dnsRule()}, withURIPorts(storeURIs(m), tcpRule(5432, 3306)))
	return networkingv1ac.NetworkPolicy(NameOf(m)+"-migration", in.Namespace).WithLabels(labels).WithSpec(spec)
}

// isolated lets pods reach nothing but what always has to be, what the user names in place of the usual, and what the user adds, and
// lets no client call them.
func policySpec(m *mlflowv1.MLflow, pods *metav1ac.LabelSelectorApplyConfiguration, always, usual []*egressRule,
) *networkingv1ac.NetworkPolicySpecApplyConfiguration {
	if named := userRules(m.Spec.NetworkPolicyEgressRules); len(named) > 0 {
		usual = named
	}
	return networkingv1ac.NetworkPolicySpec().
		WithPodSelector(pods).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithEgress(always...).WithEgress(usual...).WithEgress(userRules(m.Spec.NetworkPolicyAdditionalEgressRules)...)
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

// withPortsOf adds to rules one for the ports in URIs that none of them opens.
func withURIPorts(uris []string, rules ...*egressRule) []*egressRule {
	var ports, open []int32
	for _, uri := range uris {
		ports = append(ports, portsOf(uri)...)
	}
	for _, rule := range rules {
		for _, port := range rule.Ports {
			open = append(open, port.Port.IntVal)
		}
	}
	slices.Sort(ports)
	ports = slices.DeleteFunc(slices.Compact(ports), func(port int32) bool { return slices.Contains(open, port) })
	if len(ports) == 0 {
		return rules
	}
	return append(rules, tcpRule(ports...))
}

// storeURIs are those of databases that the spec holds. What is in a Secret is not known.
func storeURIs(m *mlflowv1.MLflow) (uris []string) {
	for _, s := range Stores(m) {
		uris = append(uris, s.URI)
	}
	return uris
}

// objectStores are the addresses of object stores among the variables of the spec.
func objectStores(m *mlflowv1.MLflow) (uris []string) {
	for _, v := range m.Spec.Env {
		if slices.Contains([]string{"MLFLOW_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}, v.Name) {
			uris = append(uris, v.Value)
		}
	}
	return uris
}

var (
	authority  = regexp.MustCompile(`^[^:/?#]+://(?:[^/?#]*@)?([^/?#@]*)`)
	portOfHost = regexp.MustCompile(`:([0-9]{1,5})(?:,|$)`)
	portOfDSN  = regexp.MustCompile(`[?&](?:port=|host=[^&]*(?::|%3[aA]))([0-9]{1,5})\b`)
)

// portsOf returns the ports of a URI, which may name several hosts: those of its authority, 80 for http without one, and those of the
// parameters port and host, which drivers of databases know.
func portsOf(uri string) (ports []int32) {
	found := authority.FindStringSubmatch(uri)
	if found == nil {
		return nil
	}
	numbers := append(portOfHost.FindAllStringSubmatch(found[1], -1), portOfDSN.FindAllStringSubmatch(uri, -1)...)
	if len(numbers) == 0 && strings.HasPrefix(strings.ToLower(uri), "http://") {
		return []int32{80}
	}
	for _, n := range numbers {
		if port, err := strconv.ParseUint(n[1], 10, 16); err == nil && port > 0 {
			ports = append(ports, int32(port))
		}
	}
	return ports
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
