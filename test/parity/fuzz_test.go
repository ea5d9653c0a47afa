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

// seeds are texts with a meaning in YAML, in templates, or in Helm.
var seeds = []string{
	"a\nhostNetwork: true", "a\n---\nkind: Pod", "---", "a\"\n  - --evil", "\"", "'{}'", "{{ .Values }}", "{{", "$(PATH)", "a: &b [*b]",
	"\x00", "\xff\xfe", "\tx", " ", "a b\tc", "<script>", "<no value>", "<<", "ü", "\u0085", "\ufeff", "\u2028", "\x7f\u009f\uffff", "null", "~",
	"true", "0x1f", "1e3", "2026-01-01", "- a", "? a", "! a", "%YAML 1.1", "@a", "`a`", "# a", "a #b", "[", "]", "{", "}", ",", ":", "|", ">-", "*a", "&a",
	"!!python/object:x", "\\", "\\u0041", "%s%d", "HELM_ERR_START x HELM_ERR_END", "\r\n", "=", ".inf", "0o17", "yes",
}

// structural are the values that change the structure of objects; they are not replaced.
var structural = map[string]bool{
	"metrics.serviceMonitor": true, "storage.retentionPolicy": true, "image.digest": true, "mlflow.corsAllowedOrigins": true,
	"mlflow.artifactsDestination": true, "mlflow.defaultArtifactRoot": true, "traceArchival.location": true, // file paths mount the volume
}

// interpreted are the texts that the chart interprets in some values.
var interpreted = []string{"", "*", "app", "component", "app.kubernetes.io/instance", "storage", "ReadWriteMany"}

// FuzzChartValuesKeepStructure checks that a text in a value, or in a key that users choose, does not add, remove or move a field
// of an object, or change the type of a field. The validation against the schema is disabled, because the schema rejects many of
// the texts. [D6]
func FuzzChartValuesKeepStructure(f *testing.F) {
	loaded, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	want := shapes(f, loaded, "plain")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := resource.ParseQuantity(text); err == nil {
			t.Skip("a quantity can contradict a default")
		}
		if slices.Contains(interpreted, text) || strings.HasPrefix(text, "MLFLOW_") || slices.Contains(chartVariables, text) {
			t.Skip("the chart interprets this text")
		}
		got := shapes(t, loaded, text)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Fatalf("%q changed the structure: want %s, got %s", text, at(want, i), at(got, i))
			}
		}
	})
}

// chartVariables are the variables that the chart sets, except for those named MLFLOW_*. An entry of env with such a name replaces the
// variable.
var chartVariables = []string{
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "PGSSLROOTCERT", "PGSSLMODE", "UVICORN_SSL_CIPHERS",
}

// shapes renders the chart with the text in all values, and returns path and type of every field.
func shapes(t testing.TB, loaded *chart.Chart, text string) []string {
	t.Helper()
	values := fillValues(t, loaded, text)
	objects, err := Render(t.Context(), loaded, Release{Namespace: "other", SkipSchema: true}, values)
	if err != nil {
		t.Fatalf("%q: unexpected error: %v", text, err)
	}
	var all []string
	for _, o := range objects {
		all = append(all, shape(o.GetKind(), o.Object, encoded(t, text))...)
		if file, found, _ := unstructured.NestedString(o.Object, "data", "trace-archival.yaml"); found {
			var content any
			if err := yaml.Unmarshal([]byte(file), &content); err != nil {
				t.Fatalf("decoding trace-archival.yaml: %v", err)
			}
			all = append(all, shape("trace-archival.yaml", content, "")...)
		}
	}
	slices.Sort(all)
	return all
}

// fillValues returns the values of the chart and of all_values.yaml, with every text except structural values, and every key that
// users choose, replaced.
func fillValues(t testing.TB, loaded *chart.Chart, text string) map[string]any {
	t.Helper()
	data, err := os.ReadFile("testdata/all_values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	all, err := util.CoalesceValues(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || unicode.IsSpace(r) && r != '\u0085' {
			return r
		}
		return 'x' // the chart rejects control characters in the file
	}, text)
	return replaceTexts("", map[string]any(all), text, printable).(map[string]any)
}

// userMaps are the maps whose keys users choose.
var userMaps = map[string]bool{
	"commonLabels": true, "podLabels": true, "podAnnotations": true, "nodeSelector": true,
	"service.annotations": true, "serviceAccount.annotations": true,
}

// fileValues are the values that are rendered into trace-archival.yaml.
var fileValues = map[string]bool{
	"traceArchival.location": true, "traceArchival.retention": true, "traceArchival.longRetentionAllowlist": true,
}

func replaceTexts(path string, value any, text, printable string) any {
	switch v := value.(type) {
	case map[string]any:
		into := map[string]any{}
		for key, child := range v {
			if userMaps[path] {
				into[text] = text
				continue
			}
			into[key] = replaceTexts(strings.TrimPrefix(path+"."+key, "."), child, text, printable)
		}
		return into
	case []any:
		into := make([]any, len(v))
		for i := range v {
			into[i] = replaceTexts(path, v[i], text, printable)
		}
		return into
	case string:
		switch {
		case structural[path]:
			return v
		case path == "env.name":
			return text + v // names must be unique
		case fileValues[path]:
			return printable
		}
		return text
	default:
		return value
	}
}

// encoded returns the text after encoding and decoding as JSON, which replaces invalid bytes.
func encoded(t testing.TB, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var decoded string
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// shape returns the paths and types below a value. KEY replaces a key that equals the text.
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
	return "no field"
}
