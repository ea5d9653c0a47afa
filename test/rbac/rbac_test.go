package rbac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/rights"
)

const root = "../.."

// rendered caches the shipped roles.
var rendered struct {
	sync.Once
	roles []role
	err   error
}

// shipped returns the roles of config/default, of the overlays, and of the directories in config/rbac that these do not contain.
func shipped(t *testing.T) []role {
	t.Helper()
	rendered.Do(func() { rendered.roles, rendered.err = render(t.Context()) })
	if rendered.err != nil {
		t.Fatal(rendered.err)
	}
	return rendered.roles
}

func render(ctx context.Context) ([]role, error) {
	overlays, err := filepath.Glob(filepath.Join(root, "config/overlays/*/kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(root, "config/rbac/*/kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	all, err := add(ctx, nil, filepath.Join(root, "config/default/kustomization.yaml"))
	for _, overlay := range overlays {
		if err == nil {
			all, err = add(ctx, all, overlay)
		}
	}
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		if err == nil && !slices.ContainsFunc(all, func(r role) bool { return r.name == prefix+name }) {
			all, err = add(ctx, all, folder)
		}
	}
	return all, err
}

// add adds the roles of a kustomization. Roles with the same name must be equal.
func add(ctx context.Context, all []role, file string) ([]role, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	objects, err := operator.Kustomize(dir)
	if err != nil {
		return nil, err
	}
	found, err := rolesOf(objects)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		existing := slices.IndexFunc(all, func(other role) bool { return other.name == r.name && other.kind == r.kind })
		switch {
		case existing < 0:
			all = append(all, r)
		case !reflect.DeepEqual(all[existing], r):
			return nil, fmt.Errorf("%s %s of %s differs from that of another kustomization", r.kind, r.name, file)
		}
	}
	return all, nil
}

// suites returns the directories of the suites that run a manager.
func suites(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/test/integration/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ".StartManager(") {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestRolesHaveNoPrivilegedRules(t *testing.T) {
	for _, r := range shipped(t) {
		for _, rule := range r.rules {
			for _, permission := range privileged(rule) {
				t.Errorf("%s %s: %s in %+v", r.kind, r.name, permission, rule)
			}
		}
	}
}

// privileged returns the permissions in a rule that no role may grant, neither to the manager nor to users.
func privileged(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, list := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs} {
		if slices.ContainsFunc(list, func(item string) bool { return strings.Contains(item, "*") }) {
			found = append(found, "wildcard")
		}
	}
	for _, verb := range []string{"escalate", "impersonate"} {
		if slices.Contains(rule.Verbs, verb) {
			found = append(found, "verb "+verb)
		}
	}
	if slices.Contains(rule.Verbs, "bind") && len(rule.ResourceNames) == 0 {
		found = append(found, "verb bind for all roles")
	}
	for _, resource := range rule.Resources {
		if slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy", "serviceaccounts/token", "secrets/*"}, resource) {
			found = append(found, resource)
		}
	}
	return found
}

func TestPrivileged(t *testing.T) {
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		want int
	}{
		"get pods":                 {rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}}, 0},
		"all verbs":                {rbacv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"pods"}}, 1},
		"status of all resources":  {rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"*/status"}}, 1},
		"paths with a wildcard":    {rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x/*"}}, 1},
		"escalate and impersonate": {rbacv1.PolicyRule{Verbs: []string{"escalate", "impersonate"}}, 2},
		"bind any":                 {rbacv1.PolicyRule{Verbs: []string{"bind"}, Resources: []string{"clusterroles"}}, 1},
		"bind one":                 {rbacv1.PolicyRule{Verbs: []string{"bind"}, Resources: []string{"clusterroles"}, ResourceNames: []string{"view"}}, 0},
		"exec into pods":           {rbacv1.PolicyRule{Verbs: []string{"create"}, Resources: []string{"pods/exec"}}, 1},
	} {
		if got := privileged(c.rule); len(got) != c.want {
			t.Errorf("%s: got %v, want %d permissions", name, got, c.want)
		}
	}
}

func TestComponentsHaveBoundRoles(t *testing.T) {
	all := shipped(t)
	for _, component := range components {
		if !slices.ContainsFunc(all, func(r role) bool { return r.boundToManager && r.name == prefix+component }) {
			t.Errorf("role %s%s does not exist or is not bound to the manager", prefix, component)
		}
	}
	for _, r := range all {
		if strings.HasPrefix(r.name, prefix) && !r.boundToManager && r.component() != "" {
			t.Errorf("no binding grants %s to the manager", r.name)
		}
	}
}

func TestNoPermissionIncludesAnother(t *testing.T) {
	for _, g := range redundant(grantsOf(shipped(t))) {
		t.Errorf("%s: another rule of the role grants it too", g)
	}
}

func records(t *testing.T) []*rights.Record {
	t.Helper()
	dir, err := rights.Dir()
	if err != nil {
		t.Fatal(err)
	}
	all, err := rights.ReadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNoRequestWasForbidden(t *testing.T) {
	for _, message := range forbiddenRequests(records(t)) {
		t.Error(message)
	}
}

func TestGrantedPermissionsAreUsed(t *testing.T) {
	grants, suiteRecords := grantsOf(shipped(t)), records(t)
	for key, reason := range rare {
		if !slices.ContainsFunc(grants, func(g grant) bool { return g.String() == key }) {
			t.Errorf("no role has the permission %q, remove it from the list: %s", key, reason)
		}
	}
	for reason, group := range untested {
		for _, key := range group {
			if !slices.ContainsFunc(grants, func(g grant) bool { return g.String() == prefix+key }) {
				t.Errorf("no role has the permission %q, remove it from the list: %s", prefix+key, reason)
			}
		}
	}
	remaining := slices.DeleteFunc(unused(grants, suiteRecords), func(g grant) bool { return rare[g.String()] != "" || isUntested(g) })
	if incomplete := missing(suites(t), suiteRecords); len(incomplete) > 0 {
		for _, g := range remaining {
			t.Logf("not used in the existing records: %s", g)
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("no complete record of the suites %s", strings.Join(incomplete, ", "))
		}
		t.Skipf("run `make test-integration`, or these suites: %s", strings.Join(incomplete, ", "))
	}
	for _, g := range remaining {
		t.Errorf("granted but not used: %s", g)
	}
	t.Logf("%d permissions, %d suites", len(grants), len(suiteRecords))
}
