package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// shown is how many missing permissions a finding names.
const shown = 4

// checkRights compares what the manager's account may do with the roles that come with it. Bindings count by what they allow, not by
// their names: installers give them others.
func checkRights(f *Facts, ships Shipped) (problems []Finding, fine string) {
	if f.Manager.Deployment == nil || len(f.Unread[rights]) > 0 {
		return nil, ""
	}
	account := f.Manager.Deployment.Spec.Template.Spec.ServiceAccountName
	checked := 0
	for _, role := range ships.Roles {
		if !f.needs(role.Component) {
			continue
		}
		checked++
		missing := f.withheld(role)
		if len(missing) == 0 {
			continue
		}
		found := "account " + account + " may not " + strings.Join(missing[:min(shown, len(missing))], ", ")
		if more := len(missing) - shown; more > 0 {
			found += fmt.Sprintf(" and %d more", more)
		}
		problems = append(problems, Finding{Result: Fail, Subject: "role " + role.Name, Found: found,
			Fix: "restore the roles and bindings of component " + role.Component + ": " + redeploy(f)})
	}
	return problems, fmt.Sprintf("account %s has all permissions of %d roles", account, checked)
}

// needs tells whether the roles of a folder belong to what is on.
func (f *Facts) needs(folder string) bool {
	switch folder {
	case "manager":
		return true
	case "mlflowaccess":
		return f.enabled("mlflow") && f.Manager.Settings.Config.MLflow.NamespaceRBAC
	}
	return f.enabled(folder) // appwrapper-slack-queue, which a ConfigMap asks for, is no component
}

// withheld are the permissions of a role that the account does not have. For roles of a namespace, and for those that an installation may
// narrow to namespaces, bindings in any namespace count.
func (f *Facts) withheld(role ShippedRole) []string {
	granted := slices.Clone(f.Granted.Everywhere)
	if role.Inside || role.Narrowed {
		granted = append(granted, f.Granted.Inside...)
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
