package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AIHubName is the only valid name of an AIHub.
const AIHubName = "default-aihub"

// AIHubFinalizer keeps an AIHub until the Catalog that the operator created for it is deleted.
const AIHubFinalizer = "aihub.opendatahub.io/finalizer"

// PhaseNotReady is the phase of an AIHub whose condition Ready is not True.
const PhaseNotReady Phase = "Not Ready"

// AIHub configures Model Registry and Model Catalog for the Open Data Hub platform: the namespace of the registries
// and of the catalog, and the domain of the gateway that publishes them. A cluster has one AIHub, and its name is
// default-aihub. It takes effect only if the component platform is enabled.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=aihubs,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="AppNamespace",type=string,JSONPath=`.spec.applicationNamespace`
// +kubebuilder:printcolumn:name="InstancesNamespace",type=string,JSONPath=`.spec.instancesNamespace`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default-aihub'",message="Only the name 'default-aihub' is allowed"
type AIHub struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the settings of the platform for registries and the catalog.
	// +required
	Spec AIHubSpec `json:"spec"`

	// status is the most recently observed state of the AIHub.
	// +optional
	Status AIHubStatus `json:"status,omitzero"`
}

// GetConditions returns a copy of the conditions.
func (a *AIHub) GetConditions() []Condition { return copyOf(a.Status.Conditions) }

// SetConditions replaces the conditions with a copy of the given ones.
func (a *AIHub) SetConditions(conditions []Condition) { a.Status.Conditions = copyOf(conditions) }

// ObserveGeneration sets status.observedGeneration to the current generation.
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

// AIHubSpec defines the settings of the platform for registries and the catalog.
type AIHubSpec struct {
	// applicationNamespace is the namespace in which the workloads of the platform run, for example opendatahub.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	ApplicationNamespace string `json:"applicationNamespace"`

	// instancesNamespace is the namespace of the registries and of the catalog, for example odh-model-registries. It can
	// be the same as applicationNamespace. The operator creates the namespace if it does not exist, and a Catalog in it.
	// An existing namespace is used if the operator or the platform created it, if it is the namespace of the operator, or
	// if it has the label platform.opendatahub.io/registries=true. If you change this field, the operator deletes the
	// Catalog that it created in the old namespace and creates one in the new namespace. Registries are not moved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	InstancesNamespace string `json:"instancesNamespace"`

	// gateway configures the Gateway that publishes the registries and the catalog.
	// +optional
	Gateway *AIHubGateway `json:"gateway,omitempty"`
}

// AIHubGateway configures the Gateway that publishes the registries and the catalog.
type AIHubGateway struct {
	// domain is the domain of the Gateway, for example apps.example.com.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`
	Domain string `json:"domain,omitempty"`
}

// AIHubStatus is the most recently observed state of an AIHub.
type AIHubStatus struct {
	// phase is Ready if the condition Ready is True, and Not Ready otherwise.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the AIHub, in the order of their importance.
	// +optional
	// +listType=atomic
	Conditions []Condition `json:"conditions,omitempty"`

	// releases lists the software that serves the AIHub, with the version of the platform last.
	// +optional
	// +listType=map
	// +listMapKey=name
	Releases []Release `json:"releases,omitempty"`

	// distribution is the product that runs this operator. It is not set if the platform operator reports neither a name
	// nor a version.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
}
