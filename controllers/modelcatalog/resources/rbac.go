package resources

import (
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

func serviceAccount(c *aihubv1alpha1.Catalog) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(Name, c.Namespace).WithLabels(Labels(Name))
}

// readerRole is the right that the proxy asks for.
func readerRole(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleApplyConfiguration {
	get := func(resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources(resource).WithResourceNames(Name).WithVerbs("get")
	}
	return rbacv1ac.Role(Name, c.Namespace).WithLabels(Labels(Name)).
		WithAnnotations(map[string]string{
			annotationDisplayName: "Model catalog User", annotationDescription: "Can access model catalog",
		}).
		WithRules(get("services"), get("endpoints"))
}

func readerBinding(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(ReadersBinding, c.Namespace).WithLabels(Labels(Name)).
		WithRoleRef(role(Name)).
		WithSubjects(group("system:authenticated"))
}

// adminRole lets administrators change the ConfigMaps that hold the sources, and see all, labelled ones among them. Secrets
// are none of its business: those of the namespace hold the passwords of every registry.
func adminRole(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleApplyConfiguration {
	maps := func(verbs ...string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("configmaps").WithVerbs(verbs...)
	}
	return rbacv1ac.Role(AdminName, c.Namespace).WithLabels(Labels(Name)).
		WithAnnotations(map[string]string{
			annotationDisplayName: "Model Catalog Admin", annotationDescription: "Can change the sources of the model catalog",
		}).
		WithRules(
			maps("update", "patch").WithResourceNames(ModelSources, McpSources, AgentSources, RuntimeSources),
			maps("get", "list", "watch"), // a list by names would not show the labelled sources
		)
}

func adminRoleBinding(c *aihubv1alpha1.Catalog, groups []string) *rbacv1ac.RoleBindingApplyConfiguration {
	binding := rbacv1ac.RoleBinding(AdminBinding, c.Namespace).WithLabels(Labels(Name)).
		WithAnnotations(map[string]string{
			annotationDisplayName: "Model Catalog Admin", annotationDescription: "Lets the administrators of the platform change the sources of the model catalog",
		}).
		WithRoleRef(role(AdminName))
	for _, name := range groups {
		binding.WithSubjects(group(name))
	}
	return binding
}

// delegation lets the proxy ask the API server who a caller is and what he may do.
func delegation(c *aihubv1alpha1.Catalog) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(DelegatorBinding).
		WithLabels(withLabels(Name, map[string]string{LabelNamespace: c.Namespace})).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(c.Namespace).WithName(Name))
}

// proxyConfigMap says which right callers need: those that may get the Service may use the catalog.
func proxyConfigMap(c *aihubv1alpha1.Catalog) (*corev1ac.ConfigMapApplyConfiguration, error) {
	data, err := rbacproxy.Config(rbacproxy.Attributes{
		APIVersion: "v1", Resource: "services", Verb: "get", Namespace: c.Namespace, Name: Name,
	})
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(ProxyConfig, c.Namespace).WithLabels(Labels(Name)).WithData(data), nil
}

func role(name string) *rbacv1ac.RoleRefApplyConfiguration {
	return rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)
}

func group(name string) *rbacv1ac.SubjectApplyConfiguration {
	return rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(name)
}
