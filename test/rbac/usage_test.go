package rbac

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

func lines(grants []grant) []string {
	var all []string
	for _, g := range grants {
		all = append(all, g.String())
	}
	return all
}

func grantTo(component, namespace string, rules ...rbacv1.PolicyRule) []grant {
	kind := "ClusterRole"
	if namespace != "" {
		kind = "Role"
	}
	return grantsOf([]role{{kind: kind, name: prefix + component, boundToManager: true, rules: rules}})
}

func rule(verb, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names}
}

func TestUnused(t *testing.T) {
	bind := rbacv1.PolicyRule{Verbs: []string{"bind"}, APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}, ResourceNames: []string{"delegator"}}
	bound := rights.Run{Bound: []rights.Bound{{Name: "delegator", Rules: []rights.Use{{Verb: "create", Resource: "reviews"}}}}}
	use := func(u rights.Use) rights.Run { return rights.Run{Used: []rights.Use{u}} }
	pods := rights.Use{Verb: "get", Resource: "pods"}
	for name, c := range map[string]struct {
		grants []grant
		run    rights.Run
		want   int
	}{
		"not used":                          {grantTo("mlflow", "", rule("get", "pods")), rights.Run{}, 1},
		"used":                              {grantTo("mlflow", "", rule("get", "pods")), use(pods), 0},
		"another verb":                      {grantTo("mlflow", "", rule("delete", "pods")), use(pods), 1},
		"one of two names":                  {grantTo("mlflow", "", rule("get", "pods", "a", "b")), use(rights.Use{Verb: "get", Resource: "pods", Name: "a"}), 1},
		"any name":                          {grantTo("mlflow", "", rule("get", "pods")), use(rights.Use{Verb: "get", Resource: "pods", Name: "a"}), 0},
		"in its namespace":                  {grantTo("mlflow", rights.Own, rule("get", "pods")), use(rights.Use{Verb: "get", Resource: "pods", Namespace: rights.Own}), 0},
		"in another namespace":              {grantTo("mlflow", rights.Own, rule("get", "pods")), use(rights.Use{Verb: "get", Resource: "pods", Namespace: rights.Other}), 1},
		"by another component":              {grantTo("mlflow", "", rule("get", "pods")), rights.Run{Components: []string{"modelmesh"}, Used: []rights.Use{pods}}, 1},
		"by this component":                 {grantTo("mlflowaccess", "", rule("get", "pods")), rights.Run{Components: []string{"mlflow", "modelmesh"}, Used: []rights.Use{pods}}, 0},
		"role without component":            {grantTo("manager", "", rule("get", "pods")), rights.Run{Components: []string{"modelmesh"}, Used: []rights.Use{pods}}, 0},
		"granted in another namespace":      {grantTo("mlflow", "", rule("get", "pods")), rights.Run{Granted: []rights.Use{{Verb: "get", Resource: "pods", Namespace: rights.Other}}}, 0},
		"watch requires list":               {grantTo("mlflow", "", rule("list", "pods")), use(rights.Use{Verb: "watch", Resource: "pods"}), 0},
		"patch requires get":                {grantTo("mlflow", "", rule("get", "pods")), use(rights.Use{Verb: "patch", Resource: "pods"}), 0},
		"get does not require patch":        {grantTo("mlflow", "", rule("patch", "pods")), use(rights.Use{Verb: "get", Resource: "pods"}), 1},
		"list does not require watch":       {grantTo("mlflow", "", rule("watch", "pods")), use(rights.Use{Verb: "list", Resource: "pods"}), 1},
		"bound by name":                     {grantTo("mlflow", "", bind), bound, 0},
		"bind makes the rule unnecessary":   {grantTo("mlflow", "", bind, rule("create", "reviews")), bound, 1},
		"bound role is held by the manager": {grantTo("mlflow", "", rule("create", "reviews")), bound, 0},
		"another role bound":                {grantTo("mlflow", "", bind), rights.Run{Bound: []rights.Bound{{Name: "other"}}}, 1},
	} {
		if got := unused(c.grants, []*rights.Record{{}, {Runs: []rights.Run{{Components: []string{"none"}}, c.run}}}); len(got) != c.want {
			t.Errorf("%s: unused grants %v, want %d", name, lines(got), c.want)
		}
	}
}

func TestRedundant(t *testing.T) {
	got := redundant(append(grantTo("mlflow", "", rule("get", "pods"), rule("get", "pods", "a"), rule("list", "pods")), grantTo("modelmesh", rights.Own, rule("get", "pods"))...))
	if difference := cmp.Diff([]string{"odh-platform-operator-mlflow: get pods a"}, lines(got)); difference != "" {
		t.Error(difference)
	}
}

func TestForbiddenRequestsAndMissingSuites(t *testing.T) {
	all := []*rights.Record{
		{Suite: "a", Complete: true, Runs: []rights.Run{{Refused: []rights.Refusal{
			{Use: rights.Use{Verb: "get", Resource: "pods"}, Message: "no"}, {Use: rights.Use{Verb: "get", Resource: "gadgets"}, Message: "no", Expected: true},
		}}}},
		{Suite: "b"},
	}
	if difference := cmp.Diff([]string{"a: get pods: no"}, forbiddenRequests(all)); difference != "" {
		t.Error(difference)
	}
	if difference := cmp.Diff([]string{"b", "c"}, missing([]string{"a", "b", "c"}, all)); difference != "" {
		t.Error(difference)
	}
}

func TestRolesOf(t *testing.T) {
	const manifests = `
- {kind: ClusterRole, metadata: {name: odh-platform-operator-modelmesh-runtimes}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}
- {kind: RoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: odh-platform-operator-modelmesh-runtimes}, subjects: [{kind: ServiceAccount, name: odh-platform-operator-controller-manager}]}
- {kind: Role, metadata: {name: odh-platform-operator-webhook-certificate}, rules: [{verbs: [get], apiGroups: [""], resources: [secrets], resourceNames: [c]}]}
- {kind: RoleBinding, metadata: {name: second}, roleRef: {kind: Role, name: odh-platform-operator-webhook-certificate}, subjects: [{kind: ServiceAccount, name: odh-platform-operator-controller-manager}]}
- {kind: ClusterRole, metadata: {name: viewer, labels: {a: b, rbac.authorization.k8s.io/aggregate-to-view: 'true', rbac.authorization.k8s.io/aggregate-to-edit: 'true', rbac.authorization.k8s.io/aggregate-to-admin: 'false'}}, rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}
- {kind: ClusterRoleBinding, metadata: {name: z}, roleRef: {kind: ClusterRole, name: viewer}, subjects: [{kind: User, name: odh-platform-operator-controller-manager}]}
- {kind: ServiceAccount, metadata: {name: odh-platform-operator-controller-manager}}
`
	var contents []map[string]any
	if err := yaml.Unmarshal([]byte(manifests), &contents); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, content := range contents {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	roles, err := rolesOf(objects)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"odh-platform-operator-modelmesh-runtimes: get pods", "odh-platform-operator-webhook-certificate: get secrets c in its own namespace"}
	if difference := cmp.Diff(want, lines(grantsOf(roles))); difference != "" {
		t.Error(difference)
	}
	if roles[0].component() != "modelmesh" || roles[1].component() != "" || roles[2].boundToManager || !slices.Equal(roles[2].aggregated, []string{"edit", "view"}) {
		t.Errorf("roles %+v", roles)
	}
	objects[0].Object["rules"] = "text"
	if _, err := rolesOf(objects); err == nil {
		t.Error("got no error for invalid rules")
	}
}
