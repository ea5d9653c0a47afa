package kserve

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// definition returns a CRD with fields, each given as `name:type`.
func definition(name string, fields ...string) *apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		key, kind, _ := strings.Cut(field, ":")
		spec.Properties[key] = apiextensionsv1.JSONSchemaProps{Type: kind}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &spec},
	}}
	return crd
}

func TestCompare(t *testing.T) {
	definitionX := definition("x", "a:string", "b:integer")
	second := definition("x", "a:string", "b:integer")
	second.Spec.Versions = append(second.Spec.Versions, *second.Spec.Versions[0].DeepCopy())
	second.Spec.Versions[1].Name = "v2"
	unserved := second.DeepCopy()
	unserved.Spec.Versions[1].Served = false
	described := definitionX.DeepCopy()
	described.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "text"
	cases := map[string]struct {
		live *apiextensionsv1.CustomResourceDefinition
		want Relation
	}{
		"no installed CRD":             {nil, Missing},
		"equal definitions":            {definitionX, Same},
		"different descriptions":       {described, Same},
		"missing field":                {definition("x", "a:string"), Older},
		"additional field":             {definition("x", "a:string", "b:integer", "c:string"), Newer},
		"additional version":           {second, Newer},
		"additional unserved version":  {unserved, Same},
		"additional and missing field": {definition("x", "a:string", "c:string"), Different},
		"field of another type":        {definition("x", "a:string", "b:string"), Different},
	}
	for name, c := range cases {
		if got := Compare(c.live, definitionX); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// Compare includes the fields in lists and maps.
func TestCompareIncludesListsAndMaps(t *testing.T) {
	deep := func(leaf string) *apiextensionsv1.CustomResourceDefinition {
		crd := definition("x")
		inner := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{leaf: {Type: "string"}}}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["list"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &inner},
			}},
		}
		return crd
	}
	if got := Compare(deep("a"), deep("a")); got != Same {
		t.Errorf("got %s, want %s", got, Same)
	}
	if got := Compare(deep("a"), deep("b")); got != Different {
		t.Errorf("got %s, want %s", got, Different)
	}
}

func TestInstall(t *testing.T) {
	older := definition("older", "a:string")
	older.Annotations = map[string]string{"owner": "other"}
	older.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	newer := definition("newer", "a:string", "b:string", "c:string")
	different := definition("different", "c:string")
	client := fake.NewClientset(older, newer, different, definition("same", "a:string", "b:string"))
	var generated []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"different", "missing", "newer", "older", "same"} {
		generated = append(generated, definition(name, "a:string", "b:string"))
	}
	var out bytes.Buffer
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	err := Install(t.Context(), crds, generated, &out)
	if err == nil || !strings.HasPrefix(err.Error(), "CustomResourceDefinition different: the installed CRD and the required one each have fields") {
		t.Errorf("got error %v, want one for the CRD different", err)
	}
	want := "missing: created\nnewer: unchanged, because the installed version is newer\nolder: updated\nsame: unchanged\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for name, fields := range map[string]int{"different": 1, "missing": 2, "newer": 3, "older": 2, "same": 2} {
		crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties); got != fields {
			t.Errorf("%s has %d fields, want %d", name, got, fields)
		}
		if name == "older" && (crd.Annotations["owner"] != "other" || crd.Spec.Conversion == nil) {
			t.Errorf("got %+v, want annotations and conversion unchanged", crd)
		}
	}
	var writes int
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("got %d writes, want one creation and one update", writes)
	}
}

func TestInstallErrorNamesCRD(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		client := fake.NewClientset()
		client.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "x", nil)
		})
		err := Install(t.Context(), client.ApiextensionsV1().CustomResourceDefinitions(), []*apiextensionsv1.CustomResourceDefinition{definition("x")}, &bytes.Buffer{})
		if err == nil || !strings.HasPrefix(err.Error(), "CustomResourceDefinition x: ") {
			t.Errorf("%s: got error %v, want one with the prefix 'CustomResourceDefinition x: '", verb, err)
		}
	}
}

// Write writes a kustomization of the CRDs, without the conversion webhook of KServe.
func TestWrite(t *testing.T) {
	for _, namespaced := range []bool{false, true} {
		crds, err := Definitions(t.Context(), namespaced)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "new", "folder")
		if err := Write(dir, crds); err != nil {
			t.Fatal(err)
		}
		var kustomization struct{ Resources []string }
		content, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
		if err != nil || yaml.UnmarshalStrict(content, &struct {
			metav1.TypeMeta `json:",inline"`
			Resources       *[]string `json:"resources"`
		}{Resources: &kustomization.Resources}) != nil {
			t.Fatalf("got kustomization %s, error %v", content, err)
		}
		want := []string{"clusterservingruntimes.serving.kserve.io.yaml", "inferenceservices.serving.kserve.io.yaml", "servingruntimes.serving.kserve.io.yaml"}
		if namespaced {
			want = want[1:]
		}
		if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
			t.Errorf("namespaced %t:\n%s", namespaced, diff)
		}
		for i, file := range kustomization.Resources {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(content, crd); err != nil || crd.Spec.Conversion != nil || Compare(crd, crds[i]) != Same {
				t.Errorf("%s: got error %v, conversion %+v, want the CRD without a conversion", file, err, crd.Spec.Conversion)
			}
		}
	}
}

func TestWriteErrorNamesStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, nil); err == nil || !strings.HasPrefix(err.Error(), "creating the folder: ") {
		t.Errorf("got error %v, want one with the prefix 'creating the folder: '", err)
	}
}
