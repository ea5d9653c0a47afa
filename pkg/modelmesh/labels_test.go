package modelmesh

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// format returns a supported format, without a version if it is empty.
func format(name, version string, autoSelect *bool) v1alpha1.SupportedModelFormat {
	f := v1alpha1.SupportedModelFormat{Name: name, AutoSelect: autoSelect}
	if version != "" {
		f.Version = &version
	}
	return f
}

func TestLabels(t *testing.T) {
	yes, no := new(true), new(false)
	for name, c := range map[string]struct {
		runtime string
		spec    v1alpha1.ServingRuntimeSpec
		rest    bool
		want    string
	}{
		"[modelmesh-12] versions are opaque strings, and formats without autoSelect are ignored": {
			"r", v1alpha1.ServingRuntimeSpec{SupportedModelFormats: []v1alpha1.SupportedModelFormat{
				format("type1", "", yes), format("type2", "12345.312.2", yes), format("type2", "someString", yes), format("type3", "", nil), format("type4", "1", no),
			}}, false, "mt:type1,mt:type2,mt:type2:12345.312.2,mt:type2:someString,rt:r",
		},
		"[modelmesh-13] a format with a version": {
			"tf-serving-runtime", v1alpha1.ServingRuntimeSpec{SupportedModelFormats: []v1alpha1.SupportedModelFormat{format("tensorflow", "1", yes)}}, false,
			"mt:tensorflow,mt:tensorflow:1,rt:tf-serving-runtime",
		},
		"the built-in runtime of MLServer": {
			"mlserver-1.x", v1alpha1.ServingRuntimeSpec{ProtocolVersions: []string{"grpc-v2"}, SupportedModelFormats: []v1alpha1.SupportedModelFormat{
				format("sklearn", "0", yes), format("xgboost", "1", yes), format("lightgbm", "3", yes),
			}}, false, "mt:lightgbm,mt:lightgbm:3,mt:sklearn,mt:sklearn:0,mt:xgboost,mt:xgboost:1,pv:grpc-v2,rt:mlserver-1.x",
		},
		"[modelmesh-35] grpc-v2 with the REST proxy implies v2": {
			"r", v1alpha1.ServingRuntimeSpec{ProtocolVersions: []string{"grpc-v2", "grpc-v1"}}, true, "pv:grpc-v1,pv:grpc-v2,pv:v2,rt:r",
		},
		"duplicate protocols": {
			"r", v1alpha1.ServingRuntimeSpec{ProtocolVersions: []string{"grpc-v2", "v2", "v2"}}, true, "pv:grpc-v2,pv:v2,rt:r",
		},
		"no formats": {"r", v1alpha1.ServingRuntimeSpec{}, true, "rt:r"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Labels(c.runtime, &c.spec, c.rest), ","); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestHasLabels(t *testing.T) {
	labels := []string{"mt:onnx", "mt:onnx:1", "pv:grpc-v2", "rt:triton"}
	for model, want := range map[string]bool{
		"mt:onnx": true, "mt:onnx:1": true, "mt:onnx|pv:grpc-v2": true, "rt:triton": true, "mt:onnx:1|pv:grpc-v2": true,
		"mt:onnx:2": false, "mt:onnx|pv:v1": false, "rt:other": false, "mt:onn": false, "": false, "mt:onnx|": false,
	} {
		if got := HasLabels(labels, model); got != want {
			t.Errorf("%q: got %v, want %v", model, got, want)
		}
	}
}

func TestIsEnabled(t *testing.T) {
	for name, c := range map[string]struct {
		spec                v1alpha1.ServingRuntimeSpec
		multiModel, enabled bool
	}{
		"no multiModel":         {v1alpha1.ServingRuntimeSpec{}, false, false},
		"multiModel false":      {v1alpha1.ServingRuntimeSpec{MultiModel: new(false)}, false, false},
		"multi-model":           {v1alpha1.ServingRuntimeSpec{MultiModel: new(true)}, true, true},
		"multi-model, enabled":  {v1alpha1.ServingRuntimeSpec{MultiModel: new(true), Disabled: new(false)}, true, true},
		"multi-model, disabled": {v1alpha1.ServingRuntimeSpec{MultiModel: new(true), Disabled: new(true)}, true, false},
	} {
		if IsMultiModel(&c.spec) != c.multiModel || IsEnabled(&c.spec) != c.enabled {
			t.Errorf("%s: got IsMultiModel %v and IsEnabled %v", name, IsMultiModel(&c.spec), IsEnabled(&c.spec))
		}
	}
}

// [modelmesh-11] TypeConstraints returns exactly these documents.
func TestTypeConstraints(t *testing.T) {
	yes := new(true)
	spec := &v1alpha1.ServingRuntimeSpec{
		MultiModel: yes, ProtocolVersions: []string{"v1", "v2"},
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{format("tensorflow", "1.10", yes), format("tensorflow", "2", nil)},
	}
	for name, c := range map[string]struct {
		runtimes map[string]*v1alpha1.ServingRuntimeSpec
		want     string
	}{
		"one runtime": {map[string]*v1alpha1.ServingRuntimeSpec{"tf-serving-runtime": spec}, `{"_default":{"required":["_no_runtime"]},` +
			`"mt:tensorflow":{"required":["mt:tensorflow"]},` +
			`"mt:tensorflow:1.10":{"required":["mt:tensorflow:1.10"]},` +
			`"mt:tensorflow:1.10|pv:v1":{"required":["mt:tensorflow:1.10","pv:v1"]},` +
			`"mt:tensorflow:1.10|pv:v2":{"required":["mt:tensorflow:1.10","pv:v2"]},` +
			`"mt:tensorflow|pv:v1":{"required":["mt:tensorflow","pv:v1"]},` +
			`"mt:tensorflow|pv:v2":{"required":["mt:tensorflow","pv:v2"]},` +
			`"rt:tf-serving-runtime":{"required":["rt:tf-serving-runtime"]}}`},
		"disabled and single-model runtimes": {map[string]*v1alpha1.ServingRuntimeSpec{
			"off": {MultiModel: yes, Disabled: yes}, "kserve": {SupportedModelFormats: spec.SupportedModelFormats},
		}, `{"_default":{"required":["_no_runtime"]}}`},
		"no runtimes": {nil, `{"_default":{"required":["_no_runtime"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := TypeConstraints(c.runtimes, false)
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The constraints allow a model on a runtime if HasLabels is true, and only then.
func TestTypeConstraintsMatchHasLabels(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		spec := &v1alpha1.ServingRuntimeSpec{MultiModel: new(true), ProtocolVersions: rapid.SliceOfN(word, 0, 3).Draw(t, "protocols")}
		for range rapid.IntRange(0, 3).Draw(t, "formats") {
			spec.SupportedModelFormats = append(spec.SupportedModelFormats,
				format(word.Draw(t, "format"), rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "version"), new(rapid.Bool().Draw(t, "auto"))))
		}
		rest := rapid.Bool().Draw(t, "rest")
		text := TypeConstraints(map[string]*v1alpha1.ServingRuntimeSpec{"r": spec}, rest)
		var constraints map[string]struct{ Required []string }
		if err := json.Unmarshal(text, &constraints); err != nil {
			t.Fatal(err)
		}
		delete(constraints, "_default")
		labels := Labels("r", spec, rest)
		for model, constraint := range constraints {
			if !HasLabels(labels, model) {
				t.Fatalf("model %s is placed on a runtime with labels %q", model, labels)
			}
			if diff := cmp.Diff(strings.Split(model, "|"), constraint.Required); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", model, diff)
			}
		}
		for _, model := range supportedModelLabels(labels) {
			if _, found := constraints[model]; !found {
				t.Fatalf("model %s is supported by labels %q, but has no constraint: %q", model, labels, slices.Sorted(maps.Keys(constraints)))
			}
		}
	})
}

// supportedModelLabels returns the labels of all models that a runtime with these labels supports.
func supportedModelLabels(labels []string) []string {
	var all []string
	for _, label := range labels {
		switch {
		case strings.HasPrefix(label, "rt:"):
			all = append(all, label)
		case strings.HasPrefix(label, "mt:"):
			all = append(all, label)
			for _, protocol := range labels {
				if strings.HasPrefix(protocol, "pv:") {
					all = append(all, label+"|"+protocol)
				}
			}
		}
	}
	return all
}

// The document contains the gRPC methods with the position of the model ID. ModelMesh rejects unknown fields.
func TestDataPlaneConfig(t *testing.T) {
	type method struct {
		IDExtractionPath []int `json:"idExtractionPath"`
		VModelID         bool  `json:"vModelId"`
	}
	type document struct {
		RPCConfigs     map[string]method `json:"rpcConfigs"`
		AllowOtherRPCs bool              `json:"allowOtherRpcs"`
	}
	decoder := json.NewDecoder(strings.NewReader(DataPlaneConfig()))
	decoder.DisallowUnknownFields()
	var got document
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := document{AllowOtherRPCs: true, RPCConfigs: map[string]method{
		"inference.GRPCInferenceService/ModelInfer":                         {[]int{1}, true},
		"inference.GRPCInferenceService/ModelMetadata":                      {[]int{1}, true},
		"tensorflow.serving.PredictionService/Predict":                      {[]int{1, 1}, true},
		"org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions": {[]int{1}, true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
