package resources

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelregistry"

// Labels in selectors of clients and other operators.
const (
	LabelApp          = "app"
	LabelComponent    = "component"
	labelName         = "app.kubernetes.io/name"
	labelInstance     = "app.kubernetes.io/instance"
	LabelAppComponent = "app.kubernetes.io/component"
	LabelCreatedBy    = "app.kubernetes.io/created-by"
	LabelPartOf       = "app.kubernetes.io/part-of"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	// LabelNamespace is the label with the namespace of the registry, on its objects outside of that namespace.
	LabelNamespace = servers.LabelNamespace

	PartOf            = "model-registry"
	DatabaseComponent = "model-registry-postgres"
	CreatedBy         = "model-registry-operator"
)

// LabelValue returns a name shortened to a valid label value.
func LabelValue(name string) string { return names.Truncate(name, validation.LabelValueMaxLength) }

// ServiceName returns the name of Service, Deployment and ServiceAccount of the server.
func ServiceName(m *v1beta1.ModelRegistry) string { return m.Name }

// DatabaseName returns the name of Service, Deployment and NetworkPolicy of a generated database, truncated for a Service.
func DatabaseName(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-postgres", validation.DNS1035LabelMaxLength)
}

// CredentialsName returns the name of the Secret with the password of a generated database.
func CredentialsName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-credentials" }

// ClaimName returns the name of the claim of a generated database.
func ClaimName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-storage" }

// DatabaseTLSName returns the name of the Secret with the certificate of a generated database.
func DatabaseTLSName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-tls" }

func roleName(m *v1beta1.ModelRegistry) string { return "registry-user-" + m.Name }

// UsersName returns the name of the Group and of its RoleBinding.
func UsersName(m *v1beta1.ModelRegistry) string { return m.Name + "-users" }

// DelegatorName returns the name of the ClusterRoleBinding with which the proxy creates token and access reviews.
func DelegatorName(m *v1beta1.ModelRegistry) string { return m.Name + "-auth-delegator" }

// ProxyConfigName returns the name of the ConfigMap of the proxy.
func ProxyConfigName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy-config" }

// ServingSecretName returns the name of the Secret with the serving certificate, unless the spec names others.
func ServingSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy" }

// PlainRouteName returns the name of the Route of spec.rest.serviceRoute.
func PlainRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-http" }

// SecureRouteName returns the name of the Route of spec.kubeRBACProxy.serviceRoute.
func SecureRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-https" }

// DatabaseEgressName returns the name of the NetworkPolicy that denies egress of a generated database.
func DatabaseEgressName(m *v1beta1.ModelRegistry) string { return DatabaseName(m) + "-egress" }

// GrantName returns the name of the ReferenceGrant of the registry. A ReferenceGrant for the namespace could not list enough Services.
func GrantName(m *v1beta1.ModelRegistry) string { return servers.SharedGrantName + "-" + m.Name }

// HTTPRouteName returns the name of the HTTPRoute of the registry in the namespace of the HTTPRoutes.
func HTTPRouteName(m *v1beta1.ModelRegistry) string { return "model-registry-" + m.Name }

// gatewayPath returns the path at the domain of the gateway, without leading and trailing slashes.
func gatewayPath(m *v1beta1.ModelRegistry) string { return "model-registry/" + m.Name }

// routeHostLabel returns the first label of the host of the Route or Ingress of the proxy.
func routeHostLabel(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-rest", validation.DNS1123LabelMaxLength)
}

// Labels returns the labels of an object of the registry. The instance is normally the name of the object.
func Labels(m *v1beta1.ModelRegistry, instance string) map[string]string {
	return map[string]string{
		LabelApp:          LabelValue(m.Name),
		LabelComponent:    PartOf,
		labelName:         LabelValue(m.Name),
		labelInstance:     LabelValue(instance),
		LabelAppComponent: PartOf,
		LabelCreatedBy:    CreatedBy,
		LabelPartOf:       PartOf,
		LabelManagedBy:    CreatedBy,
	}
}

// objectMeta returns the metadata of an object in the namespace of the registry.
func objectMeta(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: Labels(m, name)}
}

// databaseMeta returns the metadata of an object of a generated database.
func databaseMeta(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: databaseLabels(m)}
}

// ClusterLabels returns the labels of an object outside of the namespace of the registry.
func ClusterLabels(m *v1beta1.ModelRegistry, instance string) map[string]string {
	all := Labels(m, instance)
	all[LabelNamespace] = m.Namespace
	return all
}

// IsOfOtherComponent reports whether the labels of an object name another component.
func IsOfOtherComponent(object metav1.Object) bool {
	component, found := object.GetLabels()[LabelComponent]
	return apply.ManagedByOther(object, ComponentName) || found && component != PartOf && component != DatabaseComponent
}

// databaseLabels returns the labels of objects of a generated database.
func databaseLabels(m *v1beta1.ModelRegistry) map[string]string {
	all := Labels(m, DatabaseName(m))
	maps.Copy(all, map[string]string{
		LabelApp:          DatabaseName(m),
		LabelComponent:    DatabaseComponent,
		labelName:         DatabaseName(m),
		LabelAppComponent: "database",
	})
	return all
}

// ServerSelector returns the selector of the pods of the server. It must not change: Deployments of the legacy operator have it.
func ServerSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: PartOf, labelName: LabelValue(m.Name)}
}

// DatabaseSelector returns the selector of the pods of a generated database. It does not match pods of the server.
func DatabaseSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: PartOf, labelName: DatabaseName(m)}
}
