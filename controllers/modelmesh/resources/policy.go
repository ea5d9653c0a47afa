package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// PolicyName is the NetworkPolicy of runtime pods.
	PolicyName = "modelmesh-runtimes"

	// peerPort is where the pods of the mesh speak to each other.
	peerPort = 8080
)

// BuildGuards renders what no pod of a namespace may run without: the NetworkPolicy, and the rules of the sidecar that asks who calls.
// What else the sidecar needs package openshift makes: without it pods do not start, or let no caller in.
func BuildGuards(in NamespaceInputs) (apply.Desired, error) {
	var desired apply.Desired
	if in.Settings.NetworkPolicy {
		desired = append(desired, apply.Object{Config: policy(in), Ownership: apply.Unowned, Adopts: samePods})
	}
	if in.Proxy == nil || !in.Proxy.HasRules() {
		return desired, nil
	}
	rules, err := in.Proxy.Rules()
	if err != nil {
		return nil, fmt.Errorf("building the rules of the proxy: %w", err)
	}
	config := corev1ac.ConfigMap(authproxy.RulesConfigMap, in.Namespace).WithData(rules)
	return append(desired, apply.Object{Config: config, Ownership: apply.Unowned}), nil
}

// policy guards the pods of runtimes: what the mesh says to itself is heard from its own pods only, and internal ports,
// such as that of the model server's management, from no pod. Restricted, and wherever a proxy guards REST, the ports without
// authentication are open to the namespace, the manager and routers only.
func policy(in NamespaceInputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	s := in.Settings
	peers := resources.PodsWith(map[string]string{LabelManagedBy: ControllerName})
	unguarded := []int32{s.ServicePort}
	if s.RESTProxy.Enabled {
		unguarded = append(unguarded, s.RESTProxy.Port)
	}
	var open []int32
	if s.Metrics.Enabled {
		open = append(open, s.Metrics.Port)
	}
	if in.Proxy != nil || in.OpenShift { // pods that are taken over have the sidecar of the original
		open = append(open, authproxy.Port)
	}
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(runtimePods()).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(resources.AllowTCP(s.ServicePort, peerPort).WithFrom(peers))
	if s.NetworkPolicyRestricted || in.Proxy != nil { // the proxy would guard one door of two
		spec.WithIngress(resources.AllowTCP(unguarded...).WithFrom(trustedPeers(in)...))
	} else {
		open = append(unguarded, open...)
	}
	if len(open) > 0 {
		spec.WithIngress(resources.AllowTCP(open...))
	}
	return networkingv1ac.NetworkPolicy(PolicyName, in.Namespace).WithSpec(spec)
}

// trustedPeers may reach the ports without authentication.
func trustedPeers(in NamespaceInputs) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	all := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		resources.PodsWith(nil), resources.NamespacesWith(corev1.LabelMetadataName, in.Home),
	}
	if in.OpenShift {
		all = append(all, resources.Routers())
	}
	return all
}

// runtimePods selects the pods of all runtimes of a namespace.
func runtimePods() *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{LabelManagedBy: ControllerName}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement().WithKey(LabelService).WithOperator(metav1.LabelSelectorOpExists))
}

// samePods recognises the policy that the original installed beside itself.
func samePods(live *unstructured.Unstructured) bool {
	labels, _, err := unstructured.NestedStringMap(live.Object, "spec", "podSelector", "matchLabels")
	return err == nil && labels[LabelManagedBy] == ControllerName
}
