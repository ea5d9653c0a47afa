package modelmesh

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// FuzzServingRuntime sends arbitrary runtimes through the webhook and through all functions of a runtime alone. Nothing panics; every denial
// has a message; a stored runtime can be updated to itself; and a runtime admitted without a warning has no error.
func FuzzServingRuntime(f *testing.F) {
	for _, object := range []string{good, single, unmarked, keda, test, many, fewer, manyOnce, reserved, https, leaving, quantity, `{`, `null`, `{"spec":[]}`} {
		for _, old := range []string{"", good, keda, many, leaving} {
			f.Add([]byte(object), []byte(old))
		}
	}
	f.Add([]byte(`{"spec":{"multiModel":true,"replicas":1e30,"grpcEndpoint":"unix:///a/b","grpcDataEndpoint":"unix:c","containers":[{"name":""}],"builtInAdapter":{}}}`), []byte(nil))
	f.Add([]byte(`{"spec":{"multiModel":true,"supportedModelFormats":[{"name":"a","version":"1","autoSelect":true},{}],"protocolVersions":["grpc-v2",""],"containers":null}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, object, old []byte) {
		v := &validator{adapters}
		response := v.Handle(t.Context(), ask(string(object), string(old)))
		if !response.Allowed && (response.Result == nil || response.Result.Message == "" || response.Result.Code < http.StatusBadRequest) {
			t.Fatalf("refused without a word: %+v", response)
		}
		r := &v1alpha1.ServingRuntime{}
		if json.Unmarshal(object, r) != nil {
			if response.Allowed && len(old) == 0 {
				t.Fatal("an object that cannot be decoded was admitted")
			}
			return
		}
		if again := v.Handle(t.Context(), ask(string(object), string(object))); !again.Allowed {
			t.Errorf("what is stored cannot be written again: %+v", again.Result)
		}
		derive(t, r, response.Allowed && len(response.Warnings) == 0 && len(old) == 0)
	})
}

// derive calls the functions that depend on the runtime alone.
func derive(t *testing.T, r *v1alpha1.ServingRuntime, praised bool) {
	t.Helper()
	labels := pkgmodelmesh.Labels(r.Name, &r.Spec, true)
	if !pkgmodelmesh.HasLabels(labels, "rt:"+r.Name) {
		t.Errorf("%q is not among %q", r.Name, labels)
	}
	_, notes := pkgmodelmesh.ParseAutoscaling(r.Annotations)
	err := pkgmodelmesh.Validate(&r.Spec, adapters(t.Context(), ""))
	if praised && pkgmodelmesh.IsMultiModel(&r.Spec) && (err != nil || len(notes) > 0) {
		t.Errorf("admitted without a word, and later: %v, %q", err, notes)
	}
	pkgmodelmesh.TypeConstraints(map[string]*v1alpha1.ServingRuntimeSpec{r.Name: &r.Spec}, true)
}
