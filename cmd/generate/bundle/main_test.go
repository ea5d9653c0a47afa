package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const checkout = "../../.."

// readOnce reads the sources of the checkout once for all tests.
var readOnce = sync.OnceValues(func() (input, error) { return read(checkout) })

// shippedInput returns the sources of the checkout.
func shippedInput(t *testing.T) input {
	t.Helper()
	in, err := readOnce()
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// testInput returns the input for the manifests of the constant `installation`, with texts replaced.
func testInput(t *testing.T, replace ...string) input {
	t.Helper()
	in := input{
		version: "1.2.3", base: &v1alpha1.ClusterServiceVersion{}, description: "text\n", icon: "<svg/>",
		parameters: []parameter{{managerKey, "r/manager:2"}, {"RELATED_IMAGE_A_IMAGE", "r/a:1"}}, sources: sourcesOf(t, replace...),
	}
	in.base.Annotations = map[string]string{"capabilities": "Basic Install"}
	in.base.Spec.CustomResourceDefinitions.Owned = baseDescriptions()
	for file, text := range map[string]string{
		"aihub_catalog.yaml": "# A bell.\napiVersion: example.org/v1\nkind: Bell\nmetadata: {name: b}\nspec: {}\n",
		"mlflow.yaml":        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {replicas: 1, backendStoreUri: \"a<b\"}\n",
		"a_two.yaml":         "# Two of them,\n# side by side.\n\napiVersion: example.org/v1\nkind: Thing\nmetadata: {name: two}\nspec: {replicas: 2}\n",
		"other.yaml":         "apiVersion: example.org/v2\nkind: Thing\nmetadata: {name: other}\n",
	} {
		s, single, err := newSample(file, text)
		if err != nil || !single {
			t.Fatalf("%s: newSample returned single %v, error %v, want one sample", file, single, err)
		}
		in.samples = append(in.samples, s)
	}
	slices.SortFunc(in.samples, func(a, b sample) int { return strings.Compare(a.file, b.file) })
	return in
}

func TestBuild(t *testing.T) {
	out, err := build(testInput(t))
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := decodeStrict(out.csv, csv); err != nil {
		t.Fatal(err)
	}
	if csv.Name != "odh-platform-operator.v1.2.3" || csv.Spec.Version.String() != "1.2.3" || csv.Spec.Description != "text" || csv.Spec.Icon[0].Data != "PHN2Zy8+" {
		t.Errorf("unexpected name %s, version %s, description %q or icon %v", csv.Name, csv.Spec.Version, csv.Spec.Description, csv.Spec.Icon)
	}
	want := map[string]string{"capabilities": "Basic Install", "containerImage": "r/manager:2", "features.operators.openshift.io/disconnected": "false"}
	examples := csv.Annotations["alm-examples"]
	delete(csv.Annotations, "alm-examples")
	if difference := cmp.Diff(want, csv.Annotations); difference != "" {
		t.Error(difference)
	}
	if !strings.Contains(examples, `"kind": "Bell"`) || !strings.Contains(examples, `"a<b"`) || strings.Contains(examples, "two") {
		t.Errorf("got examples %s, want a Bell, and a Thing with unescaped HTML characters", examples)
	}
	install := csv.Spec.InstallStrategy.StrategySpec
	if len(install.DeploymentSpecs) != 1 || install.DeploymentSpecs[0].Name != "the.manager" || install.DeploymentSpecs[0].Label["app"] != "manager" {
		t.Errorf("unexpected install.DeploymentSpecs: %+v", install.DeploymentSpecs)
	}
	if len(install.Permissions) != 1 || len(install.ClusterPermissions) != 2 || len(csv.Spec.WebhookDefinitions) != 3 || len(csv.Spec.RelatedImages) != 2 {
		t.Errorf("unexpected csv.Spec: %+v", csv.Spec)
	}
	var names []string
	for _, o := range out.objects {
		names = append(names, o.GetKind()+" "+o.GetName())
		if o.GetNamespace() != "" {
			t.Errorf("%s %s has namespace %s, want none", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
	if difference := cmp.Diff([]string{
		"CustomResourceDefinition bells.example.org", "CustomResourceDefinition things.example.org",
		"ClusterRole for-people", "ClusterRole reader", "Service metrics", "PodDisruptionBudget metrics",
	}, names); difference != "" {
		t.Error(difference)
	}
}

// The CSV has no status, and no file contains a timestamp or a null value.
func TestCSVHasNoTimestamps(t *testing.T) {
	in := shippedInput(t)
	in.version = "1.2.3"
	out, err := build(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := out.csv.Object["status"]; found {
		t.Error("the ClusterServiceVersion contains a status")
	}
	files, err := render(out)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		for _, word := range []string{"creationTimestamp", "createdAt", ": null"} {
			if strings.Contains(content, word) && !strings.Contains(content, "jsonPath: .metadata."+word) {
				t.Errorf("%s contains the word %s", path, word)
			}
		}
	}
}

func TestBuildRejectsInvalidInput(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*input)
		want   string
	}{
		"no version":          {func(in *input) { in.version = "" }, `version ""`},
		"version with a v":    {func(in *input) { in.version = "v1.2.3" }, "it must be a semantic version such as 1.2.3"},
		"no CRDs":             {func(in *input) { in.base.Spec.CustomResourceDefinitions.Owned = nil }, "is not described"},
		"no samples":          {func(in *input) { in.samples = nil }, "no sample has the kind Bell v1"},
		"no image":            {func(in *input) { in.parameters = nil }, managerKey + " is missing"},
		"no webhook port":     {func(in *input) { in.sources.deployment.Spec.Template.Spec.Containers[0].Ports = nil }, "no port named webhook"},
		"missing ClusterRole": {func(in *input) { in.sources.roles = nil }, "there is no ClusterRole manager"},
	} {
		in := testInput(t)
		c.change(&in)
		if _, err := build(in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestRender(t *testing.T) {
	out, err := build(testInput(t))
	if err != nil {
		t.Fatal(err)
	}
	files, err := render(out)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff([]string{
		"bundle/manifests/example.org_bells.yaml", "bundle/manifests/example.org_things.yaml",
		"bundle/manifests/for-people_rbac.authorization.k8s.io_v1_clusterrole.yaml", "bundle/manifests/metrics_policy_v1_poddisruptionbudget.yaml",
		"bundle/manifests/metrics_v1_service.yaml",
		"bundle/manifests/odh-platform-operator.clusterserviceversion.yaml", "bundle/manifests/reader_rbac.authorization.k8s.io_v1_clusterrole.yaml",
	}, slices.Sorted(maps.Keys(files))); difference != "" {
		t.Error(difference)
	}
	out.objects = append(out.objects, out.objects[0])
	if _, err := render(out); err == nil || !strings.Contains(err.Error(), "two objects have the file name") {
		t.Errorf("got error %v for an object that is listed twice", err)
	}
}

func TestNewSample(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: A\n": true, "# nothing\n": false, "kind: A\n---\nkind: B\n": false, "kind: Kustomization\n": false, "{}": false,
	} {
		if _, single, err := newSample("f", text); single != want || err != nil {
			t.Errorf("newSample(%q) returned single %v and error %v, want single %v", text, single, err, want)
		}
	}
	if _, _, err := newSample("f.yaml", "kind: ["); err == nil || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("got error %v for invalid YAML, want one that names the file", err)
	}
}

// Two runs write the same bundle. The one in the checkout equals it, except for files that are maintained manually.
func TestRunIsDeterministic(t *testing.T) {
	one, two := copyConfig(t), copyConfig(t)
	if err := os.MkdirAll(filepath.Join(one, "bundle/manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one, "bundle/manifests/stale.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{one, two} {
		if err := run(root, "0.1.0", ""); err != nil {
			t.Fatal(err)
		}
	}
	first, second, committed := bundleFiles(t, one), bundleFiles(t, two), bundleFiles(t, checkout)
	if !maps.Equal(first, second) || first["manifests/stale.yaml"] != "" {
		t.Error("two runs write different bundles")
	}
	manual := []string{"metadata/annotations.yaml", "tests/scorecard/config.yaml"}
	want := slices.Sorted(slices.Values(append(manual, slices.Collect(maps.Keys(first))...)))
	if difference := cmp.Diff(want, slices.Sorted(maps.Keys(committed))); difference != "" {
		t.Errorf("files of the checkout: %s\nrun make bundle", difference)
	}
	for path, content := range first {
		if committed[path] != content {
			t.Errorf("%s is stale: run make bundle", path)
		}
	}
}

// The given image replaces the default image of the manager everywhere.
func TestRunSetsManagerImage(t *testing.T) {
	root := copyConfig(t)
	if err := run(root, "3.2.1", "registry.example.org/mine:3"); err != nil {
		t.Fatal(err)
	}
	text := bundleFiles(t, root)["manifests/odh-platform-operator.clusterserviceversion.yaml"]
	if strings.Count(text, "registry.example.org/mine:3") != 3 || strings.Contains(text, "ghcr.io/odh-platform/odh-platform-operator:") || !strings.Contains(text, "name: odh-platform-operator.v3.2.1") {
		t.Errorf("got CSV\n%s\nwant version 3.2.1 with the image three times and without the default image", text)
	}
	if err := run(t.TempDir(), "1.0.0", ""); err == nil || !strings.Contains(err.Error(), "reading a source") {
		t.Errorf("got error %v for an empty folder, want one about a missing source", err)
	}
}

// copyConfig returns a folder with only a copy of config, which has the sources of the bundle.
func copyConfig(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "config"), os.DirFS(filepath.Join(checkout, "config"))); err != nil {
		t.Fatal(err)
	}
	return root
}

// bundleFiles returns the files of a bundle by path.
func bundleFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(root, "bundle")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, "bundle", path))
		out[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFileName(t *testing.T) {
	for want, o := range map[string][3]string{
		"example.org_things.yaml": {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.org"},
		"a_v1_service.yaml":       {"v1", "Service", "a"},
		"a_apps_v1_other.yaml":    {"apps/v1", "Other", "a"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o[0], "kind": o[1], "metadata": map[string]any{"name": o[2]}}}
		if got := fileName(object); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
