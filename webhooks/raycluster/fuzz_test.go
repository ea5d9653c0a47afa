package raycluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// FuzzAdmission sends any JSON through the webhooks, as a creation and as an update. Nothing panics, patches change no fields of the
// user and are idempotent, and defaulted objects are accepted, except for errors that only the user can correct.
func FuzzAdmission(f *testing.F) {
	for i, text := range []string{minimal, noHeadContainer, full, "metadata: {name: a}", "spec: {workerGroupSpecs: [{}, {template: {spec: {containers: [{}]}}}]}"} {
		raw := mustMarshal(f, parse(f, text))
		for bits := range uint8(16) {
			f.Add(raw, raw, bits)
		}
		defaulted := mustMarshal(f, applyDefaults(f, onOpenShift(), parse(f, text), nil))
		f.Add(raw, defaulted, uint8(i))
		f.Add(defaulted, raw, uint8(i+4))
	}
	f.Add([]byte(`{"metadata":{"generateName":"x-"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"env":[null]}]}}}}}`), []byte(`{"spec":5}`), uint8(0))
	f.Add([]byte(`{"mEtadata":{},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{}]}}}}}`), []byte(`{}`), uint8(0))
	f.Fuzz(func(t *testing.T, object, old []byte, bits uint8) {
		s := onOpenShift()
		for i, change := range []func(*Settings){withoutOAuth, withoutMTLS, plain, issuedByPod, newRelease} {
			if bits&(1<<i) != 0 {
				change(&s)
			}
		}
		checkInvariants(t, s, object, nil)
		checkInvariants(t, s, object, old)
	})
}

func request(object, old []byte) admission.Request {
	r := admission.Request{}
	r.Operation, r.Namespace, r.UID = "CREATE", "team", "u"
	r.Object = runtime.RawExtension{Raw: object}
	if old != nil {
		r.Operation, r.OldObject = "UPDATE", runtime.RawExtension{Raw: old}
	}
	return r
}

// checkInvariants checks the invariants of FuzzAdmission for one request.
func checkInvariants(t testing.TB, s Settings, object, old []byte) {
	t.Helper()
	d, v := &defaulter{s.source}, &validator{s.source}
	v.Handle(t.Context(), request(object, old))
	response := d.Handle(t.Context(), request(object, old))
	if !response.Allowed || len(response.Patches) == 0 {
		return
	}
	defaulted := applyPatch(t, object, mustMarshal(t, response.Patches))
	if again := d.Handle(t.Context(), request(defaulted, old)); len(again.Patches) > 0 {
		t.Errorf("second patch %s\nafter the patch %s\nof object %s\nold object %s", again.Patches, response.Patches, object, old)
	}
	before, after := userFieldsOf(t, object), userFieldsOf(t, defaulted)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the patch changes fields of the user: %s\nobject %s\nold object %s", response.Patches, object, old)
	}
	validation := v.Handle(t.Context(), request(defaulted, old))
	if validation.Allowed {
		return
	}
	if validation.Result.Details == nil {
		t.Fatalf("the rejection has no details: %+v", validation.Result)
	}
	for _, cause := range validation.Result.Details.Causes {
		onlyByUser := slices.ContainsFunc([]string{"metadata.name", "enableIngress", raycluster.AnnotationCertificates}, func(text string) bool { return strings.Contains(cause.Field, text) })
		if !onlyByUser && !strings.Contains(cause.Message, noContainer) && !strings.Contains(cause.Message, sidecarFirst) {
			t.Errorf("the defaulted object is rejected: %s: %s\ndefaulted %s\nobject %s\nold object %s", cause.Field, cause.Message, defaulted, object, old)
		}
	}
}

func applyPatch(t testing.TB, object, patch []byte) []byte {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	options := jsonpatch.NewApplyOptions()
	patched, err := decoded.ApplyWithOptions(object, options)
	if err != nil {
		t.Fatalf("%v: %s\nof %s", err, patch, object)
	}
	return patched
}

// userFieldsOf returns a normalized object without the fields that the webhook sets, and without elements with the names of injected ones.
func userFieldsOf(t testing.TB, raw []byte) any {
	t.Helper()
	c, err := raycluster.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	object := c.Object()
	if metadata, _ := object["metadata"].(map[string]any); metadata != nil {
		if isEmpty(metadata["name"]) || metadata["generateName"] != nil {
			delete(metadata, "name")
		}
		if keys, _ := metadata["annotations"].(map[string]any); keys != nil {
			delete(keys, raycluster.AnnotationVersion)
			delete(keys, raycluster.AnnotationServiceAccount)
		}
	}
	for _, g := range groupsOf(c) {
		spec := g.spec()
		if spec == nil {
			continue
		}
		dropNamed(spec, "containers", injectedContainers)
		dropNamed(spec, "initContainers", injectedInitContainers)
		dropNamed(spec, "volumes", injectedVolumes)
		if g.isHead {
			delete(spec, "serviceAccountName")
		}
		for _, container := range g.containers()[:min(1, len(g.containers()))] {
			if fields, _ := container.(map[string]any); fields != nil {
				dropNamed(fields, "env", injectedEnv)
				dropNamed(fields, "volumeMounts", injectedVolumes)
			}
		}
	}
	if options, _ := at(object, "spec", "autoscalerOptions").(map[string]any); options != nil {
		dropNamed(options, "env", injectedEnv)
		dropNamed(options, "volumeMounts", injectedVolumes)
	}
	return normalize(object)
}

// The patch of any change produces the changed object.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"name":"x"},{"name":"x"}],"c~/d":null}`), "a", "x", uint8(0))
	f.Add([]byte(`{}`), "a/b~c", "y", uint8(1))
	f.Add([]byte(`{"a":[{"name":"x"}]}`), "a", "x", uint8(2))
	f.Add([]byte(`{"a":"text"}`), "a", "x", uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, where, name string, operation uint8) {
		c, err := raycluster.Parse(raw)
		if err != nil || c.Object() == nil || where == "" || !utf8.ValidString(where+name) {
			t.Skip()
		}
		object := runtime.DeepCopyJSON(c.Object())
		switch operation % 4 {
		case 0:
			upsert(object, where, element{"name": name, "value": "v"})
		case 1:
			if fields := ensureObject(object, where); fields != nil {
				fields[name] = "v"
			}
		case 2:
			dropElements(object, where, func(e element) bool { return e["name"] == name })
		case 3:
			delete(object, where)
			upsertContainer(object, where, element{"name": name})
		}
		result, patches := raw, patchResponse(c.Object(), object).Patches
		if len(patches) > 0 {
			result = applyPatch(t, raw, mustMarshal(t, patches))
		}
		got, err := raycluster.Parse(result)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Object(), object) {
			t.Errorf("patch %s\nproduces %v\nwant %v", patches, got.Object(), object)
		}
	})
}
