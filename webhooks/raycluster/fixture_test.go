package raycluster

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Small clusters of users.
const (
	minimal = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: test-raycluster, namespace: test-namespace}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: ray-head, image: "example.com/ray:1"}]}}
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {}
    template: {spec: {containers: [{name: ray-worker, image: "example.com/ray:1"}]}}
  - groupName: big
    rayStartParams: {}
    template: {spec: {containers: [{name: ray-worker, image: "example.com/ray:1"}]}}
`
	noHeadContainer = `
metadata: {name: test-raycluster, namespace: test-namespace}
spec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: []}}}}
`
)

// onOpenShift returns settings for OpenShift with all features enabled.
func onOpenShift() Settings {
	c := config.DefaultRayCluster()
	c.OAuthProxyImage, c.AuthProxyImage, c.CertGeneratorImage = "example.com/oauth:1", "example.com/proxy:1", "example.com/ubi:1"
	return Settings{RayCluster: c, Platform: raycluster.Platform{OpenShift: true, OAuthServer: true}, Domain: "apps.example.com", Version: "0.0.0"}
}

func (s Settings) source(context.Context) (Settings, error) { return s, nil }

// with returns a changed copy of the settings.
func (s Settings) with(change func(*Settings)) Settings {
	change(&s)
	return s
}

func issuedByPod(s *Settings)  { s.Certificates = config.CertificatesByPod }
func withoutOAuth(s *Settings) { s.OAuth = false }
func withoutMTLS(s *Settings)  { s.MTLS = false }
func plain(s *Settings)        { s.OpenShift, s.OAuthServer = false, false }
func trustKubeRay(s *Settings) { s.KubeRaySecurity = config.KubeRaySecurityTrust }
func newRelease(s *Settings) {
	s.Version, s.OAuthProxyImage, s.AuthProxyImage, s.CertGeneratorImage = "9.9.9", "example.com/oauth:9", "example.com/proxy:9", "example.com/ubi:9"
}

// parse parses YAML and applies changes.
func parse(t testing.TB, text string, changes ...func(map[string]any)) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := raycluster.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return copyOf(c.Object(), changes...)
}

// copyOf returns a changed copy of an object.
func copyOf(object map[string]any, changes ...func(map[string]any)) map[string]any {
	object = runtime.DeepCopyJSON(object)
	for _, change := range changes {
		change(object)
	}
	return object
}

// put returns a change that sets the value at a path, or deletes the field if value is nil.
func put(value any, at ...string) func(map[string]any) {
	return func(object map[string]any) {
		var parent any = object
		for _, name := range at[:len(at)-1] {
			if fields, ok := parent.(map[string]any); ok && fields[name] == nil && value != nil {
				fields[name] = map[string]any{}
			}
			parent = nested.At(parent, name)
		}
		last := at[len(at)-1]
		switch parent := parent.(type) {
		case []any:
			for i := range parent {
				if strconv.Itoa(i) == last {
					parent[i] = value
				}
			}
		case map[string]any:
			if parent[last] = value; value == nil {
				delete(parent, last)
			}
		}
	}
}

// addAt appends an element to a list, which may not exist.
func addAt(object map[string]any, list []string, value any) {
	put(append(slices.Clone(listAt(object, list...)), value), list...)(object)
}

// dropAt deletes an element of a list.
func dropAt(object map[string]any, list []string, i int) {
	put(slices.Delete(slices.Clone(listAt(object, list...)), i, i+1), list...)(object)
}

func requestOf(t testing.TB, object, old map[string]any) admission.Request {
	t.Helper()
	request := admission.Request{}
	request.Operation, request.UID = admissionv1.Create, "request"
	request.Namespace, _ = at(object, "metadata", "namespace").(string)
	request.Object = runtime.RawExtension{Raw: mustMarshal(t, object)}
	if old != nil {
		request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: mustMarshal(t, old)}
	}
	return request
}

func mustMarshal(t testing.TB, object any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// applyDefaults returns the object as patched by the mutating webhook.
func applyDefaults(t testing.TB, s Settings, object, old map[string]any) map[string]any {
	t.Helper()
	request := requestOf(t, object, old)
	response := (&defaulter{s.source}).Handle(t.Context(), request)
	if !response.Allowed {
		t.Fatalf("the mutating webhook rejected the object: %+v", response.Result)
	}
	raw := request.Object.Raw
	if len(response.Patches) > 0 {
		patch, err := jsonpatch.DecodePatch(mustMarshal(t, response.Patches))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("unexpected error: %v\n%s", err, response.Patches)
		}
	}
	c, err := raycluster.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c.Object()
}

// validateObject returns the response of the validating webhook.
func validateObject(t testing.TB, s Settings, object, old map[string]any) admission.Response {
	t.Helper()
	return (&validator{s.source}).Handle(t.Context(), requestOf(t, object, old))
}

// expectAllowed expects that validation allows an object without warnings other than that about the ServiceAccount.
func expectAllowed(t testing.TB, s Settings, object, old map[string]any) {
	t.Helper()
	response := validateObject(t, s, object, old)
	others := slices.DeleteFunc(slices.Clone(response.Warnings), func(w string) bool { return strings.HasPrefix(w, headTemplate+"serviceAccountName: ") })
	if !response.Allowed || len(others) > 0 {
		t.Errorf("the object was rejected or caused warnings: %+v, %q", response.Result, response.Warnings)
	}
}

// changedHead changes the head template, which recreates the head pods.
func changedHead(object map[string]any) {
	put("example.com/ray:changed", in(headPod, "containers", "0", "image")...)(object)
}

// at returns a value in an object, or nil.
func at(object map[string]any, names ...string) any { return nested.At(object, names...) }

// find returns the first element of a list with the name.
func find(list []any, name string) element { return nested.ByName(list, name) }

// listAt returns a list in an object.
func listAt(object map[string]any, names ...string) []any {
	list, _ := at(object, names...).([]any)
	return list
}

var (
	headPod = []string{"spec", "headGroupSpec", "template", "spec"}
	worker0 = []string{"spec", "workerGroupSpecs", "0", "template", "spec"}
	worker1 = []string{"spec", "workerGroupSpecs", "1", "template", "spec"}
)

var autoscalerEnv, autoscalerMounts = autoscalerOptions.child("env"), autoscalerOptions.child("volumeMounts")

// in returns the path of a field in a pod spec.
func in(pod []string, names ...string) []string { return fieldPath(pod).child(names...) }
