package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PredictorStatus is what ModelMesh tells about a model.
type PredictorStatus struct {
	// transitionStatus relates the model that answers requests to the present spec.
	// +kubebuilder:default=UpToDate
	TransitionStatus TransitionStatus `json:"transitionStatus"`

	// activeModelState is the state of the model that answers requests.
	// +kubebuilder:default=Pending
	ActiveModelState ModelState `json:"activeModelState"`

	// targetModelState is the state of the model of the present spec while it is not the active one.
	// +kubebuilder:default=""
	TargetModelState ModelState `json:"targetModelState"`

	// lastFailureInfo tells why the model of the present spec is not served.
	// +optional
	LastFailureInfo *FailureInfo `json:"lastFailureInfo,omitempty"`

	// available tells whether requests are answered.
	Available bool `json:"available"`

	// httpEndpoint is the address for requests by HTTP.
	// +optional
	HTTPEndpoint string `json:"httpEndpoint,omitempty"`

	// grpcEndpoint is the address for requests by gRPC.
	// +optional
	GRPCEndpoint string `json:"grpcEndpoint,omitempty"`

	// failedCopies counts copies that could not be loaded.
	// +kubebuilder:default=0
	FailedCopies int `json:"failedCopies"`

	// totalCopies counts all copies.
	// +kubebuilder:default=0
	TotalCopies int `json:"totalCopies"`

	// observedGeneration is the generation that the mesh, or the check of the spec, has answered for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the model. Available says whether requests are answered, and Ready whether it is the model of the present spec that
	// answers them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TransitionStatus relates the model that answers requests to the present spec.
//
// +kubebuilder:validation:Enum=UpToDate;InProgress;BlockedByFailedLoad;InvalidSpec
type TransitionStatus string

const (
	// UpToDate means that the active model is that of the spec.
	UpToDate TransitionStatus = "UpToDate"
	// InProgress means that the model of the spec is about to replace the active one.
	InProgress TransitionStatus = "InProgress"
	// BlockedByFailedLoad means that the model of the spec could not be loaded, so that the former one stays in use.
	BlockedByFailedLoad TransitionStatus = "BlockedByFailedLoad"
	// InvalidSpec means that the spec was not taken over.
	InvalidSpec TransitionStatus = "InvalidSpec"
)

// ModelState is the state of one model.
//
// +kubebuilder:validation:Enum="";Pending;Standby;Loading;Loaded;FailedToLoad
type ModelState string

const (
	// NoState is that of a target that is the active model.
	NoState ModelState = ""
	// Pending means not yet registered.
	Pending ModelState = "Pending"
	// Standby means registered, not in memory; the first request loads it.
	Standby ModelState = "Standby"
	// Loading means being loaded, or waiting for a pod.
	Loading ModelState = "Loading"
	// Loaded means that a copy is in memory.
	Loaded ModelState = "Loaded"
	// FailedToLoad is explained by the failure information.
	FailedToLoad ModelState = "FailedToLoad"
)

// FailureReason is the kind of a failure.
//
// +kubebuilder:validation:Enum=ModelLoadFailed;RuntimeUnhealthy;NoSupportingRuntime;RuntimeNotRecognized;InvalidPredictorSpec
type FailureReason string

const (
	// ModelLoadFailed means that a runtime could not load the model.
	ModelLoadFailed FailureReason = "ModelLoadFailed"
	// RuntimeUnhealthy means that no pod of a fitting runtime is there.
	RuntimeUnhealthy FailureReason = "RuntimeUnhealthy"
	// NoSupportingRuntime means that no runtime knows the format or the protocol.
	NoSupportingRuntime FailureReason = "NoSupportingRuntime"
	// RuntimeNotRecognized means that there is no runtime of the name that the spec gives.
	RuntimeNotRecognized FailureReason = "RuntimeNotRecognized"
	// InvalidPredictorSpec means that the spec contradicts itself, or that the name is taken.
	InvalidPredictorSpec FailureReason = "InvalidPredictorSpec"
)

// FailureInfo is one failure.
type FailureInfo struct {
	// location is the instance that failed: the last characters of the name of its pod.
	// +optional
	Location string `json:"location,omitempty"`

	// reason is the kind of the failure.
	// +optional
	Reason FailureReason `json:"reason,omitempty"`

	// message tells more.
	// +optional
	Message string `json:"message,omitempty"`

	// modelId is the identity under which the model of the spec is registered.
	// +optional
	ModelID string `json:"modelId,omitempty"`

	// time of the failure.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}
