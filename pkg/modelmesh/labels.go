package modelmesh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// LabelService names the Service on all objects of a mesh, on its pods and on the EndpointSlices of the Service.
const LabelService = "modelmesh-service"

// Prefixes of the labels by which the mesh places models.
const (
	runtimePrefix  = "rt:"
	formatPrefix   = "mt:"
	protocolPrefix = "pv:"
)

// protocols of KServe's version 2: the REST proxy turns the one into the other.
const (
	protocolGRPC = "grpc-v2"
	protocolREST = "v2"
)

// Labels are what a runtime offers, sorted: its name, each format that may be selected by itself, with and without its version,
// and its protocols. With the REST proxy, who speaks grpc-v2 speaks v2 as well.
func Labels(runtime string, spec *v1alpha1.ServingRuntimeSpec, restProxy bool) []string {
	all := append(formatLabels(spec), protocolLabels(spec, restProxy)...)
	all = append(all, runtimePrefix+runtime)
	slices.Sort(all)
	return slices.Compact(all)
}

func formatLabels(spec *v1alpha1.ServingRuntimeSpec) []string {
	var all []string
	for _, format := range spec.SupportedModelFormats {
		if format.AutoSelect == nil || !*format.AutoSelect {
			continue
		}
		all = append(all, formatPrefix+format.Name)
		if version := stringValue(format.Version); version != "" {
			all = append(all, formatPrefix+format.Name+":"+version)
		}
	}
	return all
}

func protocolLabels(spec *v1alpha1.ServingRuntimeSpec, restProxy bool) []string {
	var all []string
	for _, protocol := range spec.ProtocolVersions {
		all = append(all, protocolPrefix+protocol)
		if restProxy && protocol == protocolGRPC {
			all = append(all, protocolPrefix+protocolREST)
		}
	}
	return all
}

// Supports tells whether a runtime with these labels may serve a model: it has every part of the model's label. A model that is
// pinned to a runtime by its name asks for nothing else.
func HasLabels(runtime []string, model string) bool {
	for part := range strings.SplitSeq(model, "|") {
		if !slices.Contains(runtime, part) {
			return false
		}
	}
	return true
}

// Serves tells whether a runtime is for the mesh and switched on.
func IsEnabled(spec *v1alpha1.ServingRuntimeSpec) bool {
	return IsMultiModel(spec) && (spec.Disabled == nil || !*spec.Disabled)
}

// MultiModel tells whether a runtime is for the mesh. All others are the business of KServe.
func IsMultiModel(spec *v1alpha1.ServingRuntimeSpec) bool {
	return spec.MultiModel != nil && *spec.MultiModel
}

// noRuntime is a label that no pod has: models that fit nothing are placed nowhere.
const unmatchableLabel = "_no_runtime"

// TypeConstraints is the file by which the mesh maps the label of a model to the labels that a pod must have. Only runtimes that
// serve count, see [Serves].
func TypeConstraints(runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) ([]byte, error) {
	type constraint struct {
		Required []string `json:"required"`
	}
	all := map[string]constraint{"_default": {[]string{unmatchableLabel}}}
	for name, spec := range runtimes {
		if !IsEnabled(spec) {
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
