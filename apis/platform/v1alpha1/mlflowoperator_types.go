package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MLflowOperatorName is the only name that an MLflowOperator may bear.
const MLflowOperatorName = "default-mlflowoperator"

// MLflowOperatorFinalizer keeps an MLflowOperator while there are MLflow objects.
const MLflowOperatorFinalizer = "mlflow.opendatahub.io/mlflow-operator-protection"

// MLflowOperator hands MLflow over to this operator: the gateway behind which servers are published and the section of the
// console in which they stand. There is one, named default-mlflowoperator.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mlfo,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,description="Ready",JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,description="Reason",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default-mlflowoperator'",message="MLflowOperator name must be default-mlflowoperator"
type MLflowOperator struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the platform decided.
	// +optional
	Spec MLflowOperatorSpec `json:"spec,omitempty"`

	// status is what was observed last.
	// +optional
	Status MLflowOperatorStatus `json:"status,omitempty"`
}

// GetConditions returns a copy of the conditions.
func (m *MLflowOperator) GetConditions() []Condition { return m.Status.GetConditions() }

// SetConditions replaces the conditions by a copy of the given ones.
func (m *MLflowOperator) SetConditions(conditions []Condition) { m.Status.SetConditions(conditions) }

// ObserveGeneration records that the present generation was reconciled.
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

// MLflowOperatorSpec is what the platform decided about MLflow.
type MLflowOperatorSpec struct {
	// gatewayName is the Gateway that HTTPRoutes attach to. MLflow waits for it.
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// sectionTitle is the section of the console's application menu. MLflow waits for it.
	// +optional
	SectionTitle string `json:"sectionTitle,omitempty"`

	// gateway tells more about the Gateway.
	// +optional
	Gateway *GatewaySpec `json:"gateway,omitempty"`
}

// GatewaySpec tells more about the Gateway.
type GatewaySpec struct {
	// domain under which the Gateway is reached, with or without https://.
	// +optional
	Domain string `json:"domain,omitempty"`
}

// MLflowOperatorStatus is what was observed last.
type MLflowOperatorStatus struct {
	Status `json:",inline"`
}
