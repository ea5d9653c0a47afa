package policy

import (
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func pod(namespace, app, address string, ports ...corev1.ContainerPort) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}},
		Status:     corev1.PodStatus{PodIP: address, Phase: corev1.PodRunning},
	}
}

func labelled(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func objectsWith(policies ...networkingv1.NetworkPolicySpec) Objects {
	succeeded := pod("a", "web", "10.0.0.9")
	succeeded.Status.Phase = corev1.PodSucceeded
	input := Objects{
		Namespaces: map[string]labels.Set{
			"a": {corev1.LabelMetadataName: "a"}, "b": {corev1.LabelMetadataName: "b", "team": "blue"},
		},
		Pods: []*corev1.Pod{
			pod("a", "web", "10.0.0.1", corev1.ContainerPort{Name: "http", ContainerPort: 8080}), pod("a", "client", "10.0.0.2"),
			pod("b", "client", "10.0.0.3", corev1.ContainerPort{Name: "http", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}), succeeded,
		},
	}
	for _, spec := range policies {
		input.Policies = append(input.Policies, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}, Spec: spec})
	}
	return input
}

func ingress(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{
		PodSelector: *labelled("web"), Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}},
	}
}

// chain returns the accepted matches of a chain, and whether the chain exists.
func chain(t *testing.T, objects Objects, name string) ([]string, bool) {
	t.Helper()
	rules, err := Rules(objects)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(rules, " chain "+name+" {\n")
	body, _, _ := strings.Cut(after, "\n }")
	var accepted []string
	for line := range strings.Lines(body) {
		if match, ok := strings.CutSuffix(strings.TrimSpace(line), "accept"); ok {
			accepted = append(accepted, strings.TrimSpace(match))
		}
	}
	return accepted, found
}

func TestRules(t *testing.T) {
	blue := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	named, end := intstr.FromString("http"), int32(90)
	number := intstr.FromInt32(80)
	udp := corev1.ProtocolUDP
	for name, c := range map[string]struct {
		spec  networkingv1.NetworkPolicySpec
		chain string
		want  string
	}{
		"all peers": {ingress(nil), "ingress_10_0_0_1", ""},
		"pods of the policy's namespace": {
			ingress([]networkingv1.NetworkPolicyPeer{{PodSelector: labelled("client")}}), "ingress_10_0_0_1", "ip saddr { 10.0.0.2 }",
		},
		"pods of other namespaces": {
			ingress([]networkingv1.NetworkPolicyPeer{{PodSelector: labelled("client"), NamespaceSelector: blue}}),
			"ingress_10_0_0_1", "ip saddr { 10.0.0.3 }",
		},
		"all pods of a namespace": {
			ingress([]networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}),
			"ingress_10_0_0_1", "ip saddr { 10.0.0.1, 10.0.0.2, 10.0.0.3 }",
		},
		"an IP block": {
			ingress([]networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.1.0.0/16", Except: []string{"10.1.2.0/24"}}}}),
			"ingress_10_0_0_1", "ip saddr 10.1.0.0/16 ip saddr != { 10.1.2.0/24 }",
		},
		"a range of ports": {
			ingress(nil, networkingv1.NetworkPolicyPort{Port: &number, EndPort: &end}), "ingress_10_0_0_1", "tcp dport 80-90",
		},
		"a protocol": {ingress(nil, networkingv1.NetworkPolicyPort{Protocol: &udp}), "ingress_10_0_0_1", "meta l4proto udp"},
		"a named port of the pod": {
			ingress(nil, networkingv1.NetworkPolicyPort{Port: &named}), "ingress_10_0_0_1", "tcp dport 8080",
		},
		"named ports of receivers": {
			networkingv1.NetworkPolicySpec{
				PodSelector: *labelled("web"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				Egress: []networkingv1.NetworkPolicyEgressRule{{
					To:    []networkingv1.NetworkPolicyPeer{{NamespaceSelector: blue}},
					Ports: []networkingv1.NetworkPolicyPort{{Port: &named}},
				}},
			}, "egress_10_0_0_1", "ip daddr { 10.0.0.3 } ip daddr { 10.0.0.3 } tcp dport 9090",
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, found := chain(t, objectsWith(c.spec), c.chain)
			if !found || len(accepted) != 1 || accepted[0] != c.want {
				t.Errorf("accepted matches %q, want %q", accepted, c.want)
			}
		})
	}
}

func TestRulesAcceptNoPeer(t *testing.T) {
	for name, spec := range map[string]networkingv1.NetworkPolicySpec{
		"without a rule":          {PodSelector: *labelled("web")},
		"a selector without pods": ingress([]networkingv1.NetworkPolicyPeer{{PodSelector: labelled("absent")}}),
		"a named port of no pod":  ingress(nil, networkingv1.NetworkPolicyPort{Port: new(intstr.FromString("absent"))}),
	} {
		t.Run(name, func(t *testing.T) {
			if accepted, found := chain(t, objectsWith(spec), "ingress_10_0_0_1"); !found || len(accepted) > 0 {
				t.Errorf("the chain exists: %t, accepted matches %q, want an empty chain", found, accepted)
			}
		})
	}
}

func TestPolicyTypesIsolatePods(t *testing.T) {
	for name, c := range map[string]struct {
		spec            networkingv1.NetworkPolicySpec
		ingress, egress bool
	}{
		"default":             {networkingv1.NetworkPolicySpec{}, true, false},
		"default with egress": {networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}}, true, true},
		"egress only": {
			networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for direction, want := range map[string]bool{"ingress": c.ingress, "egress": c.egress} {
				if _, found := chain(t, objectsWith(c.spec), direction+"_10_0_0_1"); found != want {
					t.Errorf("%s is isolated: %t, want %t", direction, found, want)
				}
			}
			if _, found := chain(t, objectsWith(c.spec), "ingress_10_0_0_3"); found {
				t.Error("a pod of another namespace is isolated")
			}
			if _, found := chain(t, objectsWith(c.spec), "ingress_10_0_0_9"); found {
				t.Error("a succeeded pod is isolated")
			}
		})
	}
}

func TestInvalidSelectorsReturnError(t *testing.T) {
	invalid := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	for name, spec := range map[string]networkingv1.NetworkPolicySpec{
		"pods":       {PodSelector: invalid},
		"peers":      ingress([]networkingv1.NetworkPolicyPeer{{PodSelector: &invalid}}),
		"namespaces": ingress([]networkingv1.NetworkPolicyPeer{{NamespaceSelector: &invalid}}),
	} {
		if _, err := Rules(objectsWith(spec)); err == nil || !strings.Contains(err.Error(), "NetworkPolicy a/p") {
			t.Errorf("%s: got error %v, want one containing 'NetworkPolicy a/p'", name, err)
		}
	}
}

func TestRulesAreValid(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed")
	}
	rules, err := Rules(objectsWith(ingress([]networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.1.0.0/16", Except: []string{"10.1.2.0/24"}}},
	}, networkingv1.NetworkPolicyPort{}, networkingv1.NetworkPolicyPort{Port: new(intstr.FromString("http"))})))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), nft, "--check", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	output, err := command.CombinedOutput()
	if strings.Contains(string(output), "Operation not permitted") {
		t.Skip("nft needs root")
	}
	if err != nil {
		t.Errorf("unexpected error: %v: %s\n%s", err, output, rules)
	}
}
