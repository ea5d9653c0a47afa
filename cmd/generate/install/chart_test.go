package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/generate/kustomization"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/parity"
)

const (
	checkout       = "../../.."
	testImage      = "registry.example.org/operator:v1.2.3@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	keepAnnotation = "helm.sh/resource-policy"
)

// generate writes the output that all tests share, and returns its folder.
var generate = sync.OnceValues(func() (string, error) {
	out, err := os.MkdirTemp("", "install-test")
	if err != nil {
		return "", err
	}
	return out, run(checkout, out, "1.2.3", testImage)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if out, _ := generate(); out != "" {
		_ = os.RemoveAll(out)
	}
	os.Exit(code)
}

func outputFolder(t *testing.T) string {
	t.Helper()
	out, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func chart(t *testing.T) *helm.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(outputFolder(t), "chart", chartName))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type objects map[string]map[string]any

// renderChart returns the objects of the chart.
func renderChart(t *testing.T, namespace string, values map[string]any) objects {
	t.Helper()
	list, err := parity.Render(t.Context(), chart(t), parity.Release{Namespace: namespace}, values)
	if err != nil {
		t.Fatal(err)
	}
	return normalize(t, list)
}

// normalize prepares objects of chart and overlay for comparison. It drops the Namespace, the params ConfigMap, the keep
// annotation, and environment variables that are empty or a placeholder. The other variables are keyed by name.
func normalize(t *testing.T, list []*unstructured.Unstructured) objects {
	t.Helper()
	out := objects{}
	for _, o := range list {
		annotations := o.GetAnnotations()
		delete(annotations, keepAnnotation)
		o.SetAnnotations(annotations)
		if o.GetKind() == "Namespace" || o.GetName() == paramsName {
			continue
		}
		if o.GetKind() == "Deployment" {
			container, _ := podOf(o)
			variables := map[string]any{}
			for _, v := range container["env"].([]any) {
				v := v.(map[string]any)
				if name := v["name"].(string); variables[name] != nil {
					t.Errorf("variable %s is set twice", name)
				} else if v["value"] != "" && v["value"] != config.PlaceholderURL {
					variables[name] = v
				}
			}
			container["env"] = variables
		}
		if _, found := out[keyOf(o)]; found {
			t.Errorf("%s is set twice", keyOf(o))
		}
		content, err := json.Marshal(o.Object) // one type for all numbers
		if err != nil {
			t.Fatal(err)
		}
		var plain map[string]any
		if err := json.Unmarshal(content, &plain); err != nil {
			t.Fatal(err)
		}
		out[keyOf(o)] = plain
	}
	return out
}

// renderOverlay returns the objects of config/overlays/kubernetes after edit changed its kustomization.
func renderOverlay(t *testing.T, edit func(string) string) objects {
	t.Helper()
	configDir, err := copyConfig(checkout, testImage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(filepath.Dir(configDir)); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(configDir, "overlays", "kubernetes")
	path := filepath.Join(dir, "kustomization.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(edit(string(content))), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := kustomization.Objects(dir)
	if err != nil {
		t.Fatal(err)
	}
	return normalize(t, list)
}

func compare(t *testing.T, want, got objects) {
	t.Helper()
	for key := range got {
		if want[key] == nil {
			t.Errorf("unexpected object %s", key)
		}
	}
	for key, object := range want {
		if diff := cmp.Diff(object, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// With default values the chart equals the overlay.
func TestChartEqualsOverlay(t *testing.T) {
	want := renderOverlay(t, func(text string) string { return text })
	if len(want) < 60 {
		t.Fatalf("the overlay has %d objects, want at least 60", len(want))
	}
	compare(t, want, renderChart(t, "opendatahub", nil))
}

// The chart with a disabled component equals the overlay without it. With monitoring enabled, it equals the overlay with monitoring.
func TestComponentValues(t *testing.T) {
	defaults := chart(t).Values["components"].(map[string]any)
	if len(defaults) < 9 {
		t.Fatalf("got components %v, want at least 9", defaults)
	}
	for component, enabled := range defaults {
		t.Run(component, func(t *testing.T) {
			want := renderOverlay(t, func(text string) string {
				line := "  - ../../components/" + component + "\n"
				if enabled == false {
					return strings.Replace(text, "  - ../../components/params\n", line+"  - ../../components/params\n", 1)
				}
				return strings.Replace(text, line, "", 1)
			})
			got := renderChart(t, "opendatahub", map[string]any{"components": map[string]any{component: enabled == false}})
			compare(t, want, got)
			if len(want) == len(renderChart(t, "opendatahub", nil)) {
				t.Errorf("changing components.%s changed no object", component)
			}
		})
	}
}

// All objects use the namespace of the release, even if it looks like a number.
func TestNamespaceOfTheRelease(t *testing.T) {
	inDefault, inOther := renderChart(t, "opendatahub", nil), renderChart(t, "20261123", nil)
	encoded, err := json.Marshal(inOther)
	if err != nil {
		t.Fatal(err)
	}
	got := objects{}
	if err := json.Unmarshal(bytes.ReplaceAll(encoded, []byte("20261123"), []byte("opendatahub")), &got); err != nil {
		t.Fatal(err)
	}
	compare(t, inDefault, got)
	if text, _ := json.Marshal(inDefault); bytes.Count(text, []byte("opendatahub")) < 50 || bytes.Contains(text, []byte(namespacePlaceholder)) {
		t.Error("want the namespace substituted everywhere, without placeholders left")
	}
}

// Each value sets its field of the Deployment. No other object changes.
func TestValues(t *testing.T) {
	var values map[string]any
	err := yaml.Unmarshal([]byte(`
image: example.org/manager:2
replicas: 3
imagePullSecrets: [{name: pull}]
images: {mlflow: "example.org/mlflow:1", postgres: ""}
env: {MLFLOW_URL: 'https://{{ mlflow }}.example.org/"x"', HTTPROUTE_NAMESPACE: routes, SECTION_TITLE: ""}
extraArgs: [--v=2]
resources: {limits: {memory: 1Gi}}
affinity: {nodeAffinity: {}}
topologySpreadConstraints: []
nodeSelector: {disk: fast}
tolerations: [{operator: Exists}]
priorityClassName: system-cluster-critical
`), &values)
	if err != nil {
		t.Fatal(err)
	}
	before, after := renderChart(t, "opendatahub", nil), renderChart(t, "opendatahub", values)
	key := "apps/Deployment/" + deploymentName
	o := unstructured.Unstructured{Object: after[key]}
	container, spec := podOf(&o)
	env := container["env"].(map[string]any)
	valueOf := func(name string) any {
		v, _ := env[name].(map[string]any)
		return v["value"]
	}
	args := container["args"].([]any)
	for description, pair := range map[string][2]any{
		"image":                     {container["image"], "example.org/manager:2"},
		"replicas":                  {after[key]["spec"].(map[string]any)["replicas"], 3.0},
		"imagePullSecrets":          {spec["imagePullSecrets"], []any{map[string]any{"name": "pull"}}},
		"images.mlflow":             {valueOf("MLFLOW_IMAGE"), "example.org/mlflow:1"},
		"images.postgres":           {valueOf("POSTGRES_IMAGE"), nil},
		"env.MLFLOW_URL":            {valueOf("MLFLOW_URL"), `https://{{ mlflow }}.example.org/"x"`},
		"env.HTTPROUTE_NAMESPACE":   {valueOf("HTTPROUTE_NAMESPACE"), "routes"},
		"env.SECTION_TITLE":         {valueOf("SECTION_TITLE"), nil},
		"last of extraArgs":         {args[len(args)-1], "--v=2"},
		"number of args":            {len(args), 4},
		"resources.limits.memory":   {container["resources"].(map[string]any)["limits"].(map[string]any)["memory"], "1Gi"},
		"nodeSelector":              {spec["nodeSelector"], map[string]any{"disk": "fast"}},
		"tolerations":               {spec["tolerations"], []any{map[string]any{"operator": "Exists"}}},
		"affinity":                  {spec["affinity"], map[string]any{"nodeAffinity": map[string]any{}}},
		"topologySpreadConstraints": {spec["topologySpreadConstraints"], nil},
		"priorityClassName":         {spec["priorityClassName"], "system-cluster-critical"},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", description, diff)
		}
	}
	delete(before, key)
	delete(after, key)
	compare(t, before, after)
}

// CRDs can be excluded; included ones are kept when the release is uninstalled.
func TestCRDs(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		list, err := parity.Render(t.Context(), chart(t), parity.Release{Namespace: "n"}, map[string]any{"crds": enabled})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range list {
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			found++
			if o.GetAnnotations()[keepAnnotation] != "keep" {
				t.Errorf("%s would be deleted when the release is uninstalled", o.GetName())
			}
		}
		if want := map[bool]int{true: 8}[enabled]; found != want {
			t.Errorf("crds=%t: %d CRDs, want %d", enabled, found, want)
		}
	}
}

// The error names the invalid value.
func TestSchemaRejectsInvalidValues(t *testing.T) {
	for text, want := range map[string]string{
		"imagez: a":                    "imagez",
		"image: \"\"":                  "image",
		"replicas: two":                "replicas",
		"components: {mlfow: true}":    "mlfow",
		"components: {mlflow: \"no\"}": "mlflow",
		"images: {mlflow: 1}":          "mlflow",
		"images: {server: a}":          "server",
		"env: {ENABLE_MLFLOW: \"x\"}":  "ENABLE_MLFLOW",
		"env: {MLFLOW_IMAGE: \"x\"}":   "MLFLOW_IMAGE",
		"env: {POD_NAME: \"x\"}":       "POD_NAME",
		"env: {A: true}":               "env",
		"extraArgs: --v=2":             "extraArgs",
	} {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := parity.Render(t.Context(), chart(t), parity.Release{Namespace: "n"}, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that names %s", text, err, want)
		}
	}
}

// Helm stores chart and manifest in a Secret of at most 1 MiB.
func TestReleaseFitsIntoSecret(t *testing.T) {
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	for _, f := range chart(t).Raw {
		for range 2 { // the chart, and a manifest of about the same size
			if _, err := zipped.Write(f.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if size := text.Len() * 4 / 3; size > 500_000 || size < 10_000 {
		t.Errorf("a release has about %d bytes, want 10,000 to 500,000", size)
	}
}

// The output is reproducible, and contains every overlay with the image.
func TestRunIsRepeatable(t *testing.T) {
	again := t.TempDir()
	if err := run(checkout, again, "1.2.3", testImage); err != nil {
		t.Fatal(err)
	}
	first, second := tree(t, outputFolder(t)), tree(t, again)
	if !maps.Equal(first, second) {
		t.Errorf("two runs wrote different files: %v and %v", slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second)))
	}
	for _, name := range []string{"kubernetes", "openshift", "odh", "rhoai"} {
		text := first["install-"+name+".yaml"]
		if strings.Count(text, " image: "+testImage) != 1 || strings.Contains(text, ":unreleased") {
			t.Errorf("install-%s.yaml does not contain the image exactly once", name)
		}
		var kinds []string
		for document := range strings.SplitSeq(text, "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, o.GetKind())
		}
		// CRDs precede their objects, and the namespace precedes its objects.
		if crd := slices.Index(kinds, "CustomResourceDefinition"); crd > 1 || crd < 0 || slices.Index(kinds, "Namespace") > 0 || len(kinds) < 60 {
			t.Errorf("%s: got kinds %v, want 60 or more, first those that others need", name, kinds)
		}
	}
}

func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, relErr := filepath.Rel(root, path)
		files[name] = string(content)
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRunRejectsInvalidInput(t *testing.T) {
	for name, tc := range map[string]struct{ version, image, want string }{
		"no version":     {"", "a:1", "it must be a semantic version such as 1.2.3"},
		"version with v": {"v1.2.3", "a:1", "it must be a semantic version such as 1.2.3"},
		"no image":       {"1.2.3", "", "set both"},
		"no checkout":    {"1.2.3", "a:1", "copying the manifests"},
		"no image line":  {"1.2.3", "a:1", "the image cannot be set"},
	} {
		root := t.TempDir()
		if name == "no image line" {
			dir := filepath.Join(root, "config", "overlays", "odh")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "params.env"), []byte("a=b\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(root, t.TempDir(), tc.version, tc.image); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}
