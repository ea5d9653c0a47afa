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

// leaves lists the values below a path, with their defaults as JSON. Maps whose keys users choose, and those with a piece
// of a Kubernetes object, are one value.
func leaves(t *testing.T, path string, value any) map[string]string {
	t.Helper()
	all := map[string]string{}
	if fields, isMap := value.(map[string]any); isMap && len(fields) > 0 && !chosen[path] {
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

// The table has exactly the values of the chart, with their defaults.
func TestReadmeListsTheValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "mlflow", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := leaves(t, "", load(t).Values)
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		var value any
		if err := json.Unmarshal([]byte(found[2]), &value); err != nil {
			t.Errorf("the default of %s is no JSON: %v", found[1], err)
		}
		compact, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if have, known := want[found[1]]; !known || have != string(compact) {
			t.Errorf("the table says %s is %s by default, the values say %q", found[1], compact, have)
		}
		delete(want, found[1])
	}
	for name := range want {
		t.Errorf("the table lacks %s", name)
	}
}

// Every name in the schema is in the values, and the chart's own maps accept no other names.
func TestSchemaKnowsTheValues(t *testing.T) {
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
		t.Errorf("the schema takes any name below %q", path)
	}
	for name, property := range properties {
		value, found := values[name]
		if !found && path+name != "global" {
			t.Errorf("the schema knows %s%s, the values do not", path, name)
		}
		nested := property.(map[string]any)
		inner, isMap := value.(map[string]any)
		if isMap && nested["properties"] != nil {
			compareNames(t, path+name+".", nested, inner)
		}
	}
	for name := range values {
		if properties[name] == nil {
			t.Errorf("the schema lacks %s%s", path, name)
		}
	}
}

// After an installation on plain Kubernetes the notes show how to create the certificate that the pods require.
func TestNotesShowHowToCreateCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		has    []string
		not    []string
	}{
		"plain": {nil, []string{
			"MLflow 3.14.0 is starting in namespace tracking", "https://mlflow.tracking.svc:8443",
			"openssl req -x509", "DNS:mlflow.tracking.svc,", "kubectl create secret generic mlflow-tls --namespace tracking --type kubernetes.io/tls", "--from-file ca.crt=tls.crt",
		}, []string{"index .data", "OpenShift creates"}},
		"created by the chart": {object{"tls": object{"generate": true}}, []string{
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
				t.Errorf("lacks %q, has %q:\n%s", missing, unwanted, notes)
			}
		})
	}
}
