package rights

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	managerUser = "system:serviceaccount:odh:manager"
	route       = `{"resource":"routes","namespace":"ns","name":"x","apiGroup":"route.openshift.io"}`
)

// entry returns an audit event as a line.
func entry(user, stage, verb, ref string, code int, rest string) string {
	return fmt.Sprintf(`{"stage":%q,"verb":%q,"requestURI":"/path?x=1","user":{"username":%q},"objectRef":%s,"responseStatus":{"code":%d}%s}`+"\n",
		stage, verb, user, ref, code, rest)
}

func completed(verb, ref string, code int, response string) string {
	if response != "" {
		response = `,"responseObject":` + response
	}
	return entry(managerUser, "ResponseComplete", verb, ref, code, response)
}

func reference(resource, group, namespace, name string) string {
	return fmt.Sprintf(`{"resource":%q,"namespace":%q,"name":%q,"apiGroup":%q}`, resource, namespace, name, group)
}

func collect(t *testing.T, log string) Run {
	t.Helper()
	c := &Collector{User: managerUser, Namespace: "odh", Expected: func(use Use, offset int64) bool { return use.Resource == "gadgets" && offset > 0 }}
	run, err := c.Collect(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCollectReturnsUsedPermissions(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []Use
	}{
		"empty log":            {"", nil},
		"other users":          {entry("ann", "ResponseComplete", "get", reference("pods", "", "odh", "p"), 200, ""), nil},
		"discovery":            {completed("get", `{}`, 200, ""), nil},
		"not found":            {completed("get", reference("pods", "", "odh", "p"), 404, ""), []Use{{Verb: "get", Resource: "pods", Namespace: Own}}},
		"in another namespace": {completed("get", reference("pods", "", "ns", "p"), 200, ""), []Use{{Verb: "get", Resource: "pods", Namespace: Other}}},
		"in all namespaces":    {completed("list", reference("pods", "", "", ""), 200, ""), []Use{{Verb: "list", Resource: "pods"}}},
		"subresource":          {completed("patch", `{"resource":"mlflows","subresource":"status","apiGroup":"g","namespace":"ns","name":"m"}`, 200, ""), []Use{{Verb: "patch", Group: "g", Resource: "mlflows/status", Namespace: Other}}},
		"incomplete line":      {`{"stage":"Resp`, nil},
		"watch":                {entry(managerUser, "ResponseStarted", "watch", reference("pods", "", "", ""), 200, "") + completed("watch", reference("pods", "", "", ""), 200, ""), []Use{{Verb: "watch", Resource: "pods"}}},
		"apply creates": {completed("patch", reference("services", "", "odh", "s"), 201, ""), []Use{
			{Verb: "create", Resource: "services", Namespace: Own}, {Verb: "patch", Resource: "services", Namespace: Own},
		}},
		"apply updates": {completed("patch", reference("services", "", "odh", "s"), 200, ""), []Use{{Verb: "patch", Resource: "services", Namespace: Own}}},
		"owner reference blocks deletion": {
			completed("create", reference("services", "", "odh", ""), 201, `{"metadata":{"ownerReferences":[{"apiVersion":"g/v1","kind":"Policy","name":"p","blockOwnerDeletion":true},{"apiVersion":"v1","kind":"Node","name":"n"}]}}`),
			[]Use{{Verb: "create", Resource: "services", Namespace: Own}, {Verb: "update", Group: "g", Resource: "policies/finalizers", Namespace: Own}},
		},
		"owner references change": {
			entry("ann", "ResponseComplete", "create", reference("services", "", "odh", "s"), 201, `,"responseObject":{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				completed("patch", reference("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"new"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "delete", Resource: "services", Namespace: Own}},
		},
		"owner reference is added": {
			completed("patch", reference("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"new"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "delete", Resource: "services", Namespace: Own}},
		},
		"owner references are unchanged": {
			entry("ann", "ResponseComplete", "create", reference("services", "", "odh", "s"), 201, `,"responseObject":{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				completed("patch", reference("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				completed("patch", `{"resource":"services","subresource":"status","namespace":"odh"}`, 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "patch", Resource: "services/status", Namespace: Own}},
		},
		"Route with host": {
			completed("create", route, 201, `{"spec":{"host":"a.example.com"}}`) + completed("patch", route, 200, `{"spec":{"host":"b.example.com"}}`),
			[]Use{
				{Verb: "create", Group: "route.openshift.io", Resource: "routes", Namespace: Other}, {Verb: "create", Group: "route.openshift.io", Resource: "routes/custom-host", Namespace: Other},
				{Verb: "patch", Group: "route.openshift.io", Resource: "routes", Namespace: Other}, {Verb: "update", Group: "route.openshift.io", Resource: "routes/custom-host", Namespace: Other},
			},
		},
		"Route without host": {completed("create", route, 201, `{"spec":{}}`), []Use{{Verb: "create", Group: "route.openshift.io", Resource: "routes", Namespace: Other}}},
	} {
		if difference := cmp.Diff(sorted(c.want), collect(t, c.log).Used); difference != "" {
			t.Errorf("%s (-want +got):\n%s", name, difference)
		}
	}
}

// Names of objects are recorded if a role contains them.
func TestCollectKeepsNamesInRoles(t *testing.T) {
	role := entry("admin", "ResponseComplete", "create", reference("clusterroles", "rbac.authorization.k8s.io", "", "r"), 201,
		`,"responseObject":{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["fixed"]}]}`)
	got := collect(t, completed("get", reference("secrets", "", "odh", "fixed"), 200, "")+completed("get", reference("secrets", "", "odh", "any"), 200, "")+role)
	want := []Use{{Verb: "get", Resource: "secrets", Namespace: Own}, {Verb: "get", Resource: "secrets", Name: "fixed", Namespace: Own}}
	if difference := cmp.Diff(sorted(want), got.Used); difference != "" {
		t.Error(difference)
	}
}

func TestCollectReturnsGrantedPermissions(t *testing.T) {
	delegator := entry("system:apiserver", "ResponseComplete", "create", reference("clusterroles", "rbac.authorization.k8s.io", "", "delegator"), 201,
		`,"responseObject":{"metadata":{"name":"delegator"},"rules":[{"verbs":["create"],"apiGroups":["a"],"resources":["reviews"]}]}`)
	got := collect(t, delegator+
		completed("create", reference("roles", "rbac.authorization.k8s.io", "odh", "r"), 201, `{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["services"],"resourceNames":["svc"]}]}`)+
		completed("create", reference("clusterrolebindings", "rbac.authorization.k8s.io", "", "b"), 201, `{"roleRef":{"kind":"ClusterRole","name":"delegator"}}`)+
		completed("create", reference("rolebindings", "rbac.authorization.k8s.io", "odh", "b"), 201, `{"roleRef":{"kind":"Role","name":"r"}}`))
	if difference := cmp.Diff([]Use{{Verb: "get", Resource: "services", Namespace: Own}}, got.Granted); difference != "" {
		t.Error(difference)
	}
	if difference := cmp.Diff([]Bound{{Name: "delegator", Rules: []Use{{Verb: "create", Group: "a", Resource: "reviews"}}}}, got.Bound); difference != "" {
		t.Error(difference)
	}
}

func TestCollectReturnsForbiddenRequests(t *testing.T) {
	forbidden := func(decision, message string, resource string) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"create","user":{"username":%q},"objectRef":{"resource":%q},"responseStatus":{"code":403,"message":%q},"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
			managerUser, resource, message, decision)
	}
	for name, c := range map[string]struct {
		log  string
		want []Refusal
	}{
		"by the authorizer":                    {forbidden("forbid", "no", "pods"), []Refusal{{Use: Use{Verb: "create", Resource: "pods"}, Message: "no"}}},
		"by a webhook":                         {forbidden("allow", "denied", "pods"), nil},
		"privilege escalation":                 {forbidden("allow", "is attempting to grant RBAC permissions not currently held", "roles"), []Refusal{{Use: Use{Verb: "create", Resource: "roles"}, Message: "is attempting to grant RBAC permissions not currently held"}}},
		"owner without permission":             {forbidden("allow", "cannot set blockOwnerDeletion", "pods"), []Refusal{{Use: Use{Verb: "create", Resource: "pods"}, Message: "cannot set blockOwnerDeletion"}}},
		"owner of a kind without REST mapping": {forbidden("allow", `pods \"p\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion g/v1`, "pods"), nil},
		"allowed later":                        {forbidden("forbid", "not yet", "pods") + forbidden("allow", "", "pods"), nil},
		"list with allowed watch":              {entry(managerUser, "ResponseStarted", "watch", reference("pods", "", "", ""), 200, "") + strings.Replace(forbidden("forbid", "not yet", "pods"), "create", "list", 1), nil},
		"privilege escalation, allowed later":  {forbidden("allow", "attempting to grant RBAC permissions", "roles") + forbidden("allow", "", "roles"), []Refusal{{Use: Use{Verb: "create", Resource: "roles"}, Message: "attempting to grant RBAC permissions"}}},
		"expected":                             {forbidden("allow", "", "pods") + forbidden("forbid", "no", "gadgets"), []Refusal{{Use: Use{Verb: "create", Resource: "gadgets"}, Message: "no", Expected: true}}},
		"before the expected offset":           {forbidden("forbid", "no", "gadgets"), []Refusal{{Use: Use{Verb: "create", Resource: "gadgets"}, Message: "no"}}},
		"watch with two events":                {entry(managerUser, "ResponseStarted", "watch", reference("pods", "", "", ""), 403, `,"annotations":{"authorization.k8s.io/decision":"forbid"}`) + entry(managerUser, "ResponseComplete", "watch", reference("pods", "", "", ""), 403, `,"annotations":{"authorization.k8s.io/decision":"forbid"}`), []Refusal{{Use: Use{Verb: "watch", Resource: "pods"}}}},
	} {
		if difference := cmp.Diff(c.want, collect(t, c.log).Refused); difference != "" {
			t.Errorf("%s (-want +got):\n%s", name, difference)
		}
	}
}

func TestCollectReturnsErrorForInvalidEntry(t *testing.T) {
	c := &Collector{User: managerUser, Namespace: "odh"}
	if _, err := c.Collect(strings.NewReader(`{"user":{"username":"` + managerUser + `"},` + "\n")); err == nil {
		t.Error("got no error for an invalid entry")
	}
}
