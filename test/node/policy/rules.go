package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects is the input of [Rules].
type Objects struct {
	// Namespaces has the labels of the namespaces by name.
	Namespaces map[string]labels.Set
	Pods       []*corev1.Pod
	Policies   []*networkingv1.NetworkPolicy
}

// direction of a packet, relative to the isolated pod.
type direction struct {
	kind       networkingv1.PolicyType
	chain      string
	priority   int
	pod, other string // the address fields of the isolated pod and of the peer
}

var directions = []direction{
	{networkingv1.PolicyTypeEgress, "egress", 10, "saddr", "daddr"},
	{networkingv1.PolicyTypeIngress, "ingress", 11, "daddr", "saddr"},
}

// rule is an ingress or egress rule of a NetworkPolicy.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(p *networkingv1.NetworkPolicy, d direction) []rule {
	var rules []rule
	if d.kind == networkingv1.PolicyTypeIngress {
		for _, in := range p.Spec.Ingress {
			rules = append(rules, rule{in.From, in.Ports})
		}
		return rules
	}
	for _, out := range p.Spec.Egress {
		rules = append(rules, rule{out.To, out.Ports})
	}
	return rules
}

// Rules returns the complete table. nft replaces an earlier table atomically.
func Rules(o Objects) (string, error) {
	o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(p *corev1.Pod) bool {
		return p.Status.PodIP == "" || p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	var out strings.Builder
	out.WriteString("table ip policies\ndelete table ip policies\ntable ip policies {\n")
	for _, d := range directions {
		chains, err := o.chains(d)
		if err != nil {
			return "", err
		}
		addresses := slices.Sorted(maps.Keys(chains))
		for _, address := range addresses {
			fmt.Fprintf(&out, " chain %s {\n", chainName(d, address))
			for _, line := range slices.Compact(slices.Sorted(slices.Values(chains[address]))) {
				fmt.Fprintf(&out, "  %saccept\n", line)
			}
			out.WriteString("  counter drop\n }\n")
		}
		fmt.Fprintf(&out, " chain %s {\n  type filter hook forward priority %d; policy accept;\n  ct state established,related accept\n", d.chain, d.priority)
		for _, address := range addresses {
			fmt.Fprintf(&out, "  ip %s %s jump %s\n", d.pod, address, chainName(d, address))
		}
		out.WriteString(" }\n")
	}
	out.WriteString("}\n")
	return out.String(), nil
}

func chainName(d direction, address string) string {
	return d.chain + "_" + strings.ReplaceAll(address, ".", "_")
}

// chains returns the accepted matches of each isolated pod, by address. A pod that no policy selects has no chain.
func (o Objects) chains(d direction) (map[string][]string, error) {
	chains := map[string][]string{}
	for _, p := range o.Policies {
		if !appliesTo(p, d.kind) {
			continue
		}
		selector, err := selectorOf(&p.Spec.PodSelector)
		if err != nil {
			return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err)
		}
		for _, pod := range o.Pods {
			if pod.Namespace != p.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
				continue
			}
			chain := chains[pod.Status.PodIP]
			for _, r := range rulesOf(p, d) {
				lines, err := o.lines(p.Namespace, pod, d, r)
				if err != nil {
					return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err)
				}
				chain = append(chain, lines...)
			}
			chains[pod.Status.PodIP] = chain
		}
	}
	return chains, nil
}

// appliesTo reports whether a policy applies to a direction. By default it applies to ingress, and to egress if it has egress rules.
func appliesTo(p *networkingv1.NetworkPolicy, kind networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) > 0 {
		return slices.Contains(p.Spec.PolicyTypes, kind)
	}
	return kind == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
}

// lines returns the matches of a rule: every peer with every port. A rule without peers matches all peers, one without ports all
// ports.
func (o Objects) lines(namespace string, pod *corev1.Pod, d direction, r rule) ([]string, error) {
	others, err := o.peers(namespace, d, r.peers)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, other := range others {
		receivers := []*corev1.Pod{pod}
		if d.kind == networkingv1.PolicyTypeEgress {
			receivers = other.pods
		}
		for _, port := range portMatches(r.ports, receivers, d) {
			lines = append(lines, other.match+port)
		}
	}
	return lines, nil
}
