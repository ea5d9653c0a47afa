package resources

import (
	"fmt"

	userv1 "github.com/openshift/api/user/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
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
	get := func(resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources(resource).WithResourceNames(ServiceName(m)).WithVerbs("get")
	}
	return rbacv1ac.Role(roleName(m), m.Namespace).
		WithLabels(Labels(m, roleName(m))).
		WithAnnotations(map[string]string{
			annotationDisplayName: "Registry User " + m.Name,
			annotationDescription: "Can access Model Registry " + m.Name,
		}).
		WithRules(get("services").WithVerbs("create"), get("endpoints"))
}

// Group says nothing of users unless they are given: those whom administrators add are theirs.
func Group(m *v1beta1.ModelRegistry, users userv1.OptionalNames) runtime.ApplyConfiguration {
	return resources.Typed(capability.UserGroup, &userv1.Group{
		ObjectMeta: metav1.ObjectMeta{Name: UsersName(m), Labels: ClusterLabels(m, UsersName(m))}, Users: users,
	})
}

// roleBinding gives the group its right. Where OpenShift has no groups of its own, those of the identity provider count.
func roleBinding(m *v1beta1.ModelRegistry) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(UsersName(m), m.Namespace).
		WithLabels(Labels(m, UsersName(m))).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(roleName(m))).
		WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(UsersName(m)))
}

// DelegatorBinding lets the proxy ask who calls and what they may do.
func DelegatorBinding(m *v1beta1.ModelRegistry) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(DelegatorName(m)).
		WithLabels(ClusterLabels(m, DelegatorName(m))).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(ServiceName(m)).WithNamespace(m.Namespace))
}

// proxyConfig says which callers the proxy lets in: those that may get the Service of the registry.
func proxyConfig(m *v1beta1.ModelRegistry) (*corev1ac.ConfigMapApplyConfiguration, error) {
	data, err := rbacproxy.Config(rbacproxy.Attributes{
		APIVersion: "v1", Resource: "services", Verb: "get", Namespace: m.Namespace, Name: ServiceName(m),
	})
	if err != nil {
		return nil, fmt.Errorf("building ConfigMap %s: %w", ProxyConfigName(m), err)
	}
	return corev1ac.ConfigMap(ProxyConfigName(m), m.Namespace).WithLabels(Labels(m, ServiceName(m))).WithData(data), nil
}
