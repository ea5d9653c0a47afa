package access

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func owner() *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow", UID: "mlflow-uid"}}
	m.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
	return m
}

// [mlflow-69] [mlflow-73] The RoleBindings of a namespace: roles, subjects, label and controlling owner.
func TestGoldenBindings(t *testing.T) {
	for name, g := range map[string]groups{
		"overlapping": {Allowed: []string{"users", "admins", "users"}, Admin: []string{"admins", "root"}},
		"empty":       {},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := apply.Render(desired("team", desiredBindings("mlflow-operator-", g)), "mlflow", owner())
			if err != nil {
				t.Fatal(err)
			}
			framework.Golden(t, filepath.Join("testdata", name+".yaml"), objects)
		})
	}
}

// [mlflow-73] Duplicate groups are removed, and the order is kept.
func TestUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.StringMatching(`[a-d]{1,2}`)).Draw(t, "names")
		got := unique(names)
		position := 0
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				continue
			}
			if position >= len(got) || got[position] != name {
				t.Fatalf("unique(%v) = %v", names, got)
			}
			position++
		}
		if position != len(got) {
			t.Fatalf("unique(%v) = %v", names, got)
		}
	})
}

// The name of a group and the prefix of the roles cannot change the structure of a RoleBinding.
func FuzzGroupsKeepStructure(f *testing.F) {
	f.Add("users", "mlflow-operator-")
	f.Add("a\n- kind: ServiceAccount\n  name: x", "p\nname: cluster-admin")
	f.Fuzz(func(t *testing.T, group, prefix string) {
		objects, err := apply.Render(desired("team", desiredBindings(prefix, groups{Allowed: []string{group}, Admin: []string{group}})), "mlflow", owner())
		if err != nil {
			t.Fatal(err)
		}
		for i, object := range objects {
			data, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			decoded := &rbacv1.RoleBinding{}
			if err := yaml.UnmarshalStrict(data, decoded); err != nil {
				t.Fatal(err)
			}
			group := strings.ToValidUTF8(group, "\uFFFD")
			if len(decoded.Subjects) != 1 || decoded.Subjects[0].Kind != "Group" || decoded.Subjects[0].Name != group || decoded.Name != bindingNames[i] {
				t.Fatalf("group %q: decoded %+v", group, decoded)
			}
		}
	})
}

// Only RoleBindings of this operator and the legacy operator are deleted [D33].
func TestIsManagedAcceptsOwnAndLegacyBindings(t *testing.T) {
	binding := func(change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ViewBinding}}
		change(b)
		return b
	}
	reference := func(apiVersion, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "x", UID: "u", Controller: &controller}}
	}
	for name, tc := range map[string]struct {
		live *rbacv1.RoleBinding
		want bool
	}{
		"without an owner":                {binding(func(*rbacv1.RoleBinding) {}), false},
		"with a foreign label":            {binding(func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{managedByLabel: "helm"} }), false},
		"labelled by the legacy operator": {binding(func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{managedByLabel: "mlflow-operator"} }), true},
		"labelled by this operator": {binding(func(b *rbacv1.RoleBinding) {
			b.Labels = map[string]string{"platform.opendatahub.io/operator": "odh-platform-operator"}
		}), true},
		"owned by the MLflow": {binding(func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = reference("mlflow.opendatahub.io/v1", "MLflow", true)
		}), true},
		"owned by an MLflow of another version": {binding(func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = reference("mlflow.opendatahub.io/v2", "MLflow", false)
		}), true},
		"owned by an MLflow of another API group": {binding(func(b *rbacv1.RoleBinding) { b.OwnerReferences = reference("example.com/v1", "MLflow", true) }), false},
		"applied by the operator": {binding(func(b *rbacv1.RoleBinding) {
			b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "mlflow-operator", Operation: metav1.ManagedFieldsOperationApply}}
		}), true},
		"applied by another client": {binding(func(b *rbacv1.RoleBinding) {
			b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}}
		}), false},
		"labelled, but controlled by a Deployment": {binding(func(b *rbacv1.RoleBinding) {
			b.Labels = map[string]string{managedByLabel: "mlflow-operator"}
			b.OwnerReferences = reference("apps/v1", "Deployment", true)
		}), false},
	} {
		if got := isManaged(tc.live); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestHasOtherRole(t *testing.T) {
	binding := desiredBinding{name: ViewBinding, role: "mlflow-operator-mlflow-view"}
	for name, tc := range map[string]struct {
		ref  rbacv1.RoleRef
		want bool
	}{
		"desired roleRef": {rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binding.role}, false},
		"another role":    {rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}, true},
		"a Role":          {rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: binding.role}, true},
		"another group":   {rbacv1.RoleRef{APIGroup: "example.com", Kind: "ClusterRole", Name: binding.role}, true},
	} {
		if got := binding.hasOtherRole(&rbacv1.RoleBinding{RoleRef: tc.ref}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// [mlflow-6] The default of RESOURCE_NAME_PREFIX matches the shipped ClusterRoles. The verb bind is granted for exactly the ClusterRoles
// that the controller binds.
func TestDefaultPrefixMatchesShippedRoles(t *testing.T) {
	cfg, err := config.Load(config.Program{Components: []string{"mlflow"}}, nil,
		func(string) (string, bool) { return "", false },
		func(string) ([]byte, error) { return nil, os.ErrNotExist })
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := framework.ReadObjects("../../../config/rbac/mlflow/user_roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, role := range shipped {
		names = append(names, role.GetName())
	}
	manifest, err := os.ReadFile("../../../config/rbac/mlflowaccess/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(manifest[strings.Index(string(manifest), "apiVersion"):], role); err != nil {
		t.Fatal(err)
	}
	var bindable []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Verbs, "bind") {
			bindable = append(bindable, rule.ResourceNames...)
		}
	}
	var bound []string
	for _, w := range desiredBindings(cfg.MLflow.ResourceNamePrefix, groups{}) {
		bound = append(bound, w.role)
		if !slices.Contains(names, w.role) {
			t.Errorf("ClusterRole %s is not shipped: %v", w.role, names)
		}
	}
	slices.Sort(bound)
	if slices.Sort(bindable); !slices.Equal(bindable, bound) {
		t.Errorf("the verb bind is granted for %v, but the controller binds %v", bindable, bound)
	}
}
