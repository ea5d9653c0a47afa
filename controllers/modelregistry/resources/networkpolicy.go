package resources

import (
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

type policyConfig = networkingv1ac.NetworkPolicyApplyConfiguration

// ingressPolicy admits only the port of the proxy, and the port of the server while pods without a proxy are running. With a Route,
// [routeIngressPolicy] admits the clients of the proxy; otherwise every client is admitted, because the proxy authorizes requests.
func ingressPolicy(m *v1beta1.ModelRegistry, in Inputs) *policyConfig {
	policy := resources.IngressPolicy(objectMeta(m, m.Name+"-ingress"), ServerSelector(m))
	if !hasRoute(m, in) {
		policy.Spec.WithIngress(resources.AllowTCP(proxyPort(m)))
	}
	if in.ProxyPending {
		policy.Spec.WithIngress(resources.AllowTCP(restPort(m)))
	}
	return policy
}

// routeIngressPolicy admits the router and the namespaces of the platform, such as that of the dashboard.
func routeIngressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.RouterPolicy(objectMeta(m, RoutePolicyName(m)), ServerSelector(m), proxyPort(m))
}

// egressPolicy allows all egress: the database can be anywhere, and the proxy calls the API server.
func egressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.EgressPolicy(objectMeta(m, m.Name+"-egress"), ServerSelector(m), resources.AllowAllEgress())
}

// databaseEgressPolicy denies all egress of a generated database. Replies are not affected.
func databaseEgressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.EgressPolicy(databaseMeta(m, DatabaseEgressName(m)), DatabaseSelector(m))
}

// databaseIngressPolicy admits only the server and the backups.
func databaseIngressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	clients := resources.AllowTCP(v1beta1.DefaultPostgresPort).WithFrom(resources.PodPeer(ServerSelector(m)))
	if m.Spec.Postgres.Backup != nil {
		clients.WithFrom(resources.PodPeer(backupSelector(m)))
	}
	return resources.IngressPolicy(databaseMeta(m, DatabaseName(m)), DatabaseSelector(m), clients)
}
