package resources

import (
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Annotations shown by the dashboard.
const (
	annotationDisplayName = "openshift.io/display-name"
	annotationDescription = "openshift.io/description"
)

func serviceAccount(m *v1beta1.ModelRegistry) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(ServiceName(m), m.Namespace).WithLabels(Labels(m, ServiceName(m)))
}

// userRole returns the Role that users of the registry are bound to. Newer proxies check get for every method, older ones check create for
// POST. Create by name grants nothing else, because the API server does not authorize creations by name.
func userRole(m *v1beta1.ModelRegistry) *rbacv1ac.RoleApplyConfiguration {
	meta := objectMeta(m, roleName(m))
	meta.Annotations = map[string]string{
		annotationDisplayName: "Registry User " + m.Name,
		annotationDescription: "Can access Model Registry " + m.Name,
	}
	return registry.ReaderRole(meta, ServiceName(m), "create")
}

// Group returns the Group. Without users it does not own that field, because administrators add them.
func Group(m *v1beta1.ModelRegistry, users userv1.OptionalNames) runtime.ApplyConfiguration {
	return resources.Typed(capability.UserGroup, &userv1.Group{
		ObjectMeta: metav1.ObjectMeta{Name: UsersName(m), Labels: ClusterLabels(m, UsersName(m))}, Users: users,
	})
}

// userRoleBinding binds the group to the Role. Without Groups of OpenShift, those of the identity provider have this name.
func userRoleBinding(m *v1beta1.ModelRegistry) *rbacv1ac.RoleBindingApplyConfiguration {
	return registry.GroupRoleBinding(objectMeta(m, UsersName(m)), roleName(m), UsersName(m))
}

// DelegatorBinding allows the proxy to create token and access reviews.
func DelegatorBinding(m *v1beta1.ModelRegistry) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return registry.AuthDelegatorBinding(clusterMeta(m, DelegatorName(m)), ServiceName(m))
}

// proxyConfig returns the ConfigMap of the proxy, which admits callers that may get the Service of the registry.
func proxyConfig(m *v1beta1.ModelRegistry) (*corev1ac.ConfigMapApplyConfiguration, error) {
	meta := objectMeta(m, ProxyConfigName(m))
	meta.Labels = Labels(m, ServiceName(m))
	return registry.ProxyConfig(meta, ServiceName(m))
}
