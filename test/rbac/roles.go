package rbac

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

const (
	// managerAccount is the ServiceAccount of the manager, prefix that of the names of its roles.
	managerAccount = "odh-platform-operator-controller-manager"
	prefix         = "odh-platform-operator-"
)

// components are the components of the operator that have roles. A role belongs to the component whose name follows the prefix in the name
// of the role. Other roles belong to the manager.
var components = []string{"appwrapper", "mlflow", "modelcatalog", "modelmesh", "modelregistry", "olm", "platform", "raycluster"}

// role is a Role or ClusterRole of a rendered kustomization.
type role struct {
	kind, name string
	// boundToManager reports whether a binding grants the role to the manager.
	boundToManager bool
	// aggregated are the built-in roles to which the role is aggregated: admin, edit, view.
	aggregated []string
	rules      []rbacv1.PolicyRule
}

// component returns the component of the role, or "" if the manager requires the role with every component.
func (r role) component() string {
	name := strings.TrimPrefix(r.name, prefix)
	for _, component := range components {
		if name == component || strings.HasPrefix(name, component+"-") || component == "mlflow" && name == "mlflowaccess" {
			return component
		}
	}
	return ""
}

// rolesOf returns the roles in manifests.
func rolesOf(objects []*unstructured.Unstructured) ([]role, error) {
	bound := map[string]bool{}
	var found []role
	for _, object := range objects {
		var err error
		switch object.GetKind() {
		case "Role", "ClusterRole":
			r := rbacv1.ClusterRole{} // a Role has the same fields
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &r)
			found = append(found, role{kind: object.GetKind(), name: r.Name, aggregated: aggregation(r.Labels), rules: r.Rules})
		case "RoleBinding", "ClusterRoleBinding":
			b := rbacv1.ClusterRoleBinding{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b)
			if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == managerAccount }) {
				bound[b.RoleRef.Kind+"/"+b.RoleRef.Name] = true
			}
		}
		if err != nil {
			return nil, fmt.Errorf("decoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for i := range found {
		found[i].boundToManager = bound[found[i].kind+"/"+found[i].name]
	}
	return found, nil
}

// aggregation returns the built-in roles to which labels aggregate a role.
func aggregation(labels map[string]string) []string {
	var builtIns []string
	for _, name := range []string{"admin", "edit", "view"} {
		if labels[rbacv1.GroupName+"/aggregate-to-"+name] == "true" {
			builtIns = append(builtIns, name)
		}
	}
	return builtIns
}

// grant is a single permission in a role of the manager. Its namespace is [rights.Own] for a Role, and empty for a ClusterRole, which
// is granted in the scope of its bindings.
type grant struct {
	role string
	// component is that of the role.
	component string
	rights.Use
}

// String returns the grant in one line.
func (g grant) String() string { return g.role + ": " + g.Use.String() }

// grantsOf returns the single permissions of the manager, without duplicates.
func grantsOf(roles []role) []grant {
	seen := map[grant]bool{}
	for _, r := range roles {
		if !r.boundToManager {
			continue
		}
		for _, rule := range r.rules {
			rights.Expand(rule, func(use rights.Use) {
				if r.kind == "Role" {
					use.Namespace = rights.Own
				}
				seen[grant{role: r.name, component: r.component(), Use: use}] = true
			})
		}
	}
	var grants []grant
	for g := range seen {
		grants = append(grants, g)
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.String(), b.String()) })
	return grants
}

// covers reports whether a grant allows a use.
func (g grant) covers(use rights.Use) bool {
	return g.Verb == use.Verb && g.Group == use.Group && g.Resource == use.Resource && g.Path == use.Path &&
		(g.Name == "" || g.Name == use.Name) && (g.Namespace == "" || g.Namespace == use.Namespace)
}
