package companion

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh/authproxy"
)

const (
	// peerPort is where the pods of the mesh speak to each other.
	peerPort = 8080

	labelManagedBy = "app.kubernetes.io/managed-by"
	labelService   = "modelmesh-service"
	managedBy      = "modelmesh-controller"
	// labelRouters is on the namespaces of OpenShift's routers.
	labelRouters, routers = "network.openshift.io/policy-group", "ingress"
)

// policy guards the pods of runtimes: what the mesh says to itself is heard from its own pods only, and ports that are nobody's
// business, such as that of the model server's management, from nobody. Restricted, and wherever a proxy guards REST, the ports that
// ask nobody who he is are open to the namespace, the manager and routers only.
func policy(in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	s := in.Settings
	peers := networkingv1ac.NetworkPolicyPeer().WithPodSelector(
		metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelManagedBy: managedBy}))
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
		WithIngress(rule(s.ServicePort, peerPort).WithFrom(peers))
	if s.NetworkPolicyRestricted || in.Proxy != nil { // the proxy would guard one door of two
		spec.WithIngress(rule(unguarded...).WithFrom(confidants(in)...))
	} else {
		open = append(unguarded, open...)
	}
	if len(open) > 0 {
		spec.WithIngress(rule(open...))
	}
	return networkingv1ac.NetworkPolicy(PolicyName, in.Namespace).WithSpec(spec)
}

// confidants may call ports that ask nobody who he is.
func confidants(in Inputs) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	namespaces := func(key, value string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
		return networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{key: value}))
	}
	all := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector()), namespaces(corev1.LabelMetadataName, in.Home),
	}
	if in.OpenShift {
		all = append(all, namespaces(labelRouters, routers))
	}
	return all
}

func rule(ports ...int32) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	r := networkingv1ac.NetworkPolicyIngressRule()
	for _, port := range ports {
		r.WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	}
	return r
}

// runtimePods selects the pods of all runtimes of a namespace.
func runtimePods() *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{labelManagedBy: managedBy}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement().WithKey(labelService).WithOperator(metav1.LabelSelectorOpExists))
}

// samePods recognises the policy that the original installed beside itself.
func samePods(live *unstructured.Unstructured) bool {
	labels, _, err := unstructured.NestedStringMap(live.Object, "spec", "podSelector", "matchLabels")
	return err == nil && labels[labelManagedBy] == managedBy
}
