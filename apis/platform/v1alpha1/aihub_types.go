package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AIHubName is the only name that an AIHub may bear.
const AIHubName = "default-aihub"

// AIHubFinalizer keeps an AIHub until the Catalog that it made is gone.
const AIHubFinalizer = "aihub.opendatahub.io/finalizer"

// PhaseNotReady goes with the condition Ready of an AIHub not being True.
const PhaseNotReady Phase = "Not Ready"

// AIHub hands model registries and the catalog over to this operator: the namespace in which they live and the domain of
// the gateway behind which they are published. There is one, named default-aihub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=aihubs,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="AppNamespace",type=string,JSONPath=`.spec.applicationNamespace`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default-aihub'",message="Only the name 'default-aihub' is allowed"
type AIHub struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the platform decided.
	// +required
	Spec AIHubSpec `json:"spec"`

	// status is what was observed last.
	// +optional
	Status AIHubStatus `json:"status,omitzero"`
}

// GetConditions returns a copy of the conditions.
func (a *AIHub) GetConditions() []Condition { return copyOf(a.Status.Conditions) }

// SetConditions replaces the conditions by a copy of the given ones.
func (a *AIHub) SetConditions(conditions []Condition) { a.Status.Conditions = copyOf(conditions) }

// ObserveGeneration records that the present generation was reconciled.
func (a *AIHub) ObserveGeneration() { a.Status.ObservedGeneration = a.Generation }

// AIHubList is a list of AIHub objects.
//
// +kubebuilder:object:root=true
type AIHubList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AIHub `json:"items"`
}

// AIHubSpec is what the platform decided about model registries and the catalog.
type AIHubSpec struct {
	// applicationNamespace is where the programs of the platform run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	ApplicationNamespace string `json:"applicationNamespace"`

	// instancesNamespace is where registries and the catalog live. It may be the same.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	InstancesNamespace string `json:"instancesNamespace"`

	// gateway tells more about the Gateway.
	// +optional
	Gateway *AIHubGateway `json:"gateway,omitempty"`
}

// AIHubGateway tells more about the Gateway.
type AIHubGateway struct {
	// domain under which the Gateway is reached.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`
	Domain string `json:"domain,omitempty"`
}

// AIHubStatus is what was observed last.
type AIHubStatus struct {
	// phase is Ready or Not Ready.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the resource, in the order of their importance.
	// +optional
	// +listType=atomic
	Conditions []Condition `json:"conditions,omitempty"`

	// releases lists what runs.
	// +optional
	// +listType=map
	// +listMapKey=name
	Releases []Release `json:"releases,omitempty"`

	// distribution is the product that runs this operator. It is missing if the platform operator says nothing about it.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
}
