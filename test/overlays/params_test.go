package overlays

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func noFile(path string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// legacyKeys are the keys of params.env of the legacy operators.
var legacyKeys = []string{
	"MLFLOW_IMAGE", "MLFLOW_OPERATOR_IMAGE", "gateway-name", "mlflow-url", "section-title",
	"IMAGES_MODELREGISTRY_OPERATOR", "IMAGES_REST_SERVICE", "IMAGES_OAUTH_PROXY", "kube-rbac-proxy", "IMAGES_POSTGRES", "IMAGES_CATALOG_DATA",
	"IMAGES_BENCHMARK_DATA", "IMAGES_JOBS_ASYNC_UPLOAD", "CREATE_AUTH_RESOURCES", "DEFAULT_CERT", "REGISTRIES_NAMESPACE",
	"SKIP_MODEL_CATALOG_DB_CREATION", "GATEWAY_DOMAIN", "GATEWAY_NAME", "GATEWAY_NAMESPACE", "HTTPROUTE_NAMESPACE", "ENABLE_MODEL_CATALOG", "DEFAULT_DOMAIN",
	"RELATED_IMAGE_ODH_MODEL_REGISTRY_IMAGE", "RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE", "RELATED_IMAGE_POSTGRESQL_16_IMAGE",
	"RELATED_IMAGE_ODH_MODEL_METADATA_COLLECTION_IMAGE", "RELATED_IMAGE_ODH_MODEL_PERFORMANCE_DATA_IMAGE",
	"RELATED_IMAGE_ODH_MODEL_REGISTRY_OPERATOR_IMAGE", "RELATED_IMAGE_ODH_MODEL_REGISTRY_JOB_ASYNC_UPLOAD_IMAGE",
	"odh-mm-rest-proxy", "odh-modelmesh-runtime-adapter", "odh-modelmesh", "odh-modelmesh-controller", "ose-etcd", "ose-cli",
	"codeflare-operator-controller-image", "namespace",
}

// Every overlay has the same keys in the same order, including the legacy keys that platforms edit.
func TestOverlaysHaveEqualKeys(t *testing.T) {
	first := keysOf(params(t, "kubernetes"))
	for _, key := range legacyKeys {
		if !slices.Contains(first, key) {
			t.Errorf("%s is missing", key)
		}
	}
	forEachOverlay(t, func(t *testing.T, name string) {
		if got := keysOf(params(t, name)); !slices.Equal(got, first) {
			t.Errorf("keys %v, want those of kubernetes %v", got, first)
		}
	})
}

func keysOf(all []param) []string {
	var keys []string
	for _, p := range all {
		keys = append(keys, p.key)
	}
	return keys
}

// row matches a row of the parameters in docs/install.md: key and effect.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// documentedEffects returns the effects in docs/install.md by key.
func documentedEffects(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Parameters")
	table, _, _ = strings.Cut(table, "\n## ")
	effects := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(table, -1) {
		effects[match[1]] = match[2]
	}
	return effects
}

const none = "none"

// Each key changes an object other than the ConfigMap of the parameters, or is documented as without effect. The documentation lists
// the variables that a key sets.
func TestKeysHaveDocumentedEffects(t *testing.T) {
	effects := documentedEffects(t)
	found := map[string]bool{}
	for overlay := range namespaces {
		marked, rendered := renderMarked(t, overlay)
		for _, p := range marked {
			paths := pathsOf(rendered, p.value)
			found[p.key] = found[p.key] || len(paths) > 0
			for _, path := range paths {
				if name, ok := strings.CutPrefix(path, "variable "); ok && !strings.Contains(effects[p.key], "`"+name+"`") {
					t.Errorf("%s: %s sets variable %s; the documented effect is %q", overlay, p.key, name, effects[p.key])
				}
			}
		}
		if len(effects) != len(marked) {
			t.Errorf("%s: docs/install.md has %d keys, params.env has %d", overlay, len(effects), len(marked))
		}
	}
	for key, has := range found {
		effect, known := effects[key]
		if !known {
			t.Errorf("docs/install.md does not list %s", key)
		}
		if documented := !strings.HasPrefix(effect, none); documented != has {
			t.Errorf("%s has an effect: %t; the documented effect is %q", key, has, effect)
		}
	}
}

// Tests of Open Data Hub read the image of upload Jobs from the ConfigMap of the legacy operator.
func TestConfigMapHasUploadJobImage(t *testing.T) {
	for _, overlay := range []string{"odh", "openshift", "rhoai"} {
		marked, rendered := renderMarked(t, overlay)
		want := marked[slices.IndexFunc(marked, func(p param) bool { return p.key == "IMAGES_JOBS_ASYNC_UPLOAD" })].value
		for _, object := range rendered {
			if object.GetKind() == "ConfigMap" && object.GetName() == "model-registry-operator-parameters" {
				if got, _, _ := unstructured.NestedString(object.Object, "data", "IMAGES_JOBS_ASYNC_UPLOAD"); got != want || object.GetNamespace() == "system" {
					t.Errorf("%s: got image %q in namespace %s, want %q", overlay, got, object.GetNamespace(), want)
				}
				want = ""
			}
		}
		if want != "" {
			t.Errorf("%s: no ConfigMap model-registry-operator-parameters", overlay)
		}
	}
}

// renderMarked renders an overlay with a distinct value for each key.
func renderMarked(t *testing.T, overlay string) ([]param, objects) {
	t.Helper()
	values := params(t, overlay)
	for index := range values {
		values[index].value = fmt.Sprintf("mark-%03d.example", index)
	}
	all, _ := marked.LoadOrStore(overlay, sync.OnceValue(func() objects {
		copied := copyConfig(t)
		copied.set(t, overlay, values)
		return copied.render(t, overlay)
	}))
	return values, all.(func() objects)()
}

// pathsOf returns the fields that contain a value, and `variable <name>` for variables of the manager.
func pathsOf(all objects, value string) []string {
	var paths []string
	for _, object := range all {
		if object.GetName() == paramsName {
			continue
		}
		walk(object.Object, "", func(path, text string) {
			if strings.Contains(text, value) {
				paths = append(paths, title(object)+path)
			}
		})
	}
	deployment := all.find("Deployment", managerName)
	for _, container := range containersOf(deployment.Object) {
		list, _ := container["env"].([]any)
		for _, item := range list {
			if variable, ok := item.(map[string]any); ok && variable["value"] == value {
				paths = append(paths, fmt.Sprintf("variable %s", variable["name"]))
			}
		}
	}
	return paths
}

// containersOf returns the containers in a workload of any kind.
func containersOf(value any) []map[string]any {
	var found []map[string]any
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			list, isList := child.([]any)
			if isList && (key == "containers" || key == "initContainers") {
				for _, item := range list {
					if container, ok := item.(map[string]any); ok {
						found = append(found, container)
					}
				}
				continue
			}
			found = append(found, containersOf(child)...)
		}
	case []any:
		for _, child := range v {
			found = append(found, containersOf(child)...)
		}
	}
	return found
}

// Every image in the manifests, and every image variable of the manager, is set by a key.
func TestImagesAreSetByKeys(t *testing.T) {
	known := regexp.MustCompile(`\$([A-Z0-9_]*IMAGE)\b`).FindAllStringSubmatch(config.Usage(config.Program{}), -1)
	if len(known) < 15 {
		t.Fatalf("image variables of the manager %v, want at least 15", known)
	}
	for overlay := range namespaces {
		_, rendered := renderMarked(t, overlay)
		for _, object := range rendered {
			if object.GetKind() == "CustomResourceDefinition" {
				continue
			}
			for _, container := range containersOf(object.Object) {
				image, _ := container["image"].(string)
				if !strings.HasPrefix(image, "mark-") && image != "${JOB_IMAGE}" {
					t.Errorf("%s: %s: image %q of container %s has no key", overlay, title(object), image, container["name"])
				}
			}
		}
		variables := rendered.variables(t)
		for _, match := range known {
			// New platforms set this variable in place of MLFLOW_IMAGE.
			if match[1] == "RELATED_IMAGE_ODH_MLFLOW_IMAGE" {
				continue
			}
			if !strings.HasPrefix(variables[match[1]], "mark-") {
				t.Errorf("%s: variable %s is %q: it has no key", overlay, match[1], variables[match[1]])
			}
		}
	}
}

// The manager reads every variable of its Deployment that has a value.
func TestVariablesAreRead(t *testing.T) {
	usage := config.Usage(config.Program{Components: append([]string{"platform"}, components...)})
	for name := range shipped(t, "odh").variables(t) {
		if !regexp.MustCompile(`\$` + name + `\b`).MatchString(usage) {
			t.Errorf("the manager does not read %s", name)
		}
	}
}

// A value can contain special characters. The manager gets it unchanged, and the overlay has as many objects as before.
func TestParameterValuesAreKeptVerbatim(t *testing.T) {
	special := []string{
		"true", "null", "~", "12", "1e3", "0x10", "yes", `"quoted"`, `'quoted'`, "a: b", "# no comment", "{a: b}", "[a]", "&a *b", "!tag", "|", ">-", "%x", "@x", "`x`",
		`back\slash`, "a=b=c", "$(MLFLOW_URL)", "${HOME}", "é ü 模型", " blank", "trailing ", "- item", "?", "a,b", "<<", "*", "\ttab", "2026-11-22", "---",
	}
	want := params(t, "rhoai")
	for index := range want {
		want[index].value = special[index%len(special)]
	}
	copied := copyConfig(t)
	copied.set(t, "rhoai", want)
	rendered := copied.render(t, "rhoai")
	if got := len(shipped(t, "rhoai")); len(rendered) != got {
		t.Errorf("%d objects, want %d", len(rendered), got)
	}
	data, _ := rendered.find("ConfigMap", paramsName).Object["data"].(map[string]any)
	variables := rendered.variables(t)
	names := variablesOf(t, "rhoai")
	for _, p := range want {
		if data[p.key] != p.value {
			t.Errorf("%s is %q in the ConfigMap, want %q", p.key, data[p.key], p.value)
		}
		if name := names[p.key]; name != "" && variables[name] != p.value {
			t.Errorf("%s is %q in %s, want %q", p.key, variables[name], name, p.value)
		}
	}
	if image := rendered.manager(t).Image; image != "true" {
		t.Errorf("image %q, want %q", image, "true")
	}
}

// variablesOf returns the names of the variables that keys set, by key.
func variablesOf(t *testing.T, overlay string) map[string]string {
	t.Helper()
	names := map[string]string{}
	marked, rendered := renderMarked(t, overlay)
	for _, p := range marked {
		for _, path := range pathsOf(rendered, p.value) {
			if name, ok := strings.CutPrefix(path, "variable "); ok {
				names[p.key] = name
			}
		}
	}
	return names
}

// An empty value keeps the default of the manager. The images of the manager and of MLflow keep their values, because they have no default.
func TestEmptyValuesKeepDefaults(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		empty := params(t, name)
		for index := range empty {
			if key := empty[index].key; key != "odh-platform-operator-image" && key != "MLFLOW_IMAGE" {
				empty[index].value = ""
			}
		}
		copied := copyConfig(t)
		copied.set(t, name, empty)
		rendered := copied.render(t, name)
		got := load(t, rendered)
		if err := got.CheckComplete(); err != nil {
			t.Error(err)
		}
		image := got.MLflow.Image
		want, err := config.Load(config.Program{Components: append([]string{"platform"}, components...), MLflowVersion: "v3.14.0"},
			rendered.manager(t).Args, func(variable string) (string, bool) {
				value, ok := map[string]string{"POD_NAMESPACE": namespaces[name], "MLFLOW_IMAGE": image}[variable]
				return value, ok
			}, noFile)
		if err != nil {
			t.Fatal(err)
		}
		gotRay, _, gotErr := got.RayCluster(nil)
		wantRay, _, wantErr := want.RayCluster(nil)
		if gotErr != nil || wantErr != nil {
			t.Fatal(gotErr, wantErr)
		}
		for description, diff := range map[string]string{
			"MLflow": cmp.Diff(want.MLflow, got.MLflow), "registries": cmp.Diff(want.ModelRegistry, got.ModelRegistry),
			"ModelMesh": cmp.Diff(want.ModelMesh, got.ModelMesh), "Ray": cmp.Diff(wantRay, gotRay),
		} {
			if diff != "" {
				t.Errorf("%s (-want +got):\n%s", description, diff)
			}
		}
	})
}

// The settings of registries in the overlay kubernetes equal the defaults of the manager, except for the namespace, and for the images: the
// defaults are those of the legacy operators, and the overlay has releases.
func TestOverlayValuesEqualDefaults(t *testing.T) {
	rendered := shipped(t, "kubernetes")
	got := load(t, rendered).ModelRegistry
	defaults, err := config.Load(config.Program{}, nil, func(string) (string, bool) { return "", false }, noFile)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults.ModelRegistry
	want.Gateway.RouteNamespace = "opendatahub"
	want.Images = got.Images
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("registries (-want +got):\n%s", diff)
	}
}

// unversioned are the images without releases. docs/versions.md documents how to pin them.
var unversioned = []string{"quay.io/opendatahub/mlflow:odh-stable", "quay.io/opendatahub/odh-model-metadata-collection:latest"}

// Every image that the operator starts, except those in unversioned, has the tag of a release or a digest. All are listed in
// docs/versions.md.
func TestImagesAreReleases(t *testing.T) {
	page, err := os.ReadFile("../../docs/versions.md")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`@sha256:[0-9a-f]{64}$|:(odh-)?v?[0-9]+(\.[0-9]+)*$`)
	effects := documentedEffects(t)
	found := 0
	for overlay := range namespaces {
		for _, p := range params(t, overlay) {
			if !strings.Contains(p.value, "/") || strings.Contains(p.value, "://") || p.key == "odh-platform-operator-image" || strings.HasPrefix(effects[p.key], none) {
				continue
			}
			found++
			if !release.MatchString(p.value) && !slices.Contains(unversioned, p.value) {
				t.Errorf("%s: %s is %s, want the tag of a release or a digest", overlay, p.key, p.value)
			}
			if short, _, _ := strings.Cut(p.value, "@sha256:"); !strings.Contains(string(page), "`"+short) {
				t.Errorf("docs/versions.md does not list %s", p.value)
			}
		}
	}
	if found < 40 {
		t.Errorf("%d images were checked, want at least 40", found)
	}
}
