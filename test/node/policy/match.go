package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rulePeer is a peer of a rule: the nft match of its addresses, and its pods.
type rulePeer struct {
	match string
	pods  []*corev1.Pod
}

func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(selector)
}

// peers returns the peers that a rule selects, without those whose selectors match no pod.
func (o Objects) peers(namespace string, d direction, peers []networkingv1.NetworkPolicyPeer) ([]rulePeer, error) {
	if len(peers) == 0 {
		return []rulePeer{{pods: o.Pods}}, nil
	}
	var found []rulePeer
	for _, peer := range peers {
		if peer.IPBlock != nil {
			found = append(found, rulePeer{match: blockMatch(d, peer.IPBlock), pods: o.Pods})
			continue
		}
		pods, err := o.selected(namespace, peer)
		if err != nil {
			return nil, err
		}
		if len(pods) > 0 {
			found = append(found, rulePeer{match: addressMatch(d.other, pods), pods: pods})
		}
	}
	return found, nil
}

func (o Objects) selected(namespace string, peer networkingv1.NetworkPolicyPeer) ([]*corev1.Pod, error) {
	inNamespace := labels.SelectorFromSet(labels.Set{corev1.LabelMetadataName: namespace})
	pods := labels.Everything()
	var err error
	if peer.NamespaceSelector != nil {
		if inNamespace, err = selectorOf(peer.NamespaceSelector); err != nil {
			return nil, err
		}
	}
	if peer.PodSelector != nil {
		if pods, err = selectorOf(peer.PodSelector); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(o.Pods), func(p *corev1.Pod) bool {
		return !inNamespace.Matches(o.Namespaces[p.Namespace]) || !pods.Matches(labels.Set(p.Labels))
	}), nil
}

func addressMatch(field string, pods []*corev1.Pod) string {
	var addresses []string
	for _, pod := range pods {
		addresses = append(addresses, pod.Status.PodIP)
	}
	slices.Sort(addresses)
	return fmt.Sprintf("ip %s { %s } ", field, strings.Join(slices.Compact(addresses), ", "))
}

func blockMatch(d direction, block *networkingv1.IPBlock) string {
	match := fmt.Sprintf("ip %s %s ", d.other, block.CIDR)
	if len(block.Except) > 0 {
		match += fmt.Sprintf("ip %s != { %s } ", d.other, strings.Join(block.Except, ", "))
	}
	return match
}

// portMatches returns the nft matches of the ports. A named port can have several numbers in the containers of the receiving pods:
// each number has a match for the pods with that number.
func portMatches(ports []networkingv1.NetworkPolicyPort, receivers []*corev1.Pod, d direction) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var matches []string
	for _, port := range ports {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		name := strings.ToLower(string(protocol))
		switch {
		case port.Port == nil:
			matches = append(matches, "meta l4proto "+name+" ")
		case port.Port.Type == intstr.String:
			matches = append(matches, namedMatches(name, port.Port.StrVal, protocol, receivers, d)...)
		case port.EndPort != nil:
			matches = append(matches, fmt.Sprintf("%s dport %d-%d ", name, port.Port.IntVal, *port.EndPort))
		default:
			matches = append(matches, fmt.Sprintf("%s dport %d ", name, port.Port.IntVal))
		}
	}
	return matches
}

func namedMatches(match, name string, protocol corev1.Protocol, receivers []*corev1.Pod, d direction) []string {
	podsByNumber := map[int32][]*corev1.Pod{}
	for _, pod := range receivers {
		for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			for _, port := range container.Ports {
				if port.Name == name && (port.Protocol == protocol || port.Protocol == "") {
					podsByNumber[port.ContainerPort] = append(podsByNumber[port.ContainerPort], pod)
				}
			}
		}
	}
	var matches []string
	for number, pods := range podsByNumber {
		// An ingress chain has only packets to its pod; an egress chain has packets to all receivers.
		destination := ""
		if d.kind == networkingv1.PolicyTypeEgress {
			destination = addressMatch("daddr", pods)
		}
		matches = append(matches, fmt.Sprintf("%s%s dport %d ", destination, match, number))
	}
	return matches
}
