package modelmesh

import (
	"encoding/json"
	"fmt"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// noRuntime is a label that no pod has: models that fit nothing are placed nowhere.
const noRuntime = "_no_runtime"

// TypeConstraints is the file by which the mesh maps the label of a model to the labels that a pod must have. Only runtimes that
// serve count, see [Serves].
func TypeConstraints(runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) ([]byte, error) {
	type constraint struct {
		Required []string `json:"required"`
	}
	all := map[string]constraint{"_default": {[]string{noRuntime}}}
	for name, spec := range runtimes {
		if !Serves(spec) {
			continue
		}
		all[runtimePrefix+name] = constraint{[]string{runtimePrefix + name}}
		for _, format := range formatLabels(spec) {
			all[format] = constraint{[]string{format}}
			for _, protocol := range protocolLabels(spec, restProxy) {
				all[format+"|"+protocol] = constraint{[]string{format, protocol}}
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the type constraints: %w", err)
	}
	return text, nil
}

// DataPlaneConfig is the file that tells the mesh where in a request the name of the model stands. The mesh refuses a file with
// members that it does not know.
func DataPlaneConfig() string {
	return `{"allowOtherRpcs":true,"rpcConfigs":{` +
		`"inference.GRPCInferenceService/ModelInfer":{"idExtractionPath":[1],"vModelId":true},` +
		`"inference.GRPCInferenceService/ModelMetadata":{"idExtractionPath":[1],"vModelId":true},` +
		`"org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions":{"idExtractionPath":[1],"vModelId":true},` +
		`"tensorflow.serving.PredictionService/Predict":{"idExtractionPath":[1,1],"vModelId":true}}}`
}
