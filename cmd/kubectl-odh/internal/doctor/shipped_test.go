package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
)

// What is built in has all that an installation has.
func TestShipped(t *testing.T) {
	s := ships(t)
	if len(s.CRDs) < 8 || len(s.Roles) < 15 || len(s.UserRoles) < 8 || len(s.Configurations) < 8 {
		t.Errorf("%d CRDs, %d roles, %d roles for users, %d configurations of webhooks", len(s.CRDs), len(s.Roles), len(s.UserRoles), len(s.Configurations))
	}
	known := ours.Names()
	for _, role := range append(slices.Clone(s.Roles), s.UserRoles...) {
		if component := role.Component; !slices.Contains(append(known, "manager", "mlflowaccess", "appwrapper-slack-queue"), component) {
			t.Errorf("role %s is in folder %s, which is no component", role.Name, component)
		}
		if role.Name == "" {
			t.Errorf("a role without a name: %+v", role)
		}
	}
	for _, role := range s.Roles { // those of users may be put together by labels
		if len(role.Rules) == 0 {
			t.Errorf("an empty role: %+v", role)
		}
	}
	for name, component := range s.Configurations {
		if !slices.Contains(known, component) {
			t.Errorf("%s belongs to %s, which is no component", name, component)
		}
	}
}

func TestBrokenManifests(t *testing.T) {
	for name, content := range map[string]string{"a.yaml": "a: [", "b.yaml": "kind: 1", "c.yaml": "{kind: CustomResourceDefinition, metadata: {name: a}, spec: 1}"} {
		if _, err := readShipped(fstest.MapFS{"x/" + name: {Data: []byte(content)}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an API server adds to a CRD makes no difference, and a schema does.
func TestFingerprint(t *testing.T) {
	crd := ships(t).CRDs["mlflows.mlflow.opendatahub.io"]
	live := crd.DeepCopy()
	live.Annotations, live.Generation = map[string]string{"a": "b"}, 3
	live.Spec.Names.Singular, live.Spec.Conversion = "x", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	if Fingerprint(live) != Fingerprint(crd) {
		t.Error("what is filled in counts")
	}
	raw, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	again := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, again); err != nil || Fingerprint(again) != Fingerprint(crd) {
		t.Errorf("the way to the API server and back counts: %v", err)
	}
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinitionVersion){
		"description": func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Schema.OpenAPIV3Schema.Description += "x" },
		"served":      func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Served = false },
		"columns":     func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.AdditionalPrinterColumns = nil },
		"subresource": func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Subresources = nil },
	} {
		other := crd.DeepCopy()
		change(&other.Spec.Versions[0])
		if Fingerprint(other) == Fingerprint(crd) {
			t.Errorf("%s does not count", name)
		}
	}
}

func TestGrants(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	secret := right{resource: "secrets", verb: "get"}
	named := right{resource: "secrets", verb: "get", name: "a"}
	status := right{group: "x", resource: "things/status", verb: "patch"}
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		right right
		want  bool
	}{
		"none":              {nil, secret, false},
		"exact":             {[]rbacv1.PolicyRule{rule("", "secrets", "get")}, secret, true},
		"another verb":      {[]rbacv1.PolicyRule{rule("", "secrets", "list")}, secret, false},
		"another group":     {[]rbacv1.PolicyRule{rule("x", "secrets", "get")}, secret, false},
		"stars":             {[]rbacv1.PolicyRule{rule("*", "*", "*")}, secret, true},
		"one name for all":  {[]rbacv1.PolicyRule{rule("", "secrets", "get", "a")}, secret, false},
		"one name":          {[]rbacv1.PolicyRule{rule("", "secrets", "get", "a")}, named, true},
		"another name":      {[]rbacv1.PolicyRule{rule("", "secrets", "get", "b")}, named, false},
		"all names for one": {[]rbacv1.PolicyRule{rule("", "secrets", "get")}, named, true},
		"subresource":       {[]rbacv1.PolicyRule{rule("x", "things/status", "patch")}, status, true},
		"its resource":      {[]rbacv1.PolicyRule{rule("x", "things", "patch")}, status, false},
		"every resource's":  {[]rbacv1.PolicyRule{rule("x", "*/status", "patch")}, status, true},
		"a path":            {[]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, right{verb: "get", path: "/metrics"}, true},
		"paths":             {[]rbacv1.PolicyRule{{NonResourceURLs: []string{"/met*"}, Verbs: []string{"get"}}}, right{verb: "get", path: "/metrics"}, true},
		"another path":      {[]rbacv1.PolicyRule{{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}}}, right{verb: "get", path: "/metrics"}, false},
	} {
		if got := grants(tc.rules, tc.right); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for want, r := range map[string]right{
		"get secrets": secret, "get secrets a": named, "patch things.x/status": status, "get /metrics": {verb: "get", path: "/metrics"},
	} {
		if r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
	}
}

func TestWhomABindingConcerns(t *testing.T) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "odh", Name: "manager"}
	for name, tc := range map[string]struct {
		subject rbacv1.Subject
		want    bool
	}{
		"itself":                {account, true},
		"without its namespace": {rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "manager"}, true},
		"of another namespace":  {rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "x", Name: "manager"}, false},
		"as a user":             {rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:serviceaccount:odh:manager"}, true},
		"all accounts":          {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}, true},
		"those of a namespace":  {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:odh"}, true},
		"of another":            {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:x"}, false},
		"a group":               {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "team"}, false},
	} {
		if got := concerns([]rbacv1.Subject{tc.subject}, "odh", account); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
