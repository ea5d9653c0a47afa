package modelcatalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// readRules returns the rules of the roles of this component, without the optional role for Hugging Face.
func readRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, path := range []string{"role.yaml", "namespaced/role.yaml"} {
		text, err := os.ReadFile("../../config/rbac/modelcatalog/" + path)
		if err != nil {
			t.Fatal(err)
		}
		var r rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(strings.TrimPrefix(string(text), "---\n")), &r); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r.Rules...)
	}
	return rules
}

// isAllowed reports whether rules allow a verb on a resource, and on one name unless it is empty.
func isAllowed(rules []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || name != "" && slices.Contains(r.ResourceNames, name))
	})
}

func plural(kind schema.GroupVersionKind) string {
	lower := strings.ToLower(kind.Kind)
	if base, y := strings.CutSuffix(lower, "y"); y {
		return base + "ies"
	}
	return lower + "s"
}

// The roles grant the required verbs on every built object. On other objects of these kinds, they do not grant patch
// and delete, and get only of ConfigMaps.
func TestRBACCoversEveryObject(t *testing.T) {
	rules := readRules(t)
	platforms := []resources.Inputs{kubernetesInputs(), openShiftInputs(behindGateway, func(in *resources.Inputs) { in.AdminGroups = []string{"a"} })}
	for _, in := range platforms {
		for _, o := range buildObjects(t, newCatalog(), in) {
			kind := o.GroupVersionKind()
			for _, verb := range []string{"create", "get", "patch", "delete"} {
				if !isAllowed(rules, verb, kind.Group, plural(kind), o.GetName()) {
					t.Errorf("the roles do not allow to %s %s %s", verb, plural(kind), o.GetName())
				}
				granted := verb == "get" && kind == servers.ConfigMap // by the role of administrators, which the operator creates
				if verb != "create" && isAllowed(rules, verb, kind.Group, plural(kind), "foreign") != granted {
					t.Errorf("the roles allow to %s all %s: %t, want %t", verb, plural(kind), !granted, granted)
				}
			}
			for _, verb := range []string{"list", "watch"} {
				if !isAllowed(rules, verb, kind.Group, plural(kind), "") {
					t.Errorf("the roles do not allow to %s %s", verb, plural(kind))
				}
			}
		}
	}
}

// The roles allow access to legacy objects, and to objects that Build does not return.
func TestRBACOfOtherObjects(t *testing.T) {
	rules := readRules(t)
	for _, test := range []struct{ resource, name, verbs string }{
		{"secrets", resources.DatabaseName, "create get list watch patch delete"},
		{"secrets", resources.CertificateSecret, "create get list watch patch"},
		{"secrets", "model-catalog-oauth-cookie-secret", "get delete"},
		{"persistentvolumeclaims", resources.DatabaseName, "get delete"},
		{"configmaps", "model-catalog-default-sources", "get delete"},
		{"configmaps", resources.ModelSources, "create get patch"},
		{"configmaps", resources.McpSources, "create get patch"},
		{"configmaps", resources.AgentSources, "create get patch"},
		{"configmaps", resources.RuntimeSources, "create get patch"},
		{"pods", "", "list"},
	} {
		for verb := range strings.FieldsSeq(test.verbs) {
			if !isAllowed(rules, verb, "", test.resource, test.name) {
				t.Errorf("the roles do not allow to %s %s %s", verb, test.resource, test.name)
			}
		}
	}
	for verb, want := range map[string]bool{"get": true, "delete": true, "patch": false, "update": false} {
		if isAllowed(rules, verb, "gateway.networking.k8s.io", "referencegrants", servers.SharedGrantName) != want {
			t.Errorf("%s on the legacy ReferenceGrant: got allowed %t, want %t", verb, !want, want)
		}
	}
	for _, resource := range []string{"referencegrants", "httproutes"} {
		if !isAllowed(rules, "list", "gateway.networking.k8s.io", resource, "") {
			t.Errorf("the roles do not allow to list %s", resource)
		}
	}
	for _, verb := range []string{"get", "list", "watch", "patch", "update", "delete"} {
		if isAllowed(rules, verb, "", "secrets", "") || isAllowed(rules, verb, "", "secrets", "a-registry-db") {
			t.Errorf("[S8] the roles allow to %s foreign Secrets", verb)
		}
	}
	for _, name := range []string{resources.ModelSources, resources.McpSources, resources.AgentSources, resources.RuntimeSources} {
		if isAllowed(rules, "delete", "", "configmaps", name) {
			t.Errorf("the roles allow to delete ConfigMap %s of users", name)
		}
	}
}

// The rules of the operator contain the rules of created roles, because RBAC prevents escalation.
func TestRBACCoversGrantedRules(t *testing.T) {
	rules := readRules(t)
	for _, name := range []string{resources.Name, resources.AdminName} {
		for _, rule := range decodeObject[rbacv1.Role](t, newCatalog(), kubernetesInputs(), "Role", name).Rules {
			objects := rule.ResourceNames
			if len(objects) == 0 {
				objects = []string{""} // all objects
			}
			for _, resource := range rule.Resources {
				for _, object := range objects {
					for _, verb := range rule.Verbs {
						if !isAllowed(rules, verb, rule.APIGroups[0], resource, object) {
							t.Errorf("Role %s grants %s on %s %q, which the operator does not have", name, verb, resource, object)
						}
					}
				}
			}
		}
	}
	if !isAllowed(rules, "bind", rbacv1.GroupName, "clusterroles", "system:auth-delegator") {
		t.Error("the role is not allowed to bind system:auth-delegator")
	}
	for _, rule := range rules {
		for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
			if slices.Contains(words, "*") || slices.Contains(words, "escalate") || slices.Contains(words, "impersonate") {
				t.Errorf("rule %+v is too broad", rule)
			}
		}
	}
}
