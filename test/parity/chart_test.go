package parity

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func load(t testing.TB) *chart.Chart {
	t.Helper()
	loaded, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render renders the chart with YAML values and the release namespace tracking.
func render(t *testing.T, values string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	var parsed map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return Render(t.Context(), load(t), Release{Namespace: "tracking"}, parsed)
}

func renderChart(t *testing.T, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		all[o.GetKind()+" "+o.GetName()] = o
	}
	return all
}

// container returns the server container of the chart with YAML values.
func container(t *testing.T, values string) map[string]any {
	t.Helper()
	return firstElement(t, renderChart(t, values)["Deployment mlflow"], "spec", "template", "spec", "containers")
}

func firstElement(t *testing.T, o *unstructured.Unstructured, path ...string) map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s has no %s: %v", Key(o), strings.Join(path, "."), err)
	}
	return list[0].(map[string]any)
}

// [D41] Without values, the chart installs a server with its database on its volume, in the namespace of the release.
func TestDefaultsInstallServerWithDatabase(t *testing.T) {
	all := renderChart(t, "")
	want := []string{
		"ClusterRole mlflow", "ClusterRoleBinding mlflow", "Deployment mlflow", "NetworkPolicy mlflow",
		"PersistentVolumeClaim mlflow-pvc", "Service mlflow", "ServiceAccount mlflow-sa",
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("objects %v, want %v", got, want)
	}
	for key, o := range all {
		if !strings.HasPrefix(key, "ClusterRole") && o.GetNamespace() != "tracking" {
			t.Errorf("%s is in namespace %q, want tracking", key, o.GetNamespace())
		}
	}
	env, err := json.Marshal(container(t, "")["env"])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(env), `{"name":"MLFLOW_BACKEND_STORE_URI","value":"sqlite:////mlflow/mlflow.db"}`) {
		t.Errorf("environment %s, want the SQLite database on the volume", env)
	}
	if o := renderChart(t, "namespace: other")["Deployment mlflow"]; o.GetNamespace() != "other" {
		t.Errorf("the Deployment is in namespace %s, want other", o.GetNamespace())
	}
}

// [D42] The chart installs the MLflow version that the operator supports.
func TestChartRunsSupportedVersion(t *testing.T) {
	supported := firstMatch(t, "../../cmd/manager/version.go", `mlflowVersion = "([^"]+)"`)
	loaded := load(t)
	if loaded.Metadata.AppVersion != supported {
		t.Errorf("appVersion is %s, want the supported version %s", loaded.Metadata.AppVersion, supported)
	}
	// Not every MLflow version has an image, so the chart has that of the overlay.
	want := firstMatch(t, "../../config/overlays/kubernetes/params.env", `(?m)^MLFLOW_IMAGE=(\S+)`)
	if image := container(t, "")["image"]; image != want {
		t.Errorf("image %s, want that of the operator: %s", image, want)
	}
}

func firstMatch(t *testing.T, path, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", path, pattern)
	}
	return string(found[1])
}

func TestImageTagAndDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for values, want := range map[string]string{
		"image: {tag: 3.14.1}":                                        "quay.io/opendatahub/mlflow:3.14.1",
		"image: {digest: '" + digest + "'}":                           "quay.io/opendatahub/mlflow@" + digest,
		"image: {name: 'registry.example.com:5000/a/mlflow'}":         "registry.example.com:5000/a/mlflow:odh-stable",
		"image: {name: 'registry.example.com:5000/a/mlflow:odh'}":     "registry.example.com:5000/a/mlflow:odh",
		"image: {name: 'registry.example.com/mlflow@" + digest + "'}": "registry.example.com/mlflow@" + digest,
		"image: {name: mlflow, tag: ''}":                              "mlflow",
	} {
		if got := container(t, values)["image"]; got != want {
			t.Errorf("%s: image %v, want %s", values, got, want)
		}
	}
}

// [D5] A security context in the values replaces the default. Resources are merged with the defaults that do not contradict them.
func TestSecurityContextIsReplacedAndResourcesAreMerged(t *testing.T) {
	got := container(t, "{resources: {requests: {memory: 8Gi}}, securityContext: {}}")
	for field, want := range map[string]string{"resources": `{"limits":{"cpu":"4"},"requests":{"cpu":"1","memory":"8Gi"}}`, "securityContext": `{}`} {
		text, err := json.Marshal(got[field])
		if err != nil || string(text) != want {
			t.Errorf("%s is %s, want %s (%v)", field, text, want, err)
		}
	}
}

// The schema or the templates reject each value in refusals.yaml with the expected message.
func TestInvalidValues(t *testing.T) {
	data, err := os.ReadFile("testdata/refusals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Values, Message string }
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Values, func(t *testing.T) {
			_, err := render(t, c.Values)
			if err == nil {
				t.Fatal("got no error")
			}
			if !strings.Contains(err.Error(), c.Message) {
				t.Errorf("error %v, want it to contain %q", err, c.Message)
			}
		})
	}
}

// By default the chart renders a ServiceMonitor if the cluster serves the API.
func TestServiceMonitor(t *testing.T) {
	for values, want := range map[string][2]bool{ // rendered without the API, and with the API
		"":                                  {false, true},
		"metrics: {enabled: false}":         {false, false},
		"metrics: {serviceMonitor: never}":  {false, false},
		"metrics: {serviceMonitor: always}": {true, true},
		"metrics: {enabled: false, serviceMonitor: always}": {false, false},
	} {
		for i, apis := range [][]string{nil, {"monitoring.coreos.com/v1"}} {
			var parsed map[string]any
			if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
				t.Fatal(err)
			}
			objects, err := Render(t.Context(), load(t), Release{Namespace: "tracking", APIVersions: apis}, parsed)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" })
			if got != want[i] {
				t.Errorf("%q with APIs %v: ServiceMonitor rendered %t, want %t", values, apis, got, want[i])
			}
		}
	}
}

func TestExistingServiceAccountsAreUsed(t *testing.T) {
	all := renderChart(t, "{serviceAccount: {create: false, name: existing}, garbageCollection: {enabled: true}}")
	for key := range all {
		if strings.HasPrefix(key, "ServiceAccount") {
			t.Errorf("%s was rendered", key)
		}
	}
	if name, _, _ := unstructured.NestedString(all["Deployment mlflow"].Object, "spec", "template", "spec", "serviceAccountName"); name != "existing" {
		t.Errorf("the server uses ServiceAccount %q, want existing", name)
	}
}

// Helm renders a missing file as an empty string, so the test checks that the chart contains the scripts for CA bundles.
func TestChartContainsScripts(t *testing.T) {
	for _, name := range []string{"files/ca-bundle.sh", "files/ca-bundle-watch.sh"} {
		if !slices.ContainsFunc(load(t).Files, func(f *common.File) bool { return f.Name == name && len(f.Data) > 0 }) {
			t.Errorf("the chart does not contain %s", name)
		}
	}
}

// encoders are the template helpers that quote or escape their output.
var encoders = []string{"mlflow.json", "mlflow.items", "mlflow.metadata"}

// [D6] Templates print values only through an encoder, or through a helper that does so.
func TestManifestsPrintThroughEncoders(t *testing.T) {
	trees := map[string]*parse.Tree{}
	for _, f := range load(t).Templates {
		if filepath.Base(f.Name) == "NOTES.txt" {
			continue
		}
		tree := parse.New(f.Name)
		tree.Mode = parse.SkipFuncCheck
		set := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(f.Data), "", "", set); err != nil {
			t.Fatal(err)
		}
		maps.Copy(trees, set)
	}
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		if strings.HasSuffix(name, ".yaml") {
			checked += checkPrints(t, trees, name, map[string]bool{})
		}
	}
	if checked < 100 {
		t.Errorf("%d printing actions were checked, want at least 100", checked)
	}
}

// includePattern matches an action that includes a helper.
var includePattern = regexp.MustCompile(`^\{\{include "([^"]+)"`)

// checkPrints checks the printing actions of a template and of the helpers that it includes, and returns their number.
func checkPrints(t *testing.T, trees map[string]*parse.Tree, name string, seen map[string]bool) int {
	if seen[name] || slices.Contains(encoders, name) {
		return 0
	}
	seen[name] = true
	count := 0
	for _, action := range prints(trees[name].Root) {
		count++
		match := includePattern.FindStringSubmatch(action)
		switch {
		case match == nil && action != "{{. | nindent 10}}" && action != "{{. | nindent 6}}" && action != "{{. | nindent 8}}":
			t.Errorf("%s prints %s without an encoder", name, action)
		case match != nil:
			count += checkPrints(t, trees, match[1], seen)
		}
	}
	for _, helper := range regexp.MustCompile(`with include "([^"]+)"`).FindAllStringSubmatch(trees[name].Root.String(), -1) {
		count += checkPrints(t, trees, helper[1], seen)
	}
	return count
}

// prints returns the actions below a node that produce output.
func prints(node parse.Node) []string {
	var found []string
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			found = append(found, prints(child)...)
		}
	case *parse.ActionNode:
		fails := strings.HasPrefix(n.String(), "{{fail ")
		if len(n.Pipe.Decl) == 0 && !fails {
			found = []string{n.String()}
		}
	case *parse.IfNode:
		found = append(prints(n.List), prints(n.ElseList)...)
	case *parse.RangeNode:
		found = append(prints(n.List), prints(n.ElseList)...)
	case *parse.WithNode:
		found = append(prints(n.List), prints(n.ElseList)...)
	}
	return found
}
