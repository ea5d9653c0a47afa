package parity

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// omittedObjects has the reasons why the chart does not contain objects of the operator.
var omittedObjects = map[string]string{
	"HTTPRoute mlflow-artifacts":     "the parent Gateway is in the settings of the operator only",
	"HTTPRoute mlflow":               "the parent Gateway is in the settings of the operator only",
	"ConsoleLink mlflow":             "it adds a link to the HTTPRoute to the console of the platform",
	"NetworkPolicy mlflow-migration": "it selects the pods of the migration Job, which only the operator runs",
}

// platforms are the settings of the operator for which every spec is built.
var platforms = map[string]resources.Inputs{
	"no optional APIs":      withDefaults(resources.Inputs{}),
	"plain":                 withDefaults(resources.Inputs{Served: capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor)}),
	"openshift":             withDefaults(resources.Inputs{OpenShift: true, Served: capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor, capability.ConsoleLink)}),
	"openshift with CA":     withDefaults(resources.Inputs{Served: capability.NewSet(capability.ServiceMonitor), OpenShift: true, PlatformCABundle: true}),
	"plain with CA, no URL": {Namespace: "team-tracking", Image: "registry.example.com:5000/mlflow", Served: capability.NewSet(capability.ServiceMonitor), PlatformCABundle: true},
}

func withDefaults(in resources.Inputs) resources.Inputs {
	in.Namespace, in.Image = "opendatahub", "quay.io/example/mlflow:v3"
	in.GatewayName, in.GatewayNamespace = "data-science-gateway", "openshift-ingress"
	in.ExternalURL = "https://gateway.apps.example.com:8443/path"
	in.SectionTitle = "OpenShift Open Data Hub"
	return in
}

// specs returns the specs in the test data of the builders and of this package.
func specs(t testing.TB) map[string]*mlflowv1.MLflow {
	t.Helper()
	all := map[string]*mlflowv1.MLflow{}
	for _, file := range []string{"../../controllers/mlflow/resources/testdata/cases.yaml", "testdata/specs.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Name   string
			Object string // the name of the MLflow
			Spec   mlflowv1.MLflowSpec
		}
		if err := yaml.Unmarshal(data, &cases); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, c := range cases {
			m := &mlflowv1.MLflow{Spec: c.Spec, ObjectMeta: metav1.ObjectMeta{Name: orText(c.Object, "mlflow"), UID: "1"}}
			m.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
			all[c.Name] = m
		}
	}
	return all
}

// TestChartEqualsBuilders compares every object of the chart with that of the operator, for every spec and platform. [D41] [D42]
func TestChartEqualsBuilders(t *testing.T) {
	chart, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	inputs, absent := 0, map[string]bool{}
	for title, m := range specs(t) {
		for platform, in := range platforms {
			if resources.Check(m, in) != nil && resources.Check(m, platforms["plain"]) == nil {
				continue // an artifacts server requires an external URL
			}
			inputs++
			t.Run(title+" on "+platform, func(t *testing.T) {
				values, err := Values(m, in)
				if err != nil {
					t.Fatal(err)
				}
				// The values set the namespace, so that of the release has no effect.
				rendered, err := Render(t.Context(), chart, Release{Namespace: "other"}, values)
				if err != nil {
					t.Fatal(err)
				}
				want, missing := expected(t, m, in)
				maps.Copy(absent, missing)
				for description, diff := range differences(want, byKey(t, rendered)) {
					t.Errorf("%s differs (-operator +chart):\n%s", description, diff)
				}
			})
		}
	}
	if inputs < 40 {
		t.Errorf("%d inputs, want at least 40", inputs)
	}
	for description := range omittedObjects {
		if !absent[description] {
			t.Errorf("omittedObjects contains %s, but the operator does not build it", description)
		}
	}
}

// expected returns the objects of the operator with the intended differences of the chart: without owner references, two labels and
// omittedObjects, which it returns as missing. A claim without an owner is kept after the deletion of the MLflow, so the chart
// sets the annotation that keeps it after an uninstallation.
func expected(t *testing.T, m *mlflowv1.MLflow, in resources.Inputs) (want map[string]any, missing map[string]bool) {
	t.Helper()
	desired, err := resources.Build(m, in)
	if err != nil {
		t.Fatalf("building: %v", err)
	}
	built, err := apply.Render(desired, mlflow.ComponentName, m)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	missing = map[string]bool{}
	built = slices.DeleteFunc(built, func(o *unstructured.Unstructured) bool {
		description := o.GetKind() + " " + strings.ReplaceAll(strings.TrimSuffix(o.GetName(), suffix(m)), "mlflow"+suffix(m), "mlflow")
		if omittedObjects[description] != "" {
			missing[description] = true
		}
		return missing[description]
	})
	for _, o := range built {
		if o.GetKind() == "PersistentVolumeClaim" && len(o.GetOwnerReferences()) == 0 {
			o.SetAnnotations(map[string]string{"helm.sh/resource-policy": "keep"})
		}
		o.SetOwnerReferences(nil)
		labels := o.GetLabels()
		delete(labels, names.OperatorLabel)
		delete(labels, names.ComponentLabel)
		o.SetLabels(labels)
	}
	return byKey(t, built), missing
}

// byKey returns the objects, decoded from JSON, by [Key].
func byKey(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, o := range objects {
		if all[Key(o)] != nil {
			t.Fatalf("duplicate object %s", Key(o))
		}
		data, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		var fields any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		all[Key(o)] = fields
	}
	return all
}

// differences returns the differences by the keys of objects.
func differences(want, got map[string]any) map[string]string {
	found := map[string]string{}
	for _, objects := range []map[string]any{want, got} {
		for key := range objects {
			if diff := cmp.Diff(want[key], got[key]); diff != "" {
				found[key] = diff
			}
		}
	}
	return found
}

// operatorOnly has the reasons why fields of the spec do not change the chart.
var operatorOnly = map[string]string{
	"migration": "the chart does not migrate the database",
	"tls":       "a phase of the operator issues the certificate, and tls.generate that of the chart",
}

// Every field of the spec must be part of the comparison.
func TestEveryFieldIsCompared(t *testing.T) {
	set := map[string]bool{}
	for _, m := range specs(t) {
		for _, field := range fieldsOf(reflect.ValueOf(m.Spec), "") {
			set[field] = true
		}
	}
	var all []string
	walkTypes(reflect.TypeFor[mlflowv1.MLflowSpec](), "", func(field string) { all = append(all, field) })
	for _, field := range all {
		top, _, _ := strings.Cut(field, ".")
		if operatorOnly[top] == "" && !set[field] {
			t.Errorf("no spec sets %s: add one to testdata/specs.yaml and translate the field in Values", field)
		}
	}
}

// walkTypes calls visit with the path of every field of the types of the API.
func walkTypes(of reflect.Type, prefix string, visit func(string)) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		visit(prefix + name)
		if inner := of.Field(i).Type; inner.Kind() == reflect.Pointer && strings.HasSuffix(inner.Elem().PkgPath(), "/apis/mlflow/v1") && inner.Elem().Kind() == reflect.Struct {
			walkTypes(inner.Elem(), prefix+name+".", visit)
		}
	}
}

// fieldsOf returns the paths of the fields that are set.
func fieldsOf(value reflect.Value, prefix string) []string {
	var set []string
	for i := range value.NumField() {
		field := value.Field(i)
		if field.IsZero() {
			continue
		}
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		set = append(set, prefix+name)
		if field.Kind() == reflect.Pointer && strings.HasSuffix(field.Type().Elem().PkgPath(), "/apis/mlflow/v1") && field.Elem().Kind() == reflect.Struct {
			set = append(set, fieldsOf(field.Elem(), prefix+name+".")...)
		}
	}
	return set
}

func TestDifferencesReportsChangedValues(t *testing.T) {
	chart, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	m, in := specs(t)["minimal-plain"], platforms["plain"]
	values, err := Values(m, in)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := expected(t, m, in)
	for name, change := range map[string]map[string]any{
		"a number":           {"replicaCount": 0},
		"a string":           {"temporaryStorage": object{"sizeLimit": "2Gi"}},
		"an object":          {"metrics": object{"enabled": false}},
		"a map entry":        {"podAnnotations": object{"more": "x"}},
		"a retention policy": {"storage": object{"enabled": true, "size": "5Gi", "retentionPolicy": "Delete"}},
		"a list entry":       {"env": []any{object{"name": "MORE", "value": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := maps.Clone(values)
			maps.Copy(changed, change)
			rendered, err := Render(t.Context(), chart, Release{Namespace: "other"}, changed)
			if err != nil {
				t.Fatal(err)
			}
			if len(differences(want, byKey(t, rendered))) == 0 {
				t.Errorf("values %v: got no differences", change)
			}
		})
	}
}
