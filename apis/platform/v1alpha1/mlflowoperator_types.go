package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MLflowOperatorName is the only valid name of an MLflowOperator.
const MLflowOperatorName = "default-mlflowoperator"

// MLflowOperatorFinalizer keeps an MLflowOperator while MLflow objects exist.
const MLflowOperatorFinalizer = "mlflow.opendatahub.io/mlflow-operator-protection"

// MLflowOperator configures MLflow for the Open Data Hub platform: the Gateway that publishes the server, and its
// section in the menu of the OpenShift console. A cluster has one MLflowOperator, and its name is
// default-mlflowoperator. It takes effect only if the component platform is enabled; MLflow objects then wait until the
// MLflowOperator is ready.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mlfo,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,description="Ready",JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,description="Reason",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.spec.gatewayName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default-mlflowoperator'",message="MLflowOperator name must be default-mlflowoperator"
type MLflowOperator struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the settings of the platform for MLflow.
	// +optional
	Spec MLflowOperatorSpec `json:"spec,omitempty"`

	// status is the most recently observed state of the MLflowOperator.
	// +optional
	Status MLflowOperatorStatus `json:"status,omitempty"`
}

// GetConditions returns a copy of the conditions.
func (m *MLflowOperator) GetConditions() []Condition { return m.Status.GetConditions() }

// SetConditions replaces the conditions with a copy of the given ones.
func (m *MLflowOperator) SetConditions(conditions []Condition) { m.Status.SetConditions(conditions) }

// ObserveGeneration sets status.observedGeneration to the current generation.
func (m *MLflowOperator) ObserveGeneration() { m.Status.ObservedGeneration = m.Generation }

// MLflowOperatorList is a list of MLflowOperator objects.
//
// +kubebuilder:object:root=true
type MLflowOperatorList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MLflowOperator `json:"items"`
}

// MLflowOperatorSpec defines the settings of the platform for MLflow.
type MLflowOperatorSpec struct {
	// gatewayName is the name of the Gateway to which the HTTPRoutes of MLflow attach, for example data-science-gateway.
	// MLflow objects are not reconciled while it is empty.
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// sectionTitle is the section of the application menu of the OpenShift console in which MLflow appears, for example
	// Open Data Hub. MLflow objects are not reconciled while it is empty.
	// +optional
	SectionTitle string `json:"sectionTitle,omitempty"`

	// gateway contains further settings of the Gateway.
	// +optional
	Gateway *GatewaySpec `json:"gateway,omitempty"`
}

// GatewaySpec contains further settings of the Gateway.
type GatewaySpec struct {
	// domain is the domain of the Gateway, with or without https://, for example gateway.apps.example.com. It determines
	// the external URL of MLflow.
	// +optional
	Domain string `json:"domain,omitempty"`
}

// MLflowOperatorStatus is the most recently observed state of an MLflowOperator.
type MLflowOperatorStatus struct {
	Status `json:",inline"`
}
