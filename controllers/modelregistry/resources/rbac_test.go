package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// [modelregistry-65]
func TestRole(t *testing.T) {
	r := decodeObject[rbacv1.Role](t, buildObjects(t, registrytest.Registry(), plain), "Role", "registry-user-team-a")
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"team-a"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{""}, Resources: []string{"endpoints"}, ResourceNames: []string{"team-a"}, Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(want, r.Rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.Namespace != "lab-registries" {
		t.Errorf("the Role is in namespace %s", r.Namespace)
	}
	annotations := map[string]string{
		"openshift.io/display-name": "Registry User team-a", "openshift.io/description": "Can access Model Registry team-a",
	}
	if diff := cmp.Diff(annotations, r.Annotations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// [modelregistry-27] [modelregistry-32] The ServiceAccount of the proxy may create token and access reviews.
func TestDelegator(t *testing.T) {
	b := decodeObject[rbacv1.ClusterRoleBinding](t, buildObjects(t, registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift), "ClusterRoleBinding", "team-a-auth-delegator")
	if want := (rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:auth-delegator"}); b.RoleRef != want {
		t.Errorf("role %+v", b.RoleRef)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: "team-a", Namespace: "lab-registries"}}, b.Subjects); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if b.Labels["modelregistry.opendatahub.io/namespace"] != "lab-registries" || len(b.OwnerReferences) != 0 {
		t.Errorf("labels %v, owners %v", b.Labels, b.OwnerReferences)
	}
}

// [modelregistry-27] [S4] The proxy checks one permission: get on the Service of the registry.
func TestProxyConfig(t *testing.T) {
	config := decodeObject[corev1.ConfigMap](t, buildObjects(t, registrytest.Registry(registrytest.AddProxy), plain), "ConfigMap", "team-a-kube-rbac-proxy-config")
	var got map[string]any
	if err := yaml.UnmarshalStrict([]byte(config.Data["config-file.yaml"]), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"authorization": map[string]any{"resourceAttributes": map[string]any{
		"apiVersion": "v1", "resource": "services", "verb": "get", "namespace": "lab-registries", "name": "team-a",
	}}}
	if diff := cmp.Diff(want, got); diff != "" || len(config.Data) != 1 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// [modelregistry-29] [D5] The Group does not set users, because administrators add them.
func TestGroup(t *testing.T) {
	objects := buildObjects(t, registrytest.Registry(), openshift)
	if fields := findObject(objects, "Group", "team-a-users").Object; len(fields) != 3 || fields["metadata"] == nil {
		t.Errorf("the Group has more than its metadata: %v", fields)
	}
	b := decodeObject[rbacv1.RoleBinding](t, objects, "RoleBinding", "team-a-users")
	want := []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "team-a-users"}}
	if diff := cmp.Diff(want, b.Subjects); diff != "" || b.RoleRef.Name != "registry-user-team-a" || b.RoleRef.Kind != "Role" {
		t.Errorf("role %+v, subjects (-want +got):\n%s", b.RoleRef, diff)
	}
}

// [D5] The ServiceAccount sets no fields, because other clients own its pull secrets.
func TestServiceAccountHasNoFields(t *testing.T) {
	fields := findObject(buildObjects(t, registrytest.Registry(), openshift), "ServiceAccount", "team-a").Object
	if len(fields) != 3 || fields["metadata"] == nil {
		t.Errorf("the ServiceAccount has more than its metadata: %v", fields)
	}
}

// Objects in the namespace are controlled by the registry; others name it in their labels.
func TestOnlyObjectsInNamespaceHaveControllerReference(t *testing.T) {
	m := registrytest.Registry(registrytest.AddProxy, registrytest.SetOptionalFields)
	for _, o := range buildObjects(t, m, gateway) {
		switch o.GetKind() {
		case "Group", "ClusterRoleBinding", "HTTPRoute":
			if len(o.GetOwnerReferences()) != 0 || o.GetLabels()[LabelNamespace] != "lab-registries" {
				t.Errorf("%s: owners %v, labels %v", o.GetKind(), o.GetOwnerReferences(), o.GetLabels())
			}
		default:
			if !metav1.IsControlledBy(o, m) || o.GetNamespace() != "lab-registries" {
				t.Errorf("%s %s in %s is not controlled by its registry", o.GetKind(), o.GetName(), o.GetNamespace())
			}
		}
		if o.GetLabels()["app"] != "team-a" || o.GetLabels()["component"] != "model-registry" ||
			o.GetLabels()["app.kubernetes.io/created-by"] != "model-registry-operator" {
			t.Errorf("%s %s: labels %v", o.GetKind(), o.GetName(), o.GetLabels())
		}
	}
}
