package doctor

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
)

// The embedded manifests are not empty, and each role and each webhook configuration belongs to a known component.
func TestShipped(t *testing.T) {
	s := shippedManifests(t)
	if len(s.crds) < 8 || len(s.roles) < 15 || len(s.configurations) < 8 {
		t.Errorf("got %d CRDs, %d roles and %d webhook configurations, want at least 8, 15 and 8", len(s.crds), len(s.roles), len(s.configurations))
	}
	known := kinds.Names()
	var namespaced []string
	for _, role := range s.roles {
		if role.namespaced {
			namespaced = append(namespaced, strings.TrimPrefix(role.name, "odh-platform-operator-"))
		}
		if component := role.component; !slices.Contains(append(known, "manager", "mlflowaccess", "appwrapper-slack-queue", "olm"), component) {
			t.Errorf("role %s is in folder %s, which is not a component", role.name, component)
		}
		if role.name == "" || len(role.rules) == 0 {
			t.Errorf("a role without a name or rules: %+v", role)
		}
	}
	slices.Sort(namespaced)
	// Others, such as modelregistry-storage, have rules for cluster-scoped resources, or are never bound in a namespace.
	want := []string{"appwrapper-config", "leader-election", "mlflow", "modelcatalog-huggingface", "modelcatalog-namespaced", "modelmesh-runtimes",
		"modelregistry-namespaced", "olm", "platform", "webhook-certificate"}
	if !slices.Equal(namespaced, want) {
		t.Errorf("got the namespaced roles %q, want %q", namespaced, want)
	}
	for name, component := range s.configurations {
		if !slices.Contains(known, component) {
			t.Errorf("%s belongs to %s, which is not a component", name, component)
		}
	}
}

func TestBrokenManifests(t *testing.T) {
	for name, content := range map[string]string{"a.yaml": "a: [", "b.yaml": "kind: 1", "c.yaml": "{kind: CustomResourceDefinition, metadata: {name: a}, spec: 1}"} {
		if _, err := readManifests(fstest.MapFS{"x/" + name: {Data: []byte(content)}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got error %v, want one that names the file", name, err)
		}
	}
}

// Metadata, names and the conversion of a CRD are ignored, changes of its versions are not.
func TestEqualVersions(t *testing.T) {
	for name, crd := range shippedManifests(t).crds {
		live := crd.DeepCopy()
		live.Annotations, live.Generation = map[string]string{"a": "b"}, 3
		live.Spec.Names.Singular, live.Spec.Conversion = "x", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		if !equalVersions(live, crd) {
			t.Errorf("%s: want metadata, names and conversion ignored", name)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil || !equalVersions(fetch.Decode[apiextensionsv1.CustomResourceDefinition](&unstructured.Unstructured{Object: content}), crd) {
			t.Errorf("%s: want a decoded copy to be equal; error %v", name, err)
		}
	}
	crd := shippedManifests(t).crds["mlflows.mlflow.opendatahub.io"]
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinitionVersion){
		"description": func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Schema.OpenAPIV3Schema.Description += "x" },
		"served":      func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Served = false },
		"columns":     func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.AdditionalPrinterColumns = nil },
		"subresource": func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Subresources = nil },
	} {
		other := crd.DeepCopy()
		change(&other.Spec.Versions[0])
		if equalVersions(other, crd) {
			t.Errorf("%s: want a changed field to make versions unequal", name)
		}
	}
}

// A missing permission is listed once, even if several rules require it.
func TestMissingPermissions(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	path := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	secret, named, status := rule("", "secrets", "get"), rule("", "secrets", "get", "a"), rule("x", "things/status", "patch")
	for name, tc := range map[string]struct {
		granted  rbacv1.PolicyRule
		required rbacv1.PolicyRule
		missing  string
	}{
		"another verb":                    {rule("", "secrets", "list"), secret, "get secrets"},
		"wildcards":                       {rule("*", "*", "*"), secret, ""},
		"resource name instead of all":    {named, secret, "get secrets"},
		"another name":                    {rule("", "secrets", "get", "b"), named, "get secrets a"},
		"all instead of a resource name":  {secret, named, ""},
		"resource instead of subresource": {rule("x", "things", "patch"), status, "patch things.x/status"},
		"subresource of all resources":    {rule("x", "*/status", "patch"), status, ""},
		"path prefix":                     {rbacv1.PolicyRule{NonResourceURLs: []string{"/met*"}, Verbs: []string{"get"}}, path, ""},
		"another path":                    {rbacv1.PolicyRule{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}}, path, "get /metrics"},
	} {
		if got := missingPermissions([]rbacv1.PolicyRule{tc.granted}, []rbacv1.PolicyRule{tc.required, tc.required}); got != tc.missing {
			t.Errorf("%s: got %q, want %q", name, got, tc.missing)
		}
	}
}

func TestIncludesAccount(t *testing.T) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "odh", Name: "manager"}
	for name, tc := range map[string]struct {
		subject rbacv1.Subject
		want    bool
	}{
		"ServiceAccount":                      {account, true},
		"ServiceAccount without namespace":    {rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "manager"}, true},
		"ServiceAccount in another namespace": {rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "x", Name: "manager"}, false},
		"user name of the ServiceAccount":     {rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:serviceaccount:odh:manager"}, true},
		"group of all ServiceAccounts":        {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}, true},
		"group of the namespace":              {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:odh"}, true},
		"group of another namespace":          {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:x"}, false},
		"other group":                         {rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "team"}, false},
	} {
		if got := includesAccount([]rbacv1.Subject{tc.subject}, "odh", account); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
