package modelregistry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

const defaultImage = "quay.io/opendatahub/model-registry:latest"

var (
	alpha = v1alpha1.GroupVersion.String()
	beta  = v1beta1.GroupVersion.String()
)

// settings returns settings with a default image, for a cluster with or without Routes.
func settings(openShift bool) Settings {
	return Settings{HasRoutes: openShift, RESTImages: []string{defaultImage}}
}

func source(s Settings) Source {
	return func(context.Context) (Settings, error) { return s, nil }
}

func failingSource(context.Context) (Settings, error) { return Settings{}, errors.New("unavailable") }

// namespacesByName contains the namespaces of existing registries or Catalogs by name.
type namespacesByName map[string][]string

func (r namespacesByName) find(_ context.Context, name string) ([]string, error) { return r[name], nil }

func failingFinder(context.Context, string) ([]string, error) { return nil, errors.New("unavailable") }

func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := kjson.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// object returns a decoded ModelRegistry of a version from a spec in YAML.
func object(t *testing.T, apiVersion, spec string) map[string]any {
	t.Helper()
	return decodeYAML(t, "{apiVersion: "+apiVersion+", kind: ModelRegistry, metadata: {name: demo, namespace: ns, finalizers: ["+v1beta1.Finalizer+"]}, spec: "+spec+"}")
}

// registry returns a typed ModelRegistry from a spec in YAML.
func registry(t *testing.T, spec string) *v1beta1.ModelRegistry {
	t.Helper()
	out, err := decodeTyped(object(t, beta, spec))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func request(t *testing.T, operation admissionv1.Operation, object, old map[string]any) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Name: "demo", Namespace: "ns"}}
	for into, from := range map[*runtime.RawExtension]map[string]any{&r.Object: object, &r.OldObject: old} {
		if from == nil {
			continue
		}
		raw, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		into.Raw = raw
	}
	return r
}

// applyPatch returns the object with the patch of a response.
func applyPatch(t *testing.T, r admission.Request, response admission.Response) map[string]any {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("the request was rejected: %v", response.Result)
	}
	raw := r.Object.Raw
	if len(response.Patches) > 0 {
		text, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	var out map[string]any
	if err := kjson.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func requireEqual(t *testing.T, description string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", description, diff)
	}
}

// requireError requires an error that contains the text, or no error for "".
func requireError(t *testing.T, errs field.ErrorList, text string) {
	t.Helper()
	switch {
	case text == "" && len(errs) > 0:
		t.Errorf("unexpected errors: %v", errs)
	case text != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), text)):
		t.Errorf("got errors %v, want %q", errs, text)
	}
}
