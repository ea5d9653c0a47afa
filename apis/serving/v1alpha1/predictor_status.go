package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PredictorStatus is the state of a model, as reported by ModelMesh.
type PredictorStatus struct {
	// transitionStatus describes how the model that answers requests relates to the current spec: UpToDate, InProgress,
	// BlockedByFailedLoad or InvalidSpec.
	// +kubebuilder:default=UpToDate
	TransitionStatus TransitionStatus `json:"transitionStatus"`

	// activeModelState is the state of the model that answers requests: Pending, Standby, Loading, Loaded or FailedToLoad.
	// A model in Standby is loaded when the first request arrives.
	// +kubebuilder:default=Pending
	ActiveModelState ModelState `json:"activeModelState"`

	// targetModelState is the state of the model of the current spec while another model answers requests. Otherwise, it
	// is empty.
	// +kubebuilder:default=""
	TargetModelState ModelState `json:"targetModelState"`

	// lastFailureInfo describes why the model of the current spec is not served.
	// +optional
	LastFailureInfo *FailureInfo `json:"lastFailureInfo,omitempty"`

	// available is true if the model answers requests.
	Available bool `json:"available"`

	// httpEndpoint is the URL for REST requests inside the cluster, for example http://modelmesh-serving.models:8008. It
	// is empty if the REST proxy is disabled.
	// +optional
	HTTPEndpoint string `json:"httpEndpoint,omitempty"`

	// grpcEndpoint is the URL for gRPC requests inside the cluster, for example grpc://modelmesh-serving.models:8033.
	// +optional
	GRPCEndpoint string `json:"grpcEndpoint,omitempty"`

	// failedCopies is the number of copies of the model that could not be loaded.
	// +kubebuilder:default=0
	FailedCopies int `json:"failedCopies"`

	// totalCopies is the number of all copies of the model.
	// +kubebuilder:default=0
	TotalCopies int `json:"totalCopies"`

	// observedGeneration is the most recent generation for which ModelMesh, or the validation of the spec, has reported a
	// result.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the model. Available is True if a model answers requests.
	// Ready is True if that model is the model of the current spec.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TransitionStatus describes how the model that answers requests relates to the current spec.
//
// +kubebuilder:validation:Enum=UpToDate;InProgress;BlockedByFailedLoad;InvalidSpec
type TransitionStatus string

const (
	// UpToDate means that the active model is the model of the spec.
	UpToDate TransitionStatus = "UpToDate"
	// InProgress means that the model of the spec is replacing the active model.
	InProgress TransitionStatus = "InProgress"
	// BlockedByFailedLoad means that the model of the spec could not be loaded. A previous model stays active.
	BlockedByFailedLoad TransitionStatus = "BlockedByFailedLoad"
	// InvalidSpec means that the spec is invalid or conflicts with a registered model, and was not applied.
	InvalidSpec TransitionStatus = "InvalidSpec"
)

// ModelState is the state of a model.
//
// +kubebuilder:validation:Enum="";Pending;Standby;Loading;Loaded;FailedToLoad
type ModelState string

const (
	// NoState is the state of the target model if that model is active.
	NoState ModelState = ""
	// Pending means that the model is not registered yet.
	Pending ModelState = "Pending"
	// Standby means that the model is registered and not in memory. The first request loads it.
	Standby ModelState = "Standby"
	// Loading means that the model is being loaded or waits for a pod.
	Loading ModelState = "Loading"
	// Loaded means that at least one copy is in memory.
	Loaded ModelState = "Loaded"
	// FailedToLoad means that the model could not be loaded. LastFailureInfo contains the cause.
	FailedToLoad ModelState = "FailedToLoad"
)

// FailureReason is the reason of a failure.
//
// +kubebuilder:validation:Enum=ModelLoadFailed;RuntimeUnhealthy;NoSupportingRuntime;RuntimeNotRecognized;InvalidPredictorSpec
type FailureReason string

const (
	// ModelLoadFailed means that a runtime could not load the model.
	ModelLoadFailed FailureReason = "ModelLoadFailed"
	// RuntimeUnhealthy means that no pod of a suitable runtime is ready, or that ModelMesh is not enabled or does not answer in the
	// namespace.
	RuntimeUnhealthy FailureReason = "RuntimeUnhealthy"
	// NoSupportingRuntime means that no runtime supports the format or the protocol of the model.
	NoSupportingRuntime FailureReason = "NoSupportingRuntime"
	// RuntimeNotRecognized means that the runtime in the spec does not exist or is disabled.
	RuntimeNotRecognized FailureReason = "RuntimeNotRecognized"
	// InvalidPredictorSpec means that the spec is invalid or conflicts with a registered model.
	InvalidPredictorSpec FailureReason = "InvalidPredictorSpec"
)

// FailureInfo describes a failure.
type FailureInfo struct {
	// location is the instance that failed: the last characters of the name of its pod.
	// +optional
	Location string `json:"location,omitempty"`

	// reason is the reason of the failure in one word, for example ModelLoadFailed.
	// +optional
	Reason FailureReason `json:"reason,omitempty"`

	// message describes the failure.
	// +optional
	Message string `json:"message,omitempty"`

	// modelId is the ID under which the model of the spec is registered in ModelMesh.
	// +optional
	ModelID string `json:"modelId,omitempty"`

	// time is the time of the failure.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}
