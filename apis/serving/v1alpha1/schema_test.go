package v1alpha1

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schemaNode contains the fields of a JSONSchemaProps that the tests read.
type schemaNode struct {
	Type, Format         string
	Default              any
	Enum                 []string
	Required             []string
	Properties           map[string]*schemaNode
	AdditionalProperties *schemaNode
}

type crdManifest struct {
	Spec struct {
		Scope    string
		Names    map[string]any
		Versions []struct {
			Name                     string
			Served, Storage          bool
			Subresources             map[string]any
			AdditionalPrinterColumns []struct{ Name, Type, JSONPath string }
			Schema                   struct{ OpenAPIV3Schema *schemaNode }
		}
	}
}

func readCRD(t *testing.T) crdManifest {
	t.Helper()
	text, err := os.ReadFile("../../../config/crd/bases/serving.kserve.io_predictors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d crdManifest
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const modelStates = `enum=["" Pending Standby Loading Loaded FailedToLoad]`

// predictorFields are the fields of the Predictor API, with type and validation. Except for items of status.conditions, the CRD validates
// nothing else: the controller reports contradictory fields in the status.
var predictorFields = map[string]string{
	"spec":                                         "object required=[modelType]",
	"spec.gpu":                                     "string enum=[required preferred]",
	"spec.modelType":                               "object required=[name]",
	"spec.modelType.name":                          "string",
	"spec.modelType.version":                       "string",
	"spec.path":                                    "string",
	"spec.protocolVersion":                         "string",
	"spec.runtime":                                 "object required=[name]",
	"spec.runtime.name":                            "string",
	"spec.schemaPath":                              "string",
	"spec.serviceAccountName":                      "string",
	"spec.storage":                                 "object",
	"spec.storage.key":                             "string",
	"spec.storage.parameters":                      "object",
	"spec.storage.parameters{}":                    "string",
	"spec.storage.path":                            "string",
	"spec.storage.persistentVolumeClaim":           "object required=[claimName]",
	"spec.storage.schemaPath":                      "string",
	"spec.storage.s3":                              "object required=[secretKey]",
	"spec.storage.s3.bucket":                       "string",
	"spec.storage.s3.secretKey":                    "string",
	"status":                                       "object default=map[activeModelState:Pending available:false failedCopies:0 targetModelState: totalCopies:0 transitionStatus:UpToDate] required=[activeModelState available failedCopies targetModelState totalCopies transitionStatus]",
	"status.activeModelState":                      "string default=Pending " + modelStates,
	"status.available":                             "boolean",
	"status.conditions":                            "array",
	"status.failedCopies":                          "integer default=0",
	"status.grpcEndpoint":                          "string",
	"status.httpEndpoint":                          "string",
	"status.lastFailureInfo":                       "object",
	"status.lastFailureInfo.location":              "string",
	"status.lastFailureInfo.message":               "string",
	"status.lastFailureInfo.modelId":               "string",
	"status.lastFailureInfo.reason":                "string enum=[ModelLoadFailed RuntimeUnhealthy NoSupportingRuntime RuntimeNotRecognized InvalidPredictorSpec]",
	"status.lastFailureInfo.time":                  "string format=date-time",
	"status.observedGeneration":                    "integer format=int64",
	"status.targetModelState":                      "string default= " + modelStates,
	"status.totalCopies":                           "integer default=0",
	"status.transitionStatus":                      "string default=UpToDate enum=[UpToDate InProgress BlockedByFailedLoad InvalidSpec]",
	"spec.storage.persistentVolumeClaim.claimName": "string",
	"spec.storage.persistentVolumeClaim.readOnly":  "boolean",
}

func TestPredictorSchemaFields(t *testing.T) {
	found := map[string]string{}
	root := readCRD(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		describe(found, name, root.Properties[name])
	}
	if diff := cmp.Diff(predictorFields, found); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if len(root.Required) > 0 {
		t.Errorf("required top-level fields %v, want none", root.Required)
	}
}

// describe adds the type and the validation of n and of its fields to into, but not of items of lists.
func describe(into map[string]string, path string, n *schemaNode) {
	text := n.Type
	if n.Format != "" {
		text += " format=" + n.Format
	}
	if n.Default != nil {
		text += fmt.Sprintf(" default=%v", n.Default)
	}
	if len(n.Enum) > 0 {
		text += " enum=[" + strings.Join(quoteEmpty(n.Enum), " ") + "]"
	}
	if len(n.Required) > 0 {
		slices.Sort(n.Required)
		text += " required=[" + strings.Join(n.Required, " ") + "]"
	}
	into[path] = text
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		describe(into, path+"."+name, n.Properties[name])
	}
	if n.AdditionalProperties != nil {
		describe(into, path+"{}", n.AdditionalProperties)
	}
}

// quoteEmpty returns the values, with "" instead of an empty one.
func quoteEmpty(values []string) []string {
	out := slices.Clone(values)
	for i, value := range out {
		if value == "" {
			out[i] = `""`
		}
	}
	return out
}

// The CRD keeps the names, the version and the printer columns that clients use.
func TestPredictorNamesAndColumns(t *testing.T) {
	d := readCRD(t)
	if d.Spec.Scope != "Namespaced" || d.Spec.Names["plural"] != "predictors" || d.Spec.Names["kind"] != KindPredictor || d.Spec.Names["listKind"] != "PredictorList" ||
		fmt.Sprint(d.Spec.Names["shortNames"], d.Spec.Names["categories"]) != "[pred] [odh]" {
		t.Errorf("scope %s, names %v", d.Spec.Scope, d.Spec.Names)
	}
	if len(d.Spec.Versions) != 1 {
		t.Fatalf("%d versions, want 1", len(d.Spec.Versions))
	}
	v := d.Spec.Versions[0]
	if _, ok := v.Subresources["status"]; !ok || len(v.Subresources) != 1 || v.Name != GroupVersion.Version || !v.Served || !v.Storage {
		t.Errorf("version %+v, want %s served and stored, with the status subresource", v, GroupVersion.Version)
	}
	var columns []string
	for _, c := range v.AdditionalPrinterColumns {
		columns = append(columns, c.Name+" "+c.Type+" "+c.JSONPath)
	}
	want := []string{
		`Ready string .status.conditions[?(@.type=="Ready")].status`, `Reason string .status.conditions[?(@.type=="Ready")].reason`,
		"Type string .spec.modelType.name", "Available boolean .status.available", "ActiveModel string .status.activeModelState",
		"TargetModel string .status.targetModelState", "Transition string .status.transitionStatus", "Age date .metadata.creationTimestamp",
		"Runtime string .spec.runtime.name", "URL string .status.grpcEndpoint", `Message string .status.conditions[?(@.type=="Ready")].message`,
	}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
