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

// rendered has the shipped roles; they are rendered once.
var rendered struct {
	sync.Once
	roles []role
	err   error
}

// shipped returns the roles of the default, of the overlays, and of folders of roles that neither contains, each once.
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

// add adds the roles of a kustomization; roles of the same name must be equal.
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
		same := slices.IndexFunc(all, func(other role) bool { return other.name == r.name && other.kind == r.kind })
		switch {
		case same < 0:
			all = append(all, r)
		case !reflect.DeepEqual(all[same], r):
			return nil, fmt.Errorf("%s %s of %s differs from the one of another kustomization", r.kind, r.name, file)
		}
	}
	return all, nil
}

// suites are the folders of the suites that run a manager.
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

func TestNoRoleHasMoreThanItMay(t *testing.T) {
	for _, r := range shipped(t) {
		for _, rule := range r.rules {
			for _, fault := range faults(rule) {
				t.Errorf("%s %s: %s in %+v", r.kind, r.name, fault, rule)
			}
		}
	}
}

// faults returns the rights in a rule that no role may grant, neither to the manager nor to people.
func faults(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, list := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs} {
		if slices.ContainsFunc(list, func(item string) bool { return strings.Contains(item, "*") }) {
			found = append(found, "a wildcard")
		}
	}
	for _, verb := range []string{"escalate", "impersonate"} {
		if slices.Contains(rule.Verbs, verb) {
			found = append(found, "the verb "+verb)
		}
	}
	if slices.Contains(rule.Verbs, "bind") && len(rule.ResourceNames) == 0 {
		found = append(found, "the verb bind for any role")
	}
	for _, resource := range rule.Resources {
		if slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy", "serviceaccounts/token", "secrets/*"}, resource) {
			found = append(found, resource)
		}
	}
	return found
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		want int
	}{
		"no fault":       {rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}}, 0},
		"all verbs":      {rbacv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"pods"}}, 1},
		"all resources":  {rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"*/status"}}, 1},
		"all paths":      {rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x/*"}}, 1},
		"escalate":       {rbacv1.PolicyRule{Verbs: []string{"escalate", "impersonate"}}, 2},
		"bind any":       {rbacv1.PolicyRule{Verbs: []string{"bind"}, Resources: []string{"clusterroles"}}, 1},
		"bind one":       {rbacv1.PolicyRule{Verbs: []string{"bind"}, Resources: []string{"clusterroles"}, ResourceNames: []string{"view"}}, 0},
		"shells in pods": {rbacv1.PolicyRule{Verbs: []string{"create"}, Resources: []string{"pods/exec"}}, 1},
	} {
		if got := faults(c.rule); len(got) != c.want {
			t.Errorf("%s: got faults %v", name, got)
		}
	}
}

func TestEachComponentHasItsRole(t *testing.T) {
	all := shipped(t)
	for _, part := range parts {
		if !slices.ContainsFunc(all, func(r role) bool { return r.manager && r.name == prefix+part }) {
			t.Errorf("no role %s%s", prefix, part)
		}
	}
	for _, r := range all {
		if strings.HasPrefix(r.name, prefix) && !r.manager && r.component() != "" {
			t.Errorf("nothing binds %s to the manager", r.name)
		}
	}
}

func TestPermissionsAreGrantedOnce(t *testing.T) {
	for _, g := range redundant(grantsOf(shipped(t))) {
		t.Errorf("%s: another rule grants it too", g)
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
	for _, message := range rejections(records(t)) {
		t.Error(message)
	}
}

func TestGrantedPermissionsAreUsed(t *testing.T) {
	grants, used := grantsOf(shipped(t)), records(t)
	for key, reason := range rare {
		if !slices.ContainsFunc(grants, func(g grant) bool { return g.String() == key }) {
			t.Errorf("no role has %q any more, for which there is a reason: %s", key, reason)
		}
	}
	for reason, group := range untested {
		for _, key := range group {
			if !slices.ContainsFunc(grants, func(g grant) bool { return g.String() == prefix+key }) {
				t.Errorf("no role has %q any more, for which there is a reason: %s", prefix+key, reason)
			}
		}
	}
	left := slices.DeleteFunc(unused(grants, used), func(g grant) bool { return rare[g.String()] != "" || isUntested(g) })
	if without := missing(suites(t), used); len(without) > 0 {
		for _, g := range left {
			t.Logf("not used by the suites that have run: %s", g)
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("no record of a whole run of %s", strings.Join(without, ", "))
		}
		t.Skipf("run `make test-integration`, or these suites: %s", strings.Join(without, ", "))
	}
	for _, g := range left {
		t.Errorf("granted and never used: %s", g)
	}
	t.Logf("%d rights, %d suites", len(grants), len(used))
}
