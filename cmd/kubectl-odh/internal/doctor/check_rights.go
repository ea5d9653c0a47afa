package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// shown is how many of many things a finding names.
const shown = 4

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// some names the first of many.
func some(all []string) string {
	if len(all) <= shown {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:shown], ", "), len(all)-shown)
}

// checkRights compares what the manager's account may do with the roles that come with it. Bindings count by what they allow, not by
// their names: installers give them others.
func checkRights(f *Facts, ships Shipped) []Finding {
	if f.Manager.Deployment == nil {
		return nil
	}
	out := f.unreadable(topicRights)
	if len(out) > 0 {
		return out
	}
	account := f.Manager.Deployment.Spec.Template.Spec.ServiceAccountName
	checked := 0
	for _, role := range ships.Roles {
		if !f.needs(role.Component) {
			continue
		}
		checked++
		if missing := f.withheld(role); len(missing) > 0 {
			out = append(out, Finding{Result: Fail, Subject: "role " + role.Name, Found: fmt.Sprintf("account %s may not %s", account, some(missing)),
				Cure: "kubectl apply -k config/overlays/<your platform>: roles and bindings of component " + role.Component})
		}
	}
	if len(out) == 0 {
		out = append(out, fine("account "+account, fmt.Sprintf("has all rights of %d roles", checked)))
	}
	return out
}

// needs tells whether the roles of a folder belong to what is on.
func (f *Facts) needs(folder string) bool {
	switch folder {
	case "manager":
		return true
	case "mlflowaccess":
		return f.enabled("mlflow") && f.Manager.Settings.Config.MLflow.NamespaceRBAC
	case "appwrapper-slack-queue":
		return false // asked for by a setting in a ConfigMap
	}
	return f.enabled(folder)
}

// withheld are the permissions of a role that the account does not have. Those of the manager's own namespace, and those that an
// installation may narrow to namespaces, count wherever they were found.
func (f *Facts) withheld(role ShippedRole) []string {
	granted := slices.Clone(f.Granted.Everywhere)
	if role.Inside || role.Narrowed {
		for _, rules := range f.Granted.Inside {
			granted = append(granted, rules...)
		}
	}
	_, rules := validation.Covers(granted, role.Rules)
	var missing []string
	for _, rule := range rules {
		missing = append(missing, inWords(rule))
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// inWords names what a rule of one verb and one resource or path allows.
func inWords(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return rule.Verbs[0] + " " + rule.NonResourceURLs[0]
	}
	name, part, _ := strings.Cut(rule.Resources[0], "/")
	what := schema.GroupResource{Group: rule.APIGroups[0], Resource: name}.String()
	if part != "" {
		what += "/" + part
	}
	return strings.Join(append([]string{rule.Verbs[0], what}, rule.ResourceNames...), " ")
}

// checkUserRoles looks for the roles of users of what is on.
func checkUserRoles(f *Facts, ships Shipped) []Finding {
	out := f.unreadable(topicUserRoles)
	if len(out) > 0 || !f.Manager.Settings.Known {
		return out
	}
	there := 0
	for _, role := range ships.UserRoles {
		switch {
		case !f.enabled(role.Component):
		case f.UserRoles[role.Name]:
			there++
		default:
			out = append(out, Finding{Result: Warn, Subject: "ClusterRole " + role.Name, Found: "not there",
				Cure: "kubectl apply -k config/overlays/<your platform>, or kubectl apply -f config/rbac/" + role.Component + "/user_roles.yaml"})
		}
	}
	if len(out) == 0 {
		out = append(out, fine("", fmt.Sprintf("%d roles for users are there", there)))
	}
	return out
}
