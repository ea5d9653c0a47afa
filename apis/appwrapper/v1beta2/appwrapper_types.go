package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is the kind of an AppWrapper.
const Kind = "AppWrapper"

// AppWrapper groups several objects into one workload that Kueue queues, admits and preempts as a unit. The operator
// creates the objects when the workload starts, retries the workload when it fails, and deletes the objects when the
// AppWrapper is suspended or deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=aw,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Quota Reserved",type=string,JSONPath=`.status.conditions[?(@.type=="QuotaReserved")].status`
// +kubebuilder:printcolumn:name="Resources Deployed",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesDeployed")].status`
// +kubebuilder:printcolumn:name="Unhealthy",type=string,JSONPath=`.status.conditions[?(@.type=="Unhealthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Queue",type=string,priority=1,JSONPath=`.metadata.labels.kueue\.x-k8s\.io/queue-name`
// +kubebuilder:printcolumn:name="Retries",type=integer,priority=1,JSONPath=`.status.resettingCount`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AppWrapper struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the workload.
	// +optional
	Spec AppWrapperSpec `json:"spec,omitempty"`

	// status is the most recently observed state of the workload.
	// +optional
	Status AppWrapperStatus `json:"status,omitempty"`
}

// AppWrapperList is a list of AppWrappers.
//
// +kubebuilder:object:root=true
type AppWrapperList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AppWrapper `json:"items"`
}

// AppWrapperSpec defines the desired state of a workload.
type AppWrapperSpec struct {
	// components are the objects of the workload, in the order in which they are created. In total, they have at least one
	// pod set, and at most as many as a Workload of the installed Kueue, or eight without Kueue. Their templates and pod
	// sets cannot be changed after creation.
	// +required
	Components []AppWrapperComponent `json:"components"`

	// suspend stops the workload if true: its objects are deleted, or not created. Defaults to false. Kueue sets and
	// clears this field.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// managedBy is the name of the controller that manages this AppWrapper. If it is not set or is
	// workload.codeflare.dev/appwrapper-controller, this operator manages it. Otherwise, this operator ignores the
	// AppWrapper; for example, Kueue uses kueue.x-k8s.io/multikueue. It cannot be changed after creation.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// AppWrapperComponent is an object of the workload.
type AppWrapperComponent struct {
	// annotations are arbitrary metadata of the component. The operator does not use them.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// podSets describe where the template contains pod templates and how many pods each of them creates. They are optional
	// for kinds that the operator knows, such as Job, JobSet and RayCluster.
	// +optional
	PodSets []AppWrapperPodSet `json:"podSets,omitempty"`

	// podSetInfos contain the changes that Kueue requires for the pods of each pod set, in the order of the pod sets.
	// Kueue sets this field when it admits the workload, and clears it when it suspends the workload.
	// +optional
	PodSetInfos []AppWrapperPodSetInfo `json:"podSetInfos,omitempty"`

	// template is the complete object, with apiVersion, kind, metadata and all other fields. Its namespace must be empty
	// or the namespace of the AppWrapper.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`
}

// AppWrapperPodSet is a group of identical pods.
type AppWrapperPodSet struct {
	// annotations are hints for the topology-aware scheduling of Kueue.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// replicas is the number of pods in the pod set. Defaults to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// path is the path of the pod template, or of the Pod, in the component. It begins with template, followed by .field
	// and [index], for example template.spec.workerGroupSpecs[0].template.
	// +required
	Path string `json:"path"`
}

// AppWrapperPodSetInfo contains the changes to the pods of a pod set.
type AppWrapperPodSetInfo struct {
	// annotations are added to the pods. The workload fails if the template has another value for a key.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels are added to the pods. The workload fails if the template has another value for a key.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// nodeSelector is added to the node selector of the pods. The workload fails if the template has another value for a
	// key.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are added to the tolerations of the pods. Tolerations that the template already contains are not
	// repeated.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// schedulingGates are added to the scheduling gates of the pods. Gates that the template already contains are not
	// repeated.
	// +optional
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
}

// AppWrapperStatus is the most recently observed state of a workload.
type AppWrapperStatus struct {
	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the phase of the workload: Suspended, Resuming, Running, Resetting, Suspending, Succeeded, Failed or
	// Terminating. It is empty for a new AppWrapper.
	// +optional
	Phase AppWrapperPhase `json:"phase,omitempty"`

	// resettingCount is the number of retries that count towards the retry limit. It never decreases.
	// +optional
	Retries int32 `json:"resettingCount,omitempty"`

	// completionTime is the time at which the workload succeeded or failed permanently. The annotations successTTLDuration
	// and deletionOnFailureGracePeriodDuration are relative to this time.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastFailure describes the most recent failure after which the workload was reset or failed. It remains set after
	// the failed pods are deleted.
	// +optional
	LastFailure *AppWrapperFailure `json:"lastFailure,omitempty"`

	// conditions are the latest observations of the state of the workload: Ready, QuotaReserved, ResourcesDeployed,
	// PodsReady, Unhealthy and DeletingResources.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// componentStatus lists the state of each component, in the order of spec.components.
	// +optional
	ComponentStatus []AppWrapperComponentStatus `json:"componentStatus,omitempty"`
}

// AppWrapperFailure describes a failure. It is recorded before the failed pods are deleted.
type AppWrapperFailure struct {
	// time is the time of the failure.
	// +required
	Time metav1.Time `json:"time"`

	// reason is the reason of the condition Unhealthy at that time, for example FoundFailedPods.
	// +required
	Reason string `json:"reason"`

	// message is the cause, followed by the failed pods and containers, if any, with their nodes, exit codes and last
	// states. It contains at most ten pods and 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// AppWrapperComponentStatus is the state of a component.
type AppWrapperComponentStatus struct {
	// name is the name of the created object. It is empty until the operator starts to create the object.
	// +required
	Name string `json:"name"`

	// kind is the kind of the created object. It is empty until the operator starts to create the object.
	// +required
	Kind string `json:"kind"`

	// apiVersion is the API version of the created object. It is empty until the operator starts to create the object.
	// +required
	APIVersion string `json:"apiVersion"`

	// podSets are the pod sets of the component: those of the spec or, if the spec has none, those that the operator
	// inferred from the template. They are determined once and do not change. An empty list means that the component has
	// no pods.
	// +required
	PodSets []AppWrapperPodSet `json:"podSets"`

	// conditions are the latest observations of the state of the component: ResourcesDeployed, and Completed after the
	// object has reported its success.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ConditionsRef returns a pointer to the conditions in the status.
func (a *AppWrapper) ConditionsRef() *[]metav1.Condition { return &a.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the current generation, unless another controller or a newer
// release manages the AppWrapper.
func (a *AppWrapper) ObserveGeneration() {
	if a.IsManaged() && a.Status.Phase.IsKnown() {
		a.Status.ObservedGeneration = a.Generation
	}
}

// IsManaged reports whether spec.managedBy names this operator or is unset.
func (a *AppWrapper) IsManaged() bool {
	return a.Spec.ManagedBy == nil || *a.Spec.ManagedBy == ManagedByThis
}
