package modelregistry

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Labels that clients and other operators select by.
const (
	labelApp          = "app"
	labelComponent    = "component"
	labelName         = "app.kubernetes.io/name"
	labelInstance     = "app.kubernetes.io/instance"
	labelAppComponent = "app.kubernetes.io/component"
	labelCreatedBy    = "app.kubernetes.io/created-by"
	labelPartOf       = "app.kubernetes.io/part-of"
	labelManagedBy    = "app.kubernetes.io/managed-by"
	// labelNamespace tells objects outside of the namespace of a registry whose they are.
	labelNamespace = "modelregistry.opendatahub.io/namespace"

	partOf            = "model-registry"
	databaseComponent = "model-registry-postgres"
	createdBy         = "model-registry-operator"
)

// sharedGrantName is the ReferenceGrant that all registries of a namespace shared under the original. It named no Service, and
// the list of Services of a grant is too short for a namespace, so there is one for each registry now.
const sharedGrantName = "allow-gateway-httproutes"

// labelOf is a value that a label can hold, whatever the length of the name.
func labelOf(name string) string { return names.Truncate(name, validation.LabelValueMaxLength) }

// serviceName is the name of Service, Deployment and ServiceAccount of the server.
func serviceName(m *v1beta1.ModelRegistry) string { return m.Name }

// databaseName is the name of Service, Deployment and NetworkPolicy of a generated database. The Service gives the limit.
func databaseName(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-postgres", validation.DNS1035LabelMaxLength)
}

func credentialsName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-credentials" }

func claimName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-storage" }

func roleName(m *v1beta1.ModelRegistry) string { return "registry-user-" + m.Name }

// usersName is the name of the Group, and of the RoleBinding that gives it the Role.
func usersName(m *v1beta1.ModelRegistry) string { return m.Name + "-users" }

func delegatorName(m *v1beta1.ModelRegistry) string { return m.Name + "-auth-delegator" }

func proxyConfigName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy-config" }

// servingSecretName is the Secret with the serving certificate unless the spec names others.
func servingSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-kube-rbac-proxy" }

// cookieSecretName is the Secret that the original left when oauth-proxy went.
func cookieSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-oauth-cookie-secret" }

func plainRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-http" }

func secureRouteName(m *v1beta1.ModelRegistry) string { return m.Name + "-https" }

// routePolicyName is the NetworkPolicy that lets the router of OpenShift in.
func routePolicyName(m *v1beta1.ModelRegistry) string { return m.Name + "-https-route" }

// ingressPolicyName is the NetworkPolicy that closes every port but that of the proxy.
func ingressPolicyName(m *v1beta1.ModelRegistry) string { return m.Name + "-ingress" }

func grantName(m *v1beta1.ModelRegistry) string { return sharedGrantName + "-" + m.Name }

func httpRouteName(m *v1beta1.ModelRegistry) string { return "model-registry-" + m.Name }

// gatewayPath is the path below the domain of the gateway, without slashes at its ends.
func gatewayPath(m *v1beta1.ModelRegistry) string { return "model-registry/" + m.Name }

// routeHostLabel is the first label of the host of Route N-https.
func routeHostLabel(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-rest", validation.DNS1123LabelMaxLength)
}

// labels are those of an object of the registry. The instance is the name of the object as a rule.
func labels(m *v1beta1.ModelRegistry, instance string) map[string]string {
	return map[string]string{
		labelApp:          labelOf(m.Name),
		labelComponent:    partOf,
		labelName:         labelOf(m.Name),
		labelInstance:     labelOf(instance),
		labelAppComponent: partOf,
		labelCreatedBy:    createdBy,
		labelPartOf:       partOf,
		labelManagedBy:    createdBy,
	}
}

// clusterLabels are labels of an object outside of the namespace of the registry.
func clusterLabels(m *v1beta1.ModelRegistry, instance string) map[string]string {
	all := labels(m, instance)
	all[labelNamespace] = m.Namespace
	return all
}

// databaseLabels are those of objects of a generated database.
func databaseLabels(m *v1beta1.ModelRegistry) map[string]string {
	all := labels(m, databaseName(m))
	maps.Copy(all, map[string]string{
		labelApp:          databaseName(m),
		labelComponent:    databaseComponent,
		labelName:         databaseName(m),
		labelAppComponent: "database",
	})
	return all
}

// selector finds the pods of the server. It cannot change: Deployments of the originals carry it.
func selector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{labelApp: labelOf(m.Name), labelComponent: partOf, labelName: labelOf(m.Name)}
}

// databaseSelector finds the pods of a generated database; the pods of the server do not match.
func databaseSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{labelApp: labelOf(m.Name), labelComponent: partOf, labelName: databaseName(m)}
}
