package resources

import (
	"slices"

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
	namespaceName    = "kubernetes.io/metadata.name"
)

// policies keep strangers from the pods. They are made while a cluster is suspended too: its pods may come at any time.
func policies(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	if !in.Mode.Policies {
		return desired
	}
	n := c.Names()
	if c.OwnSecurity().NetworkPolicy || in.PlatformKubeRay {
		n = c.HashedNames() // KubeRay's have the legacy names, and it would take ours for its own
	}
	desired.Add(
		policy(c, n.HeadPolicy, raycluster.NodeTypeHead, headRules(c, in)...),
		policy(c, n.WorkerPolicy, raycluster.NodeTypeWorker, workerRules(c, in)...),
	)
	return desired
}

func policy(c raycluster.Cluster, name, nodeType string, rules ...*rule) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return resources.IngressPolicy(metaOf(c, name), map[string]string{raycluster.LabelCluster: c.Name(), raycluster.LabelNodeType: nodeType}, rules...)
}

// headRules begin with those of the CodeFlare operator, in its order.
func headRules(c raycluster.Cluster, in Inputs) []*rule {
	rules := []*rule{from(nil, sameCluster(c))}
	if in.OpenToNamespace {
		rules = append(rules, from([]int32{c.Port(raycluster.PortClient), c.Port(raycluster.PortDashboard)}, resources.PodPeer(nil)))
	}
	ports := []int32{c.Port(raycluster.PortDashboard), c.Port(raycluster.PortClient)}
	if serves(c) {
		ports = append(ports, servePorts(c)...)
	}
	rules = slices.Concat(rules, kubeRayRule(in, ports), fromNamespaces(in.MonitoringNamespaces, c.Port(raycluster.PortMetrics)))
	open := []int32{raycluster.PortProxy}
	if in.encrypted(c) {
		open = append(open, c.Port(raycluster.PortClient))
	}
	rules = append(rules, from(open))
	if in.Exposure(c) == Bare { // nothing behind the routers knows who comes
		rules = append(rules, fromNamespaces(in.routers(), c.Port(raycluster.PortDashboard))...)
	}
	if serves(c) {
		rules = append(rules, serveRule(c, in))
	}
	return rules
}

// fromNamespaces admits namespaces, where any are named: no names would be all.
func fromNamespaces(names []string, ports ...int32) []*rule {
	if len(names) == 0 {
		return nil
	}
	return []*rule{from(ports, inNamespaces(names))}
}

// serveRule admits the users of a Serve application: pods of the namespace, and what routers bring.
func serveRule(c raycluster.Cluster, in Inputs) *rule {
	peers := []*peer{resources.PodPeer(nil)}
	if routers := in.routers(); len(routers) > 0 {
		peers = append(peers, inNamespaces(routers))
	}
	return from([]int32{c.Port(raycluster.PortServe)}, peers...)
}

func workerRules(c raycluster.Cluster, in Inputs) []*rule {
	rules := []*rule{from(nil, sameCluster(c))}
	if serves(c) { // every node that runs a replica answers requests
		rules = append(append(rules, kubeRayRule(in, servePorts(c))...), serveRule(c, in))
	}
	return rules
}

// servePorts are those that KubeRay calls to run a Serve application.
func servePorts(c raycluster.Cluster) []int32 {
	return []int32{c.Port(raycluster.PortAgent), c.Port(raycluster.PortServe)}
}

// serves tells whether the cluster belongs to a RayService.
func serves(c raycluster.Cluster) bool { return c.Owner() == "RayService" }

// kubeRayRule admits KubeRay, where it is known where that is.
func kubeRayRule(in Inputs, ports []int32) []*rule {
	if len(in.KubeRay) == 0 {
		return nil // no namespaces would be all
	}
	return []*rule{from(ports, inNamespaces(in.KubeRay).WithPodSelector(
		metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelComponent: kubeRayComponent})))}
}

// routers are the namespaces of the ingress controllers. Only settings name them on plain Kubernetes, where a tenant may be able
// to make a namespace of a usual name.
func (in Inputs) routers() []string {
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

// from makes a rule for some TCP ports, all for none, and some peers, any for none.
func from(ports []int32, peers ...*peer) *rule {
	return resources.AllowTCP(ports...).WithFrom(peers...)
}

func sameCluster(c raycluster.Cluster) *peer {
	return resources.PodPeer(map[string]string{raycluster.LabelCluster: c.Name()})
}

// inNamespaces selects namespaces by name; the label is set by Kubernetes, so no tenant can give it to another namespace.
func inNamespaces(names []string) *peer {
	return networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().
		WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(namespaceName).WithOperator(metav1.LabelSelectorOpIn).WithValues(slices.Clone(names)...)))
}
