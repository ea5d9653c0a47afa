package modelmesh

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// FuzzServingRuntime passes arbitrary runtimes to the webhook, and to the functions that need only a runtime. It checks that nothing panics,
// every denial has a message, an update without changes is allowed, and a runtime that is created without a warning is valid.
func FuzzServingRuntime(f *testing.F) {
	for _, object := range []string{validRuntime, singleModelRuntime, runtimeWithoutMultiModel, kedaRuntime, unknownClassRuntime, tooManyReplicas, negativeReplicas, singleModelTooManyReplicas, reservedContainerName, reservedPortName, terminatingRuntime, invalidQuantity, `{`, `null`, `{"spec":[]}`} {
		for _, old := range []string{"", validRuntime, kedaRuntime, tooManyReplicas, terminatingRuntime} {
			f.Add([]byte(object), []byte(old))
		}
	}
	f.Add([]byte(`{"spec":{"multiModel":true,"replicas":1e30,"grpcEndpoint":"unix:///a/b","grpcDataEndpoint":"unix:c","containers":[{"name":""}],"builtInAdapter":{}}}`), []byte(nil))
	f.Add([]byte(`{"spec":{"multiModel":true,"supportedModelFormats":[{"name":"a","version":"1","autoSelect":true},{}],"protocolVersions":["grpc-v2",""],"containers":null}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, object, old []byte) {
		v := &validator{adapters}
		response := v.Handle(t.Context(), newRequest(string(object), string(old)))
		if !response.Allowed && (response.Result == nil || response.Result.Message == "" || response.Result.Code < http.StatusBadRequest) {
			t.Fatalf("denied without a message: %+v", response)
		}
		r := &v1alpha1.ServingRuntime{}
		if json.Unmarshal(object, r) != nil {
			if response.Allowed && len(old) == 0 {
				t.Fatal("an object that cannot be decoded was allowed")
			}
			return
		}
		if update := v.Handle(t.Context(), newRequest(string(object), string(object))); !update.Allowed {
			t.Errorf("an update without changes was denied: %+v", update.Result)
		}
		checkRuntime(t, r, response.Allowed && len(response.Warnings) == 0 && len(old) == 0)
	})
}

// checkRuntime calls the functions that need only a runtime. A runtime allowed without warnings must be valid.
func checkRuntime(t *testing.T, r *v1alpha1.ServingRuntime, noWarnings bool) {
	t.Helper()
	labels := pkgmodelmesh.Labels(r.Name, &r.Spec, true)
	if !pkgmodelmesh.HasLabels(labels, "rt:"+r.Name) {
		t.Errorf("labels %q do not contain rt:%s", labels, r.Name)
	}
	_, notes := pkgmodelmesh.ParseAutoscaling(r.Annotations)
	err := pkgmodelmesh.Validate(&r.Spec, adapters(t.Context(), ""))
	if noWarnings && pkgmodelmesh.IsMultiModel(&r.Spec) && (err != nil || len(notes) > 0) {
		t.Errorf("allowed without a warning, but invalid: error %v, notes %q", err, notes)
	}
	pkgmodelmesh.TypeConstraints(map[string]*v1alpha1.ServingRuntimeSpec{r.Name: &r.Spec}, true)
}
