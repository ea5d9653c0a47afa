package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// Names in the status of an InferenceService.
const (
	// ConditionReady sums up the components.
	ConditionReady = "Ready"
	// ConditionPredictorReady tells whether the model answers requests.
	ConditionPredictorReady = "PredictorReady"
	// ComponentPredictor is the key of the model among the components.
	ComponentPredictor = "predictor"
)

// InferenceServiceStatus is what ModelMesh reads and writes of the status. KServe keeps more in it.
type InferenceServiceStatus struct {
	// ObservedGeneration is the generation that was reconciled last.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the model and of its components.
	Conditions []Condition `json:"conditions,omitempty"`
	// URL is the address for requests.
	URL string `json:"url,omitempty"`
	// Address is where other servers find the model.
	Address *Address `json:"address,omitempty"`
	// Components have addresses of their own.
	Components map[string]ComponentStatus `json:"components,omitempty"`
	// ModelStatus is the state of the model.
	ModelStatus *ModelStatus `json:"modelStatus,omitempty"`
	// DeploymentMode is who serves the model.
	DeploymentMode string `json:"deploymentMode,omitempty"`
}

// Condition is one in the form of Knative: the time is optional and there is no generation.
type Condition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// Severity is empty for an error.
	Severity string `json:"severity,omitempty"`
	// LastTransitionTime is when the status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason in one word.
	Reason string `json:"reason,omitempty"`
	// Message tells more.
	Message string `json:"message,omitempty"`
}

// Address is one in the form of Knative.
type Address struct {
	// URL of the model, with its path.
	URL string `json:"url,omitempty"`
}

// ComponentStatus are the addresses of a component.
type ComponentStatus struct {
	// URL is the address for requests.
	URL string `json:"url,omitempty"`
	// RestURL is the address for requests by HTTP.
	RestURL string `json:"restUrl,omitempty"`
	// GRPCURL is the address for requests by gRPC.
	GRPCURL string `json:"grpcUrl,omitempty"`
}

// ModelStatus is the state of a model.
type ModelStatus struct {
	// TransitionStatus relates the model that answers requests to the present spec.
	TransitionStatus v1alpha1.TransitionStatus `json:"transitionStatus"`
	// States of the active model and of the one that replaces it.
	States *ModelRevisionStates `json:"states,omitempty"`
	// LastFailureInfo tells why the model of the present spec is not served.
	LastFailureInfo *FailureInfo `json:"lastFailureInfo,omitempty"`
	// Copies of the model.
	Copies *ModelCopies `json:"copies,omitempty"`
}

// ModelRevisionStates are the states of two models.
type ModelRevisionStates struct {
	// ActiveModelState is the state of the model that answers requests.
	ActiveModelState v1alpha1.ModelState `json:"activeModelState"`
	// TargetModelState is the state of the model of the present spec while it is not the active one.
	TargetModelState v1alpha1.ModelState `json:"targetModelState,omitempty"`
}

// ModelCopies counts copies.
type ModelCopies struct {
	// FailedCopies could not be loaded.
	FailedCopies int `json:"failedCopies"`
	// TotalCopies are all.
	TotalCopies int `json:"totalCopies,omitempty"`
}

// FailureInfo is one failure.
type FailureInfo struct {
	// Location is the instance that failed.
	Location string `json:"location,omitempty"`
	// Reason is the kind of the failure.
	Reason v1alpha1.FailureReason `json:"reason,omitempty"`
	// Message tells more.
	Message string `json:"message,omitempty"`
	// ModelRevisionName is the identity under which the model of the spec is registered.
	ModelRevisionName string `json:"modelRevisionName,omitempty"`
	// Time of the failure.
	Time *metav1.Time `json:"time,omitempty"`
}
