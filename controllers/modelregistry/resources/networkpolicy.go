package resources

import (
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

type policyConfig = networkingv1ac.NetworkPolicyApplyConfiguration

// ingressPolicy closes the port of the server to everything but the proxy in the same pod, once no pods without a proxy serve.
// The port of the proxy is open to all, because every request is authorized, unless there is a Route: then the policy of the
// Route says who may come.
func ingressPolicy(m *v1beta1.ModelRegistry, in Inputs) *policyConfig {
	policy := resources.IngressPolicy(metaOf(m, ingressPolicyName(m)), ServerSelector(m))
	if !routed(m, in) {
		policy.Spec.WithIngress(resources.AllowTCP(proxyPort(m)))
	}
	if in.Opening {
		policy.Spec.WithIngress(resources.AllowTCP(restPort(m)))
	}
	return policy
}

// routePolicy lets the router in, and the namespaces that the platform has made, among them that of the dashboard.
func routePolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.RouterPolicy(metaOf(m, RoutePolicyName(m)), ServerSelector(m), proxyPort(m))
}

// egressPolicy lets the server out: to its database, which may be anywhere, and to the API server for its proxy.
func egressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.EgressPolicy(metaOf(m, egressPolicyName(m)), ServerSelector(m), resources.Anywhere())
}

// databaseEgress keeps a generated database from calling anyone; it answers all the same.
func databaseEgress(m *v1beta1.ModelRegistry) *policyConfig {
	meta := metaOf(m, DatabaseEgressName(m))
	meta.Labels = databaseLabels(m)
	return resources.EgressPolicy(meta, DatabaseSelector(m))
}

// databasePolicy lets only the server reach a generated database, and its backups.
func databasePolicy(m *v1beta1.ModelRegistry) *policyConfig {
	meta := metaOf(m, DatabaseName(m))
	meta.Labels = databaseLabels(m)
	clients := resources.AllowTCP(v1beta1.DefaultPostgresPort).WithFrom(resources.PodsWith(ServerSelector(m)))
	if m.Spec.Postgres.Backup != nil {
		clients.WithFrom(resources.PodsWith(backupSelector(m)))
	}
	return resources.IngressPolicy(meta, DatabaseSelector(m), clients)
}
