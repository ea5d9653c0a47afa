package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

func serviceAccount(c *aihubv1alpha1.Catalog) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(Name, c.Namespace).WithLabels(Labels(Name))
}

func describedMeta(c *aihubv1alpha1.Catalog, object, name, description string) metav1.ObjectMeta {
	meta := objectMeta(c, object)
	meta.Annotations = map[string]string{annotationDisplayName: name, annotationDescription: description}
	return meta
}

// readerRole grants the permissions that the proxy checks.
func readerRole(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleApplyConfiguration {
	return registry.ReaderRole(describedMeta(c, Name, "Model catalog User", "Can access model catalog"), Name)
}

func readerBinding(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleBindingApplyConfiguration {
	return registry.GroupRoleBinding(objectMeta(c, ReadersBinding), Name, "system:authenticated")
}

// adminRole grants update on the ConfigMaps of users and read on all ConfigMaps, including labelled ones. It grants nothing on Secrets,
// which include passwords of registries.
func adminRole(c *aihubv1alpha1.Catalog) *rbacv1ac.RoleApplyConfiguration {
	maps := func(verbs ...string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("configmaps").WithVerbs(verbs...)
	}
	meta := describedMeta(c, AdminName, "Model Catalog Admin", "Can change the sources of the model catalog")
	return rbacv1ac.Role(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).WithRules(
		maps("update", "patch").WithResourceNames(ModelSources, McpSources, AgentSources, RuntimeSources),
		maps("get", "list", "watch"), // a list restricted to names would omit labelled sources
	)
}

func adminRoleBinding(c *aihubv1alpha1.Catalog, groups []string) *rbacv1ac.RoleBindingApplyConfiguration {
	meta := describedMeta(c, AdminBinding, "Model Catalog Admin",
		"Lets the administrators of the platform change the sources of the model catalog")
	return registry.GroupRoleBinding(meta, AdminName, groups...)
}

// authDelegatorBinding allows the proxy to create token and access reviews.
func authDelegatorBinding(c *aihubv1alpha1.Catalog) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return registry.AuthDelegatorBinding(clusterMeta(c, DelegatorBinding), Name)
}
