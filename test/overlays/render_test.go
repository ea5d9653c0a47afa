// Package overlays checks the objects of config/overlays without a cluster.
package overlays

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	managerName = "odh-platform-operator-controller-manager"
	paramsName  = "odh-platform-operator-params"
)

// namespaces of the overlays.
var namespaces = map[string]string{
	"kubernetes": "opendatahub", "openshift": "opendatahub", "odh": "opendatahub", "rhoai": "redhat-ods-applications",
}

// forEachOverlay runs a test for every directory in config/overlays.
func forEachOverlay(t *testing.T, test func(t *testing.T, name string)) {
	t.Helper()
	entries, err := os.ReadDir("../../config/overlays")
	if err != nil || len(entries) != len(namespaces) {
		t.Fatalf("%d overlays, want those of %v: %v", len(entries), namespaces, err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			test(t, entry.Name())
		})
	}
}

// checkout is a copy of config that a test can edit.
type checkout string

func copyConfig(t *testing.T) checkout {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(dir, os.DirFS("../../config")); err != nil {
		t.Fatal(err)
	}
	return checkout(dir)
}

func (c checkout) overlay(name string) string { return filepath.Join(string(c), "overlays", name) }

// edit changes a file of the copy.
func (c checkout) edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	path := filepath.Join(string(c), file)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(content))
	if changed == string(content) {
		t.Fatalf("%s was not changed", file)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// set writes the complete params.env of an overlay.
func (c checkout) set(t *testing.T, overlay string, params []param) {
	t.Helper()
	c.edit(t, "overlays/"+overlay+"/params.env", func(string) string {
		var text strings.Builder
		for _, p := range params {
			fmt.Fprintf(&text, "%s=%s\n", p.key, p.value)
		}
		return text.String()
	})
}

func (c checkout) render(t *testing.T, overlay string) objects {
	t.Helper()
	return render(t, c.overlay(overlay))
}

// unchanged and marked cache the rendered overlays, because rendering takes a second: without changes, and with a distinct value for
// each key.
var unchanged, marked sync.Map

// shipped returns the objects of an overlay. Callers must not change them.
func shipped(t *testing.T, overlay string) objects {
	t.Helper()
	all, _ := unchanged.LoadOrStore(overlay, sync.OnceValue(func() objects { return render(t, "config/overlays/"+overlay) }))
	return all.(func() objects)()
}

func render(t *testing.T, dir string) objects {
	t.Helper()
	all, err := operator.Kustomize(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type param struct{ key, value string }

// params returns the lines of the params.env of an overlay.
func params(t *testing.T, overlay string) []param {
	t.Helper()
	content, err := os.ReadFile("../../config/overlays/" + overlay + "/params.env")
	if err != nil {
		t.Fatal(err)
	}
	var all []param
	for line := range strings.Lines(string(content)) {
		key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found || key != strings.TrimSpace(key) || slices.ContainsFunc(all, func(p param) bool { return p.key == key }) {
			t.Fatalf("%s: invalid or duplicate line %q", overlay, line)
		}
		all = append(all, param{key, value})
	}
	return all
}

type objects []*unstructured.Unstructured

// title returns kind and name of an object.
func title(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
}

func (o objects) find(kind, name string) *unstructured.Unstructured {
	for _, object := range o {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// into decodes the object with the kind and name into target.
func (o objects) into(t *testing.T, kind, name string, target any) {
	t.Helper()
	object := o.find(kind, name)
	if object == nil {
		t.Fatalf("%s %s does not exist", kind, name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, target); err != nil {
		t.Fatal(err)
	}
}

func (o objects) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	o.into(t, "Deployment", managerName, deployment)
	return deployment
}

func (o objects) manager(t *testing.T) corev1.Container {
	t.Helper()
	containers := o.deployment(t).Spec.Template.Spec.Containers
	if len(containers) != 1 || containers[0].Name != "manager" {
		t.Fatalf("containers %+v, want only manager", containers)
	}
	return containers[0]
}

// variables returns the variables of the manager that have a value.
func (o objects) variables(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, variable := range o.manager(t).Env {
		if _, duplicate := values[variable.Name]; duplicate {
			t.Errorf("variable %s is set twice", variable.Name)
		}
		if variable.ValueFrom == nil {
			values[variable.Name] = variable.Value
		}
	}
	return values
}

// walk calls visit for every string in a value with its path.
func walk(value any, path string, visit func(path, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			walk(child, path+"."+key, visit)
		}
	case []any:
		for index, child := range v {
			walk(child, fmt.Sprintf("%s[%d]", path, index), visit)
		}
	case string:
		visit(path, v)
	}
}
