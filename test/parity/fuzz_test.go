package parity

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// hostile texts have a special meaning in YAML, in templates, or in Helm.
var hostile = []string{
	"a\nhostNetwork: true", "a\n---\nkind: Pod", "---", "a\"\n  - --evil", "\"", "'{}'", "{{ .Values }}", "{{", "$(PATH)", "a: &b [*b]",
	"\x00", "\xff\xfe", "\tx", " ", "a b\tc", "<script>", "<no value>", "<<", "ü", "\u0085", "\ufeff", "\u2028", "\x7f\u009f\uffff", "null", "~",
	"true", "0x1f", "1e3", "2026-01-01", "- a", "? a", "! a", "%YAML 1.1", "@a", "`a`", "# a", "a #b", "[", "]", "{", "}", ",", ":", "|", ">-", "*a", "&a",
	"!!python/object:x", "\\", "\\u0041", "%s%d", "HELM_ERR_START x HELM_ERR_END", "\r\n", "=", ".inf", "0o17", "yes",
}

// decisive are the values that select a shape and do not appear in an object.
var decisive = map[string]bool{
	"metrics.serviceMonitor": true, "storage.retentionPolicy": true, "image.digest": true, "mlflow.corsAllowedOrigins": true,
	"mlflow.artifactsDestination": true, "mlflow.defaultArtifactRoot": true, "traceArchival.location": true, // paths use the volume
}

// meaningful are the texts that the chart interprets in any value, so that another shape is right.
var meaningful = []string{"", "*", "app", "component", "app.kubernetes.io/instance", "storage"}

// FuzzChartValuesKeepStructure checks that no text in a value of the chart, or in a key that users choose, adds, removes or
// moves a field of any object, or changes its type from text. The schema of the values, which refuses many of
// them, is disabled. [D6]
func FuzzChartValuesKeepStructure(f *testing.F) {
	loaded, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range hostile {
		f.Add(seed)
	}
	want := shapes(f, loaded, "plain")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := resource.ParseQuantity(text); err == nil {
			t.Skip("as an amount it may contradict a default")
		}
		if slices.Contains(meaningful, text) || strings.HasPrefix(text, "MLFLOW_") || slices.Contains(caVariables, text) {
			t.Skip("this text has a meaning")
		}
		got := shapes(t, loaded, text)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Fatalf("%q changed the structure: want %s, got %s", text, at(want, i), at(got, i))
			}
		}
	})
}

// caVariables are variables that the chart sets: an entry of env with such a name replaces the variable.
var caVariables = []string{
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "PGSSLROOTCERT", "PGSSLMODE", "UVICORN_SSL_CIPHERS", "ReadWriteMany",
}

// shapes renders the chart with the text in all its values, and returns path and type of every field.
func shapes(t testing.TB, loaded *chart.Chart, text string) []string {
	t.Helper()
	values := fillValues(t, loaded, text)
	objects, err := Render(t.Context(), loaded, Release{Namespace: "elsewhere", SkipSchema: true}, values)
	if err != nil {
		t.Fatalf("%q: unexpected error: %v", text, err)
	}
	var all []string
	for _, o := range objects {
		all = append(all, shape(o.GetKind(), o.Object, asStored(t, text))...)
		if file, found, _ := unstructured.NestedString(o.Object, "data", "trace-archival.yaml"); found {
			var content any
			if err := yaml.Unmarshal([]byte(file), &content); err != nil {
				t.Fatalf("reading the file for archival: %v", err)
			}
			all = append(all, shape("trace-archival.yaml", content, "")...)
		}
	}
	slices.Sort(all)
	return all
}

// fillValues returns the values of the chart and those of rich.yaml with every text replaced, except decisive ones, and with the keys
// that users choose replaced as well.
func fillValues(t testing.TB, loaded *chart.Chart, text string) map[string]any {
	t.Helper()
	data, err := os.ReadFile("testdata/rich.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rich map[string]any
	if err := yaml.Unmarshal(data, &rich); err != nil {
		t.Fatal(err)
	}
	all, err := util.CoalesceValues(loaded, rich)
	if err != nil {
		t.Fatal(err)
	}
	readable := strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || unicode.IsSpace(r) && r != '\u0085' {
			return r
		}
		return 'x' // not allowed in a file
	}, text)
	return replaced("", map[string]any(all), text, readable).(map[string]any)
}

// chosen are the maps whose keys users choose.
var chosen = map[string]bool{
	"commonLabels": true, "podLabels": true, "podAnnotations": true, "nodeSelector": true,
	"service.annotations": true, "serviceAccount.annotations": true,
}

// filed are the values that are rendered into the file of the archival.
var filed = map[string]bool{
	"traceArchival.location": true, "traceArchival.retention": true, "traceArchival.longRetentionAllowlist": true,
}

func replaced(path string, value any, text, readable string) any {
	switch v := value.(type) {
	case map[string]any:
		into := map[string]any{}
		for key, child := range v {
			if chosen[path] {
				into[text] = text
				continue
			}
			into[key] = replaced(strings.TrimPrefix(path+"."+key, "."), child, text, readable)
		}
		return into
	case []any:
		into := make([]any, len(v))
		for i := range v {
			into[i] = replaced(path, v[i], text, readable)
		}
		return into
	case string:
		switch {
		case decisive[path]:
			return v
		case path == "env.name":
			return text + v // names must differ
		case filed[path]:
			return readable
		}
		return text
	default:
		return value
	}
}

// asStored returns the text after a round trip through JSON, which replaces invalid bytes.
func asStored(t testing.TB, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// shape lists the paths and types below a value. A key that is the text is written as KEY.
func shape(path string, value any, text string) []string {
	var paths []string
	switch v := value.(type) {
	case map[string]any:
		paths = append(paths, path+" map")
		for key, child := range v {
			if key == text {
				key = "KEY"
			}
			paths = append(paths, shape(path+"."+key, child, text)...)
		}
	case []any:
		paths = append(paths, path+" list")
		for i, child := range v {
			paths = append(paths, shape(fmt.Sprintf("%s[%d]", path, i), child, text)...)
		}
	default:
		paths = []string{fmt.Sprintf("%s %T", path, v)}
	}
	return paths
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}
