package parity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leaves returns the values below a path, with their defaults as JSON. A map whose keys users choose and an empty map are one value.
func leaves(t *testing.T, path string, value any) map[string]string {
	t.Helper()
	all := map[string]string{}
	if fields, isMap := value.(map[string]any); isMap && len(fields) > 0 && !userMaps[path] {
		for key, child := range fields {
			for name, text := range leaves(t, strings.TrimPrefix(path+"."+key, "."), child) {
				all[name] = text
			}
		}
		return all
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	all[path] = string(text)
	return all
}

var row = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| `(.*?)` \\| (.+) \\|$")

// The README lists exactly the values of the chart, with their defaults.
func TestReadmeListsTheValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "mlflow", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := leaves(t, "", load(t).Values)
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		var value any
		if err := json.Unmarshal([]byte(found[2]), &value); err != nil {
			t.Errorf("the default of %s is not JSON: %v", found[1], err)
		}
		compact, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if value, known := want[found[1]]; !known || value != string(compact) {
			t.Errorf("README.md: the default of %s is %s, want %q of values.yaml", found[1], compact, value)
		}
		delete(want, found[1])
	}
	for name := range want {
		t.Errorf("README.md does not list %s", name)
	}
}

// The schema has exactly the names of the values, and rejects other names.
func TestSchemaHasNamesOfValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "mlflow", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	compareNames(t, "", schema, load(t).Values)
}

func compareNames(t *testing.T, path string, schema, values map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if schema["additionalProperties"] != false {
		t.Errorf("the schema allows additional properties below %q", path)
	}
	for name, property := range properties {
		value, found := values[name]
		if !found && path+name != "global" {
			t.Errorf("values.yaml does not have %s%s of the schema", path, name)
		}
		nested := property.(map[string]any)
		inner, isMap := value.(map[string]any)
		if isMap && nested["properties"] != nil {
			compareNames(t, path+name+".", nested, inner)
		}
	}
	for name := range values {
		if properties[name] == nil {
			t.Errorf("the schema does not have %s%s", path, name)
		}
	}
}

// On plain Kubernetes the notes show how to create the certificate that the pods require.
func TestNotesShowHowToCreateCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		has    []string
		not    []string
	}{
		"plain Kubernetes": {nil, []string{
			"MLflow 3.14.0 is starting in namespace tracking", "https://mlflow.tracking.svc:8443",
			"openssl req -x509", "DNS:mlflow.tracking.svc,", "kubectl create secret generic mlflow-tls --namespace tracking --type kubernetes.io/tls", "--from-file ca.crt=tls.crt",
		}, []string{"index .data", "OpenShift creates"}},
		"certificate of the chart": {object{"tls": object{"generate": true}}, []string{
			`-o go-template='{{index .data "ca.crt" | base64decode}}'`,
		}, []string{"openssl"}},
		"OpenShift": {object{"service": object{"annotations": object{"service.beta.openshift.io/serving-cert-secret-name": "mlflow-tls"}}}, []string{
			"OpenShift creates the Secret mlflow-tls",
		}, []string{"openssl"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts, err := Texts(t.Context(), load(t), Release{Namespace: "tracking"}, c.values)
			if err != nil {
				t.Fatal(err)
			}
			notes := texts["NOTES.txt"]
			missing := slices.DeleteFunc(c.has, func(text string) bool { return strings.Contains(notes, text) })
			unwanted := slices.DeleteFunc(c.not, func(text string) bool { return !strings.Contains(notes, text) })
			if len(missing)+len(unwanted) > 0 {
				t.Errorf("missing %q, unexpected %q in the notes:\n%s", missing, unwanted, notes)
			}
		})
	}
}
