package appwrapper

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// The handlers do not panic for any input, and admit no component that is an AppWrapper, grants permissions, is cluster-scoped, or is in
// another namespace.
func FuzzAdmission(f *testing.F) {
	for _, template := range []string{pod, service, deployment, nestedTemplate, clusterRoleBinding, roleBinding, rayCluster, rayJob, pyTorch, jobSet, job("1", "2"), namespaceTemplate} {
		raw, err := yaml.YAMLToJSON([]byte("metadata: {name: a}\nspec:\n  components:\n  - template: " + template + "\n    podSets: [{path: template, replicas: 1}]\n  - template: " + pod))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw)
	}
	f.Add([]byte(`{"spec":{"components":[{"template":{"apiVersion":"v1","kind":"Pod","Kind":"AppWrapper","metadata":{"namespace":5}}},{"template":null}]}}`), []byte(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`))
	fixture := newCluster()
	v := &validator{settings: fixedSettings(Settings{}), mapper: fixture.mapper, podSetLimit: fixedLimit(maxPodSets)}
	d := &defaulter{fixedSettings(Settings{DefaultQueueName: "q"})}
	f.Fuzz(func(t *testing.T, object, old []byte) {
		request := admission.Request{}
		request.Namespace, request.UserInfo = testNamespace, alice
		request.Object, request.OldObject = runtime.RawExtension{Raw: object}, runtime.RawExtension{Raw: old}
		request.Operation = admissionv1.Update
		v.Handle(t.Context(), request)
		request.Operation = admissionv1.Create
		if response := d.Handle(t.Context(), request); response.Complete(request) != nil {
			t.Errorf("got patches %s that cannot be encoded", response.Patches)
		}
		if response := v.Handle(t.Context(), request); response.Allowed {
			expectAllowedComponents(t, fixture.mapper, object)
		}
	})
}

// expectAllowedComponents checks that an admitted AppWrapper has no forbidden components.
func expectAllowedComponents(t *testing.T, mapper meta.RESTMapper, object []byte) {
	t.Helper()
	wrapper, err := decode(object)
	if err != nil {
		t.Fatalf("admitted AppWrapper: %v", err)
	}
	for _, c := range wrapper.Spec.Components {
		var template map[string]any
		if err := json.Unmarshal(c.Template.Raw, &template); err != nil {
			t.Fatalf("admitted template %q: %v", c.Template.Raw, err)
		}
		kind, _ := template["kind"].(string)
		apiVersion, _ := template["apiVersion"].(string)
		if strings.HasPrefix(apiVersion, "workload.codeflare.dev/") || strings.HasPrefix(apiVersion, "rbac.authorization.k8s.io/") ||
			strings.HasPrefix(apiVersion, "authorization.openshift.io/") || kind == "Namespace" || kind == "ClusterRoleBinding" {
			t.Errorf("admitted kind %s %s", apiVersion, kind)
		}
		metadata, _ := template["metadata"].(map[string]any)
		if namespace, _ := metadata["namespace"].(string); namespace != "" && namespace != testNamespace {
			t.Errorf("admitted namespace %q", namespace)
		}
		object, err := decodeTemplate(&c)
		if err != nil {
			t.Fatalf("admitted template: %v", err)
		}
		mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Errorf("admitted %s: %v", object.GroupVersionKind(), err)
		}
	}
}
