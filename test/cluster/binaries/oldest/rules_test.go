// Package oldest validates manifests with the API server code of the oldest Kubernetes that the operator supports.
package oldest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	admissioninstall "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	webhookvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

const root = "../../../.."

// newScheme returns a scheme with the validated kinds, their defaults and their conversions.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensions.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	admissioninstall.Install(scheme)
	return scheme
}

// decode returns the objects in a file with defaults, in their internal versions. It returns an error for unknown fields.
func decode(scheme *runtime.Scheme, content []byte) ([]runtime.Object, error) {
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(
		apiextensions.SchemeGroupVersion, admissionregistration.SchemeGroupVersion)
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	var objects []runtime.Object
	for buffer := make([]byte, 1<<20); ; {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(buffer[:n])) == 0 {
			continue
		}
		object, _, err := decoder.Decode(buffer[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// validate returns the errors with which the API server rejects an object. It compiles all CEL rules and estimates their cost.
func validate(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	switch object := object.(type) {
	case *apiextensions.CustomResourceDefinition:
		for i := range object.Spec.Versions { // as the API server does before validation
			if object.Spec.Versions[i].Storage {
				object.Status.StoredVersions = []string{object.Spec.Versions[i].Name}
			}
		}
		return crdvalidation.ValidateCustomResourceDefinition(t.Context(), object)
	case *admissionregistration.MutatingWebhookConfiguration:
		return webhookvalidation.ValidateMutatingWebhookConfiguration(object)
	case *admissionregistration.ValidatingWebhookConfiguration:
		return webhookvalidation.ValidateValidatingWebhookConfiguration(object)
	default:
		t.Fatalf("no validation for %T", object)
		return nil
	}
}

// The CRDs and webhook configurations are valid in the oldest Kubernetes, whose CEL has fewer functions and another cost estimate.
func TestOldestKubernetesAcceptsCELRules(t *testing.T) {
	scheme := newScheme(t)
	for pattern, rule := range map[string]string{"config/crd/bases/*.yaml": "x-kubernetes-validations:", "config/webhook/*/configurations.yaml": "matchConditions:"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) < 6 {
			t.Fatal(pattern, paths, err)
		}
		rules := 0
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := decode(scheme, content)
			if err != nil || len(objects) == 0 {
				t.Fatalf("%s: %d objects, error %v", path, len(objects), err)
			}
			for _, object := range objects {
				if errs := validate(t, object); len(errs) > 0 {
					t.Errorf("%s: %v", path, errs.ToAggregate())
				}
			}
			rules += strings.Count(string(content), rule)
		}
		if rules < 8 {
			t.Errorf("%s: %d rules, want at least 8", pattern, rules)
		}
	}
}

// The validation rejects rules with functions of newer versions, or with syntax errors.
func TestOldestKubernetesRejectsNewerCEL(t *testing.T) {
	scheme := newScheme(t)
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {name: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: "RULE"}]}}}}
`
	const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gadgets}
webhooks:
- name: gadgets.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://example.com"}
  matchConditions: [{name: rule, expression: "RULE"}]
`
	for text, rules := range map[string]map[string]bool{
		crd:     {"self.startsWith('a')": true, "format.dns1123Label().validate(self).hasValue()": false, "isSemver(self)": false},
		webhook: {"has(object.metadata)": true, "isSemver(request.name)": false, "object.missing(": false},
	} {
		for rule, want := range rules {
			objects, err := decode(scheme, []byte(strings.Replace(text, "RULE", rule, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if errs := validate(t, objects[0]); (len(errs) == 0) != want {
				t.Errorf("%s: errors %v, want accepted: %t", rule, errs.ToAggregate(), want)
			}
		}
	}
	if _, err := decode(scheme, []byte(strings.Replace(crd, "served: true", "unknownField: true", 1))); err == nil {
		t.Error("want an error for an unknown field")
	}
}
