package modelmesh

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// LabelService is the label with the name of the Service. The Service, its EndpointSlices and ServiceMonitor, and the Deployments and their
// pods have it.
const LabelService = "modelmesh-service"

// Prefixes of ModelMesh labels, by which the mesh assigns models to pods. They are not labels of Kubernetes.
const (
	runtimePrefix  = "rt:"
	formatPrefix   = "mt:"
	protocolPrefix = "pv:"
)

// Variants of KServe's V2 inference protocol, as in protocolVersions of a ServingRuntime. The REST proxy converts REST to gRPC.
const (
	protocolGRPC = "grpc-v2"
	protocolREST = "v2"
)

// Labels returns the ModelMesh labels of a runtime, sorted: its name, its auto-selectable formats with and without version, and its protocols.
// With the REST proxy a runtime with grpc-v2 has the label of v2 too.
func Labels(runtime string, spec *v1alpha1.ServingRuntimeSpec, restProxy bool) []string {
	labels := append(formatLabels(spec), protocolLabels(spec, restProxy)...)
	labels = append(labels, runtimePrefix+runtime)
	slices.Sort(labels)
	return slices.Compact(labels)
}

func formatLabels(spec *v1alpha1.ServingRuntimeSpec) []string {
	var labels []string
	for _, format := range spec.SupportedModelFormats {
		if format.AutoSelect == nil || !*format.AutoSelect {
			continue
		}
		labels = append(labels, formatPrefix+format.Name)
		if version := ptr.Deref(format.Version, ""); version != "" {
			labels = append(labels, formatPrefix+format.Name+":"+version)
		}
	}
	return labels
}

func protocolLabels(spec *v1alpha1.ServingRuntimeSpec, restProxy bool) []string {
	var labels []string
	for _, protocol := range spec.ProtocolVersions {
		labels = append(labels, protocolPrefix+protocol)
		if restProxy && protocol == protocolGRPC {
			labels = append(labels, protocolPrefix+protocolREST)
		}
	}
	return labels
}

// HasLabels reports whether a runtime has all labels that a model requires. modelLabel joins them with "|", see [Model.Label]; for a model
// that selects its runtime, it is only the label of that runtime.
func HasLabels(runtimeLabels []string, modelLabel string) bool {
	for label := range strings.SplitSeq(modelLabel, "|") {
		if !slices.Contains(runtimeLabels, label) {
			return false
		}
	}
	return true
}

// IsEnabled reports whether a runtime is a multi-model one and not disabled.
func IsEnabled(spec *v1alpha1.ServingRuntimeSpec) bool {
	return IsMultiModel(spec) && (spec.Disabled == nil || !*spec.Disabled)
}

// IsMultiModel reports whether ModelMesh manages a runtime. KServe manages the others.
func IsMultiModel(spec *v1alpha1.ServingRuntimeSpec) bool {
	return spec.MultiModel != nil && *spec.MultiModel
}

// unmatchableLabel is a label that no pod has. Models of an unknown type require it, so that no pod loads them.
const unmatchableLabel = "_no_runtime"

// TypeConstraints returns the document that maps the label of a model to the labels that a pod must have to load it. Disabled runtimes
// are ignored, see [IsEnabled].
func TypeConstraints(runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) []byte {
	type constraint struct {
		Required []string `json:"required"`
	}
	constraints := map[string]constraint{"_default": {[]string{unmatchableLabel}}}
	for name, spec := range runtimes {
		if !IsEnabled(spec) {
			continue
		}
		constraints[runtimePrefix+name] = constraint{[]string{runtimePrefix + name}}
		for _, format := range formatLabels(spec) {
			constraints[format] = constraint{[]string{format}}
			for _, protocol := range protocolLabels(spec, restProxy) {
				constraints[format+"|"+protocol] = constraint{[]string{format, protocol}}
			}
		}
	}
	document, _ := json.Marshal(constraints) // encoding strings cannot fail
	return document
}

// DataPlaneConfig returns the document with the position of the model ID in the requests of each gRPC method. ModelMesh rejects unknown fields.
func DataPlaneConfig() string {
	return `{"allowOtherRpcs":true,"rpcConfigs":{` +
		`"inference.GRPCInferenceService/ModelInfer":{"idExtractionPath":[1],"vModelId":true},` +
		`"inference.GRPCInferenceService/ModelMetadata":{"idExtractionPath":[1],"vModelId":true},` +
		`"org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions":{"idExtractionPath":[1],"vModelId":true},` +
		`"tensorflow.serving.PredictionService/Predict":{"idExtractionPath":[1,1],"vModelId":true}}}`
}
