package resources

import (
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Annotations that the dashboard shows.
const (
	annotationDisplayName = "openshift.io/display-name"
	annotationDescription = "openshift.io/description"
)

func serviceAccount(m *v1beta1.ModelRegistry) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(ServiceName(m), m.Namespace).WithLabels(Labels(m, ServiceName(m)))
}

// role is what users of the registry are bound to, by us or by hand: the rights that the proxy asks for. Newer proxies ask for get
// whatever the method, older ones for create when something is posted. The latter gives nothing but that: the API server never
// grants a creation by name.
func role(m *v1beta1.ModelRegistry) *rbacv1ac.RoleApplyConfiguration {
	meta := objectMeta(m, roleName(m))
	meta.Annotations = map[string]string{
		annotationDisplayName: "Registry User " + m.Name,
		annotationDescription: "Can access Model Registry " + m.Name,
	}
	return registry.ReaderRole(meta, ServiceName(m), "create")
}

// Group says nothing of users unless they are given: those whom administrators add are theirs.
func Group(m *v1beta1.ModelRegistry, users userv1.OptionalNames) runtime.ApplyConfiguration {
	return resources.Typed(capability.UserGroup, &userv1.Group{
		ObjectMeta: metav1.ObjectMeta{Name: UsersName(m), Labels: ClusterLabels(m, UsersName(m))}, Users: users,
	})
}

// roleBinding gives the group its right. Where OpenShift has no groups of its own, those of the identity provider count.
func roleBinding(m *v1beta1.ModelRegistry) *rbacv1ac.RoleBindingApplyConfiguration {
	return registry.BindGroups(objectMeta(m, UsersName(m)), roleName(m), UsersName(m))
}

// DelegatorBinding lets the proxy ask who calls and what they may do.
func DelegatorBinding(m *v1beta1.ModelRegistry) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return registry.Delegation(clusterMeta(m, DelegatorName(m)), ServiceName(m))
}

// proxyConfig says which callers the proxy lets in: those that may get the Service of the registry.
func proxyConfig(m *v1beta1.ModelRegistry) (*corev1ac.ConfigMapApplyConfiguration, error) {
	meta := objectMeta(m, ProxyConfigName(m))
	meta.Labels = Labels(m, ServiceName(m))
	return registry.ProxyConfig(meta, ServiceName(m))
}

type policyConfig = networkingv1ac.NetworkPolicyApplyConfiguration

// ingressPolicy closes the port of the server to everything but the proxy in the same pod, once no pods without a proxy serve.
// The port of the proxy is open to all, because every request is authorized, unless there is a Route: then the policy of the
// Route says who may come.
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

// routePolicy lets the router in, and the namespaces that the platform has made, among them that of the dashboard.
func routeIngressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.RouterPolicy(objectMeta(m, RoutePolicyName(m)), ServerSelector(m), proxyPort(m))
}

// egressPolicy lets the server out: to its database, which may be anywhere, and to the API server for its proxy.
func egressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.EgressPolicy(objectMeta(m, m.Name+"-egress"), ServerSelector(m), resources.Anywhere())
}

// databaseEgress keeps a generated database from calling anyone; it answers all the same.
func databaseEgressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	return resources.EgressPolicy(databaseMeta(m, DatabaseEgressName(m)), DatabaseSelector(m))
}

// databasePolicy lets only the server reach a generated database, and its backups.
func databaseIngressPolicy(m *v1beta1.ModelRegistry) *policyConfig {
	clients := resources.AllowTCP(v1beta1.DefaultPostgresPort).WithFrom(resources.PodsWith(ServerSelector(m)))
	if m.Spec.Postgres.Backup != nil {
		clients.WithFrom(resources.PodsWith(backupSelector(m)))
	}
	return resources.IngressPolicy(databaseMeta(m, DatabaseName(m)), DatabaseSelector(m), clients)
}
