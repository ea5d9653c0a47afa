package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// Names in the status of an InferenceService.
const (
	// ConditionReady summarizes the components.
	ConditionReady = "Ready"
	// ConditionPredictorReady reports whether the model answers requests.
	ConditionPredictorReady = "PredictorReady"
	// ComponentPredictor is the key of the model among the components.
	ComponentPredictor = "predictor"
)

// InferenceServiceStatus contains the fields of the status that ModelMesh uses. KServe's status has more fields.
type InferenceServiceStatus struct {
	// ObservedGeneration is the most recent generation that was reconciled.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the conditions of the model and of its components.
	Conditions []Condition `json:"conditions,omitempty"`
	// URL is the address for requests.
	URL string `json:"url,omitempty"`
	// Address is the address of the model for other servers.
	Address *Address `json:"address,omitempty"`
	// Components contains the status of each component.
	Components map[string]ComponentStatus `json:"components,omitempty"`
	// ModelStatus is the state of the model.
	ModelStatus *ModelStatus `json:"modelStatus,omitempty"`
	// DeploymentMode is the deployment mode of the model.
	DeploymentMode string `json:"deploymentMode,omitempty"`
}

// Condition is a condition in the format of Knative: the time is optional, and there is no generation.
type Condition struct {
	// Type is the type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// Severity is empty for an error.
	Severity string `json:"severity,omitempty"`
	// LastTransitionTime is the last time at which the status changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason is the reason of the status in one word.
	Reason string `json:"reason,omitempty"`
	// Message contains details.
	Message string `json:"message,omitempty"`
}

// Address is an address in the format of Knative.
type Address struct {
	// URL is the URL of the model, with its path.
	URL string `json:"url,omitempty"`
}

// ComponentStatus contains the addresses of a component.
type ComponentStatus struct {
	// URL is the address for requests.
	URL string `json:"url,omitempty"`
	// RestURL is the address for REST requests.
	RestURL string `json:"restUrl,omitempty"`
	// GRPCURL is the address for gRPC requests.
	GRPCURL string `json:"grpcUrl,omitempty"`
}

// ModelStatus is the state of a model.
type ModelStatus struct {
	// TransitionStatus describes how the model that answers requests relates to the current spec.
	TransitionStatus v1alpha1.TransitionStatus `json:"transitionStatus"`
	// States are the states of the active model and of the model that replaces it.
	States *ModelRevisionStates `json:"states,omitempty"`
	// LastFailureInfo describes why the model of the current spec is not served.
	LastFailureInfo *FailureInfo `json:"lastFailureInfo,omitempty"`
	// Copies are the numbers of copies of the model.
	Copies *ModelCopies `json:"copies,omitempty"`
}

// ModelRevisionStates are the states of two models.
type ModelRevisionStates struct {
	// ActiveModelState is the state of the model that answers requests.
	ActiveModelState v1alpha1.ModelState `json:"activeModelState"`
	// TargetModelState is the state of the model of the current spec while another model is active.
	TargetModelState v1alpha1.ModelState `json:"targetModelState,omitempty"`
}

// ModelCopies are the numbers of copies of a model.
type ModelCopies struct {
	// FailedCopies is the number of copies that could not be loaded.
	FailedCopies int `json:"failedCopies"`
	// TotalCopies is the number of all copies.
	TotalCopies int `json:"totalCopies,omitempty"`
}

// FailureInfo describes a failure.
type FailureInfo struct {
	// Location is the instance that failed.
	Location string `json:"location,omitempty"`
	// Reason is the reason of the failure in one word.
	Reason v1alpha1.FailureReason `json:"reason,omitempty"`
	// Message contains details.
	Message string `json:"message,omitempty"`
	// ModelRevisionName is the ID under which the model of the spec is registered.
	ModelRevisionName string `json:"modelRevisionName,omitempty"`
	// Time is the time of the failure.
	Time *metav1.Time `json:"time,omitempty"`
}
