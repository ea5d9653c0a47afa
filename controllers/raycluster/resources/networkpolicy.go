package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

type (
	peer = networkingv1ac.NetworkPolicyPeerApplyConfiguration
	rule = networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration
)

const (
	labelComponent   = "app.kubernetes.io/component"
	kubeRayComponent = "kuberay-operator"
)

// networkPolicies returns the NetworkPolicies of head and workers, also for a suspended cluster: its pods may be created at any time.
func networkPolicies(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	if !in.Mode.Policies {
		return desired
	}
	names := c.Names()
	if c.UserSecurity().NetworkPolicy || in.HasPlatformKubeRay {
		names = c.HashedNames() // KubeRay uses the legacy names, and would adopt or delete such a policy
	}
	desired.Add(
		networkPolicy(c, names.HeadPolicy, raycluster.NodeTypeHead, headRules(c, in)...),
		networkPolicy(c, names.WorkerPolicy, raycluster.NodeTypeWorker, workerRules(c, in)...),
	)
	return desired
}

func networkPolicy(c raycluster.Cluster, name, nodeType string, rules ...*rule) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return resources.IngressPolicy(objectMeta(c, name), map[string]string{raycluster.LabelCluster: c.Name(), raycluster.LabelNodeType: nodeType}, rules...)
}

// headRules returns the rules of the head, beginning with the rules of the CodeFlare operator in the same order.
func headRules(c raycluster.Cluster, in Inputs) []*rule {
	rules := []*rule{ingressRule(nil, clusterPeer(c))}
	if in.OpenToNamespace {
		rules = append(rules, ingressRule([]int32{c.Port(raycluster.PortClient), c.Port(raycluster.PortDashboard)}, resources.PodPeer(nil)))
	}
	ports := []int32{c.Port(raycluster.PortDashboard), c.Port(raycluster.PortClient)}
	if isRayService(c) {
		ports = append(ports, servePorts(c)...)
	}
	rules = slices.Concat(rules, kubeRayRules(in, ports), namespaceRules(in.MonitoringNamespaces, c.Port(raycluster.PortMetrics)))
	authenticatedPorts := []int32{raycluster.PortProxy}
	if in.clientPortEncrypted(c) {
		authenticatedPorts = append(authenticatedPorts, c.Port(raycluster.PortClient))
	}
	rules = append(rules, ingressRule(authenticatedPorts))
	if in.Exposure(c) == Direct { // only for routers, because no sidecar authenticates callers
		rules = append(rules, namespaceRules(in.routerNamespaces(), c.Port(raycluster.PortDashboard))...)
	}
	if isRayService(c) {
		rules = append(rules, serveRule(c, in))
	}
	return rules
}

// namespaceRules returns a rule for namespaces, or nil for no names: the API server rejects the operator In without values.
func namespaceRules(names []string, ports ...int32) []*rule {
	if len(names) == 0 {
		return nil
	}
	return []*rule{ingressRule(ports, namespacePeer(names))}
}

// serveRule allows pods of the namespace, and the routers, to call a Serve application.
func serveRule(c raycluster.Cluster, in Inputs) *rule {
	peers := []*peer{resources.PodPeer(nil)}
	if routers := in.routerNamespaces(); len(routers) > 0 {
		peers = append(peers, namespacePeer(routers))
	}
	return ingressRule([]int32{c.Port(raycluster.PortServe)}, peers...)
}

func workerRules(c raycluster.Cluster, in Inputs) []*rule {
	rules := []*rule{ingressRule(nil, clusterPeer(c))}
	if isRayService(c) { // each node with a replica serves requests
		rules = append(append(rules, kubeRayRules(in, servePorts(c))...), serveRule(c, in))
	}
	return rules
}

// servePorts returns the ports that KubeRay calls to run a Serve application.
func servePorts(c raycluster.Cluster) []int32 {
	return []int32{c.Port(raycluster.PortAgent), c.Port(raycluster.PortServe)}
}

// isRayService reports whether a RayService owns the cluster.
func isRayService(c raycluster.Cluster) bool { return c.OwnerKind() == "RayService" }

// kubeRayRules allow KubeRay to connect from its namespaces.
func kubeRayRules(in Inputs, ports []int32) []*rule {
	if len(in.KubeRay) == 0 {
		return nil // the API server rejects the operator In without values
	}
	return []*rule{ingressRule(ports, namespacePeer(in.KubeRay).WithPodSelector(
		metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelComponent: kubeRayComponent})))}
}

// routerNamespaces returns the namespaces of the ingress controllers. On plain Kubernetes only settings define them, since tenants may be
// able to create a namespace of a well-known name.
func (in Inputs) routerNamespaces() []string {
	switch {
	case len(in.IngressNamespaces) > 0:
		return in.IngressNamespaces
	case in.Publish == config.PublishGateway && in.GatewayNamespace != "":
		return []string{in.GatewayNamespace}
	case in.OpenShift:
		return []string{config.OpenShiftGateways}
	default:
		return nil
	}
}

// ingressRule allows TCP ports, or all if none is given, from peers, or from everywhere if none is given.
func ingressRule(ports []int32, peers ...*peer) *rule {
	return resources.AllowTCP(ports...).WithFrom(peers...)
}

func clusterPeer(c raycluster.Cluster) *peer {
	return resources.PodPeer(map[string]string{raycluster.LabelCluster: c.Name()})
}

// namespacePeer selects namespaces by the name label. Kubernetes sets that label, so no tenant can set it on another namespace.
func namespacePeer(names []string) *peer {
	return networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().
		WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(corev1.LabelMetadataName).WithOperator(metav1.LabelSelectorOpIn).WithValues(slices.Clone(names)...)))
}
