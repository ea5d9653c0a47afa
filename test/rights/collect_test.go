package rights

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	me    = "system:serviceaccount:odh:manager"
	route = `{"resource":"routes","namespace":"ns","name":"x","apiGroup":"route.openshift.io"}`
)

// entry returns one audit event.
func entry(user, stage, verb, ref string, code int, rest string) string {
	return fmt.Sprintf(`{"stage":%q,"verb":%q,"requestURI":"/asked?x=1","user":{"username":%q},"objectRef":%s,"responseStatus":{"code":%d}%s}`+"\n",
		stage, verb, user, ref, code, rest)
}

func done(verb, ref string, code int, response string) string {
	if response != "" {
		response = `,"responseObject":` + response
	}
	return entry(me, "ResponseComplete", verb, ref, code, response)
}

func named(resource, group, namespace, name string) string {
	return fmt.Sprintf(`{"resource":%q,"namespace":%q,"name":%q,"apiGroup":%q}`, resource, namespace, name, group)
}

func collect(t *testing.T, log string) Run {
	t.Helper()
	c := &Collector{User: me, Namespace: "odh", Expected: func(use Use, offset int64) bool { return use.Resource == "gadgets" && offset > 0 }}
	run, err := c.Collect(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestUsedRights(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []Use
	}{
		"empty log":            {"", nil},
		"other users":          {entry("ann", "ResponseComplete", "get", named("pods", "", "odh", "p"), 200, ""), nil},
		"discovery":            {done("get", `{}`, 200, ""), nil},
		"not found":            {done("get", named("pods", "", "odh", "p"), 404, ""), []Use{{Verb: "get", Resource: "pods", Namespace: Own}}},
		"in another namespace": {done("get", named("pods", "", "ns", "p"), 200, ""), []Use{{Verb: "get", Resource: "pods", Namespace: Other}}},
		"everywhere":           {done("list", named("pods", "", "", ""), 200, ""), []Use{{Verb: "list", Resource: "pods"}}},
		"subresource":          {done("patch", `{"resource":"mlflows","subresource":"status","apiGroup":"g","namespace":"ns","name":"m"}`, 200, ""), []Use{{Verb: "patch", Group: "g", Resource: "mlflows/status", Namespace: Other}}},
		"half a line":          {`{"stage":"Resp`, nil},
		"a watch that ends":    {entry(me, "ResponseStarted", "watch", named("pods", "", "", ""), 200, "") + done("watch", named("pods", "", "", ""), 200, ""), []Use{{Verb: "watch", Resource: "pods"}}},
		"an apply that creates": {done("patch", named("services", "", "odh", "s"), 201, ""), []Use{
			{Verb: "create", Resource: "services", Namespace: Own}, {Verb: "patch", Resource: "services", Namespace: Own},
		}},
		"an apply that changes": {done("patch", named("services", "", "odh", "s"), 200, ""), []Use{{Verb: "patch", Resource: "services", Namespace: Own}}},
		"an owner that is held up": {
			done("create", named("services", "", "odh", ""), 201, `{"metadata":{"ownerReferences":[{"apiVersion":"g/v1","kind":"Policy","name":"p","blockOwnerDeletion":true},{"apiVersion":"v1","kind":"Node","name":"n"}]}}`),
			[]Use{{Verb: "create", Resource: "services", Namespace: Own}, {Verb: "update", Group: "g", Resource: "policies/finalizers", Namespace: Own}},
		},
		"owners that change": {
			entry("ann", "ResponseComplete", "create", named("services", "", "odh", "s"), 201, `,"responseObject":{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				done("patch", named("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"new"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "delete", Resource: "services", Namespace: Own}},
		},
		"an owner that is new": {
			done("patch", named("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"new"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "delete", Resource: "services", Namespace: Own}},
		},
		"owners that stay": {
			entry("ann", "ResponseComplete", "create", named("services", "", "odh", "s"), 201, `,"responseObject":{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				done("patch", named("services", "", "odh", "s"), 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`) +
				done("patch", `{"resource":"services","subresource":"status","namespace":"odh"}`, 200, `{"metadata":{"uid":"1","ownerReferences":[{"name":"old"}]}}`),
			[]Use{{Verb: "patch", Resource: "services", Namespace: Own}, {Verb: "patch", Resource: "services/status", Namespace: Own}},
		},
		"a route with a host": {
			done("create", route, 201, `{"spec":{"host":"a.example.com"}}`) + done("patch", route, 200, `{"spec":{"host":"b.example.com"}}`),
			[]Use{
				{Verb: "create", Group: "route.openshift.io", Resource: "routes", Namespace: Other}, {Verb: "create", Group: "route.openshift.io", Resource: "routes/custom-host", Namespace: Other},
				{Verb: "patch", Group: "route.openshift.io", Resource: "routes", Namespace: Other}, {Verb: "update", Group: "route.openshift.io", Resource: "routes/custom-host", Namespace: Other},
			},
		},
		"a route without": {done("create", route, 201, `{"spec":{}}`), []Use{{Verb: "create", Group: "route.openshift.io", Resource: "routes", Namespace: Other}}},
	} {
		if difference := cmp.Diff(sorted(c.want), collect(t, c.log).Used); difference != "" {
			t.Errorf("%s: got %s, want an empty string", name, difference)
		}
	}
}

// A name is kept when a role of the cluster names it: all others vary.
func TestNamesOfRolesAreKept(t *testing.T) {
	role := entry("admin", "ResponseComplete", "create", named("clusterroles", "rbac.authorization.k8s.io", "", "r"), 201,
		`,"responseObject":{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["fixed"]}]}`)
	got := collect(t, done("get", named("secrets", "", "odh", "fixed"), 200, "")+done("get", named("secrets", "", "odh", "any"), 200, "")+role)
	want := []Use{{Verb: "get", Resource: "secrets", Namespace: Own}, {Verb: "get", Resource: "secrets", Name: "fixed", Namespace: Own}}
	if difference := cmp.Diff(sorted(want), got.Used); difference != "" {
		t.Error(difference)
	}
}

func TestGrantedPermissionsAreCollected(t *testing.T) {
	delegator := entry("system:apiserver", "ResponseComplete", "create", named("clusterroles", "rbac.authorization.k8s.io", "", "delegator"), 201,
		`,"responseObject":{"metadata":{"name":"delegator"},"rules":[{"verbs":["create"],"apiGroups":["a"],"resources":["reviews"]}]}`)
	got := collect(t, delegator+
		done("create", named("roles", "rbac.authorization.k8s.io", "odh", "r"), 201, `{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["services"],"resourceNames":["svc"]}]}`)+
		done("create", named("clusterrolebindings", "rbac.authorization.k8s.io", "", "b"), 201, `{"roleRef":{"kind":"ClusterRole","name":"delegator"}}`)+
		done("create", named("rolebindings", "rbac.authorization.k8s.io", "odh", "b"), 201, `{"roleRef":{"kind":"Role","name":"r"}}`))
	if difference := cmp.Diff([]Use{{Verb: "get", Resource: "services", Namespace: Own}}, got.Granted); difference != "" {
		t.Error(difference)
	}
	if difference := cmp.Diff([]Bound{{Name: "delegator", Rules: []Use{{Verb: "create", Group: "a", Resource: "reviews"}}}}, got.Bound); difference != "" {
		t.Error(difference)
	}
}

func TestCollectRecordsForbiddenRequests(t *testing.T) {
	decided := func(decision, message string, resource string) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"create","user":{"username":%q},"objectRef":{"resource":%q},"responseStatus":{"code":403,"message":%q},"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
			me, resource, message, decision)
	}
	for name, c := range map[string]struct {
		log  string
		want []Refusal
	}{
		"by the authorizer":                    {decided("forbid", "no", "pods"), []Refusal{{Use: Use{Verb: "create", Resource: "pods"}, Message: "no"}}},
		"by a webhook":                         {decided("allow", "denied", "pods"), nil},
		"of more rights":                       {decided("allow", "is attempting to grant RBAC permissions not currently held", "roles"), []Refusal{{Use: Use{Verb: "create", Resource: "roles"}, Message: "is attempting to grant RBAC permissions not currently held"}}},
		"of an owner":                          {decided("allow", "cannot set blockOwnerDeletion", "pods"), []Refusal{{Use: Use{Verb: "create", Resource: "pods"}, Message: "cannot set blockOwnerDeletion"}}},
		"owner of a kind without REST mapping": {decided("allow", `pods \"p\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion g/v1`, "pods"), nil},
		"of what is allowed":                   {decided("forbid", "not yet", "pods") + decided("allow", "", "pods"), nil},
		"of a list by one who may watch":       {entry(me, "ResponseStarted", "watch", named("pods", "", "", ""), 200, "") + strings.Replace(decided("forbid", "not yet", "pods"), "create", "list", 1), nil},
		"of rights, once":                      {decided("allow", "attempting to grant RBAC permissions", "roles") + decided("allow", "", "roles"), []Refusal{{Use: Use{Verb: "create", Resource: "roles"}, Message: "attempting to grant RBAC permissions"}}},
		"expected":                             {decided("allow", "", "pods") + decided("forbid", "no", "gadgets"), []Refusal{{Use: Use{Verb: "create", Resource: "gadgets"}, Message: "no", Expected: true}}},
		"before its time":                      {decided("forbid", "no", "gadgets"), []Refusal{{Use: Use{Verb: "create", Resource: "gadgets"}, Message: "no"}}},
		"a watch, logged twice":                {entry(me, "ResponseStarted", "watch", named("pods", "", "", ""), 403, `,"annotations":{"authorization.k8s.io/decision":"forbid"}`) + entry(me, "ResponseComplete", "watch", named("pods", "", "", ""), 403, `,"annotations":{"authorization.k8s.io/decision":"forbid"}`), []Refusal{{Use: Use{Verb: "watch", Resource: "pods"}}}},
	} {
		if difference := cmp.Diff(c.want, collect(t, c.log).Refused); difference != "" {
			t.Errorf("%s: got %s, want an empty string", name, difference)
		}
	}
}

func TestBrokenLog(t *testing.T) {
	c := &Collector{User: me, Namespace: "odh"}
	if _, err := c.Collect(strings.NewReader(`{"user":{"username":"` + me + `"},` + "\n")); err == nil {
		t.Error("want an error for a broken entry")
	}
}
