package resources

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

// Labels that clients and other operators select by.
const (
	LabelApp          = "app"
	LabelComponent    = "component"
	labelName         = "app.kubernetes.io/name"
	labelInstance     = "app.kubernetes.io/instance"
	LabelAppComponent = "app.kubernetes.io/component"
	LabelCreatedBy    = "app.kubernetes.io/created-by"
	LabelPartOf       = "app.kubernetes.io/part-of"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	// LabelNamespace names the namespace of the registry on objects outside of it.
	LabelNamespace = "modelregistry.opendatahub.io/namespace"

	PartOf            = "model-registry"
	DatabaseComponent = "model-registry-postgres"
	CreatedBy         = "model-registry-operator"
)

// LabelOf is a value that a label can hold, whatever the length of the name.
func LabelValue(name string) string { return names.Truncate(name, validation.LabelValueMaxLength) }

// ServiceName is the name of Service, Deployment and ServiceAccount of the server.
func ServiceName(m *v1beta1.ModelRegistry) string { return m.Name }

// DatabaseName is the name of Service, Deployment and NetworkPolicy of a generated database. The Service gives the limit.
func DatabaseName(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-postgres", validation.DNS1035LabelMaxLength)
}

// CredentialsName is the Secret with the password of a generated database.
func CredentialsName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-credentials" }

// ClaimName is the volume claim of a generated database.
func ClaimName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-storage" }

// DatabaseTLSName is the Secret with the certificate of a generated database.
func DatabaseTLSName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-tls" }

func roleName(m *v1beta1.ModelRegistry) string { return "registry-user-" + m.Name }

// UsersName is the name of the Group, and of the RoleBinding that gives it the Role.
func UsersName(m *v1beta1.ModelRegistry) string { return m.Name + "-users" }

// DelegatorName is the ClusterRoleBinding that lets the proxy review tokens and accesses.
func DelegatorName(m *v1beta1.ModelRegistry) string { return m.Name + "-auth-delegator" }

// ProxyConfigName is the ConfigMap of the proxy.
func ProxyConfigName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy-config" }

// ServingSecretName is the Secret with the serving certificate unless the spec names others.
func ServingSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy" }

// CookieSecretName is the Secret that the original left when oauth-proxy went.
func CookieSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-oauth-cookie-secret" }

// PlainRouteName is the Route without TLS.
func PlainRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-http" }

// SecureRouteName is the Route with TLS.
func SecureRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-https" }

// RoutePolicyName is the NetworkPolicy that lets the router of OpenShift in.
func RoutePolicyName(m *v1beta1.ModelRegistry) string { return m.Name + "-https-route" }

// DatabaseEgressName is the NetworkPolicy that keeps a generated database from calling anyone.
func DatabaseEgressName(m *v1beta1.ModelRegistry) string { return DatabaseName(m) + "-egress" }

// GrantName is the ReferenceGrant of the registry: the list of Services of one for all is too short for a namespace.
func GrantName(m *v1beta1.ModelRegistry) string { return registry.SharedGrantName + "-" + m.Name }

// HTTPRouteName is the HTTPRoute of the registry in the namespace of the gateway.
func HTTPRouteName(m *v1beta1.ModelRegistry) string { return "model-registry-" + m.Name }

// gatewayPath is the path below the domain of the gateway, without slashes at its ends.
func gatewayPath(m *v1beta1.ModelRegistry) string { return "model-registry/" + m.Name }

// routeHostLabel is the first label of the host of Route N-https.
func routeHostLabel(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-rest", validation.DNS1123LabelMaxLength)
}

// Labels are those of an object of the registry. The instance is the name of the object as a rule.
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

// metaOf is the metadata of an object in the namespace of the registry.
func objectMeta(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: Labels(m, name)}
}

// databaseMeta is the same for objects of a generated database, clusterMeta for those that no registry can own.
func databaseMeta(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: databaseLabels(m)}
}

func clusterMeta(m *v1beta1.ModelRegistry, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Namespace, Labels: ClusterLabels(m, name)}
}

// ClusterLabels are labels of an object outside of the namespace of the registry.
func ClusterLabels(m *v1beta1.ModelRegistry, instance string) map[string]string {
	all := Labels(m, instance)
	all[LabelNamespace] = m.Namespace
	return all
}

// databaseLabels are those of objects of a generated database.
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

// ServerSelector finds the pods of the server. It cannot change: Deployments of the originals carry it.
func ServerSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: PartOf, labelName: LabelValue(m.Name)}
}

// DatabaseSelector finds the pods of a generated database; the pods of the server do not match.
func DatabaseSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: PartOf, labelName: DatabaseName(m)}
}
