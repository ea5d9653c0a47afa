package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// keyLines returns a document for each setting by path, which changes this setting. Digests of images are omitted.
func keyLines(t testing.TB) map[string]string {
	t.Helper()
	fields, err := parse(allKeysDocument)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for path := range settingPaths() {
		parts := strings.Split(path, ".")
		value := any(fields)
		for _, part := range parts {
			object, _ := value.(map[string]any)
			value = object[part]
		}
		if value == nil {
			continue // allKeysDocument sets no digests
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		lines[path] = strings.Join(parts, ": {") + ": " + string(text) + strings.Repeat("}", len(parts)-1)
	}
	return lines
}

// Each key changes a setting, and all keys together change all settings.
func TestEachKeyChangesSettings(t *testing.T) {
	lines := keyLines(t)
	all := Default()
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		got, _, err := Read(Default(), lines[path])
		if err != nil {
			// A value above the default limit needs the limit too.
			if !strings.Contains(err.Error(), "is more than limits") {
				t.Errorf("%s: unexpected error: %v", lines[path], err)
			}
			continue
		}
		if fmt.Sprintf("%+v", got) == fmt.Sprintf("%+v", Default()) {
			t.Errorf("%s changes nothing", lines[path])
		}
		next, _, err := Read(all, lines[path])
		if err == nil {
			all = next
		}
	}
	// The raised limits allow the requests.
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		if strings.Contains(path, ".requests.") {
			all = mustRead(t, all, lines[path])
		}
	}
	requireEqual(t, all, everySetting())
}

// The result does not depend on the order of documents with different keys, and does not change if a document is read again.
func TestDocumentsAreMergedPerKey(t *testing.T) {
	lines := keyLines(t)
	maps.DeleteFunc(lines, func(path, _ string) bool {
		return strings.Contains(path, "requests") || strings.Contains(path, "limits")
	})
	paths := slices.Sorted(maps.Keys(lines))
	rapid.Check(t, func(r *rapid.T) {
		chosen := rapid.Permutation(paths).Draw(r, "order")[:rapid.IntRange(1, len(paths)).Draw(r, "count")]
		inOrder, sorted := Default(), Default()
		var err error
		for _, path := range chosen {
			if inOrder, _, err = Read(inOrder, lines[path]); err != nil {
				r.Fatalf("%s: unexpected error: %v", lines[path], err)
			}
		}
		for _, path := range slices.Sorted(slices.Values(chosen)) {
			if sorted, _, err = Read(sorted, lines[path]); err != nil {
				r.Fatalf("%s: unexpected error: %v", lines[path], err)
			}
		}
		if fmt.Sprintf("%+v", inOrder) != fmt.Sprintf("%+v", sorted) {
			r.Fatalf("the result depends on the order of the documents:\n%+v\n%+v", inOrder, sorted)
		}
		again, _, err := Read(inOrder, lines[chosen[0]])
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", inOrder) {
			r.Fatalf("a second read of the same document changed the settings, or failed: %v", err)
		}
	})
}

// A key that a namespace can set has the same effect in the document of the namespace and in that of the administrators. Other keys are
// rejected.
func TestNamespaceDocumentEqualsAdminDocument(t *testing.T) {
	for path, line := range keyLines(t) {
		admin, _, adminErr := Read(Default(), line)
		tenant, _, err := ReadOverride(Default(), line)
		switch {
		case settingPaths()[path] == adminOnly:
			if err == nil || !strings.Contains(err.Error(), path+" cannot be set for a single namespace") {
				t.Errorf("%s: unexpected error: %v", line, err)
			}
		case (err == nil) != (adminErr == nil):
			t.Errorf("%s: got errors %v and %v, want both or neither", line, adminErr, err)
		case err == nil:
			requireEqual(t, tenant, admin)
		}
	}
}

// sourceModel is a simple model of a Source: the last valid version of each document applies.
type sourceModel struct {
	defaults, admin *string
	overrides       map[string]string
	base, current   *Settings
	tenants         map[string]Settings
}

func (s *sourceModel) update() {
	base, err := Default(), error(nil)
	if s.defaults != nil {
		base, _, err = Read(builtIn(), *s.defaults)
	}
	if err == nil {
		s.base = &base
	}
	if s.base == nil {
		return
	}
	settings := *s.base
	err = nil
	if s.admin != nil {
		settings, _, err = Read(settings, *s.admin)
	}
	if err == nil {
		s.current = &settings
	}
}

func (s *sourceModel) respond(namespace string) (Settings, bool) {
	if s.current == nil {
		return Settings{}, false
	}
	text, found := s.overrides[namespace]
	if !found || namespace == home {
		delete(s.tenants, namespace)
		return *s.current, true
	}
	settings, _, err := ReadOverride(*s.current, text)
	if err == nil {
		s.tenants[namespace] = settings
	} else if _, known := s.tenants[namespace]; !known {
		return *s.current, true
	}
	return s.tenants[namespace], true
}

// After any sequence of changes the Source returns the settings of the model, and reports each message once.
func TestSourceMatchesModel(t *testing.T) {
	documents := []string{"podsPerRuntime: 1", "podsPerRuntime: 2\nmetrics: {port: 2113}", "podsPerRuntime: x", "modelMeshResources: {requests: {cpu: 2}}",
		"modelMeshResources: {limits: {cpu: 1}}", "inferenceServiceName: other", "odd: 1", "", "{", "runtimePodLabels: {a: b}"}
	namespaces := []string{"one", "two"}
	rapid.Check(t, func(r *rapid.T) {
		f := newFixture(r, config.ModelMesh{})
		expected := &sourceModel{overrides: map[string]string{}, tenants: map[string]Settings{}}
		if _, err := f.For(t.Context(), "one"); err != nil { // lists the ConfigMaps of both names
			r.Fatal(err)
		}
		expected.update()
		for range rapid.IntRange(1, 6).Draw(r, "steps") {
			text := rapid.SampledFrom(documents).Draw(r, "text")
			remove := rapid.IntRange(0, 4).Draw(r, "remove") == 0
			target := rapid.SampledFrom([]string{"defaults", "admin", "one", "two"}).Draw(r, "where")
			expected.write(target, text, remove)
			f.deliverDocuments(r, expected)
			for _, namespace := range append(namespaces, "three") {
				want, served := expected.respond(namespace)
				got, err := f.For(t.Context(), namespace)
				if served != (err == nil) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					r.Fatalf("after %q in %s (removed: %t), unexpected settings of %s, error %v:\n%+v\nwant\n%+v", text, target, remove, namespace, err, got, want)
				}
			}
			for len(f.recorder.Events) > 0 {
				<-f.recorder.Events
			}
			f.deliverDocuments(r, expected) // unchanged
			for _, namespace := range namespaces {
				if _, err := f.For(t.Context(), namespace); err != nil {
					r.Fatal(err)
				}
			}
			f.expectNoEvents(r)
		}
	})
}

// write changes a document.
func (s *sourceModel) write(target, text string, remove bool) {
	var document *string
	if !remove {
		document = &text
	}
	switch target {
	case "defaults":
		s.defaults = document
	case "admin":
		s.admin = document
	default:
		if remove {
			delete(s.overrides, target)
		} else {
			s.overrides[target] = text
		}
		return
	}
	s.update()
}

// deliverDocuments delivers the documents of the model to the source, as watches do.
func (f *fixture) deliverDocuments(t rapid.TB, s *sourceModel) {
	t.Helper()
	var all []*unstructured.Unstructured
	if s.admin != nil {
		all = append(all, toUnstructured(t, settingsConfigMap(home, *s.admin)))
	}
	for _, namespace := range slices.Sorted(maps.Keys(s.overrides)) {
		all = append(all, toUnstructured(t, settingsConfigMap(namespace, s.overrides[namespace])))
	}
	if s.defaults == nil {
		f.onDefaults(nil)
	} else {
		f.onDefaults(toUnstructured(t, defaults(*s.defaults)))
	}
	f.onConfigs(all)
}
