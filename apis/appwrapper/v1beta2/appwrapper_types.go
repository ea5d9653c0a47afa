package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is the kind of an AppWrapper.
const Kind = "AppWrapper"

// AppWrapper is a workload made of other Kubernetes objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=aw,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Quota Reserved",type=string,JSONPath=`.status.conditions[?(@.type=="QuotaReserved")].status`
// +kubebuilder:printcolumn:name="Resources Deployed",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesDeployed")].status`
// +kubebuilder:printcolumn:name="Unhealthy",type=string,JSONPath=`.status.conditions[?(@.type=="Unhealthy")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AppWrapper struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted workload.
	// +optional
	Spec AppWrapperSpec `json:"spec,omitempty"`

	// status is what was observed last.
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

// AppWrapperSpec is the wanted workload.
type AppWrapperSpec struct {
	// components are the objects of the workload, in the order in which they are
	// created. Together they have at least one and at most eight pod sets, and they
	// cannot be changed after creation.
	// +required
	Components []AppWrapperComponent `json:"components"`

	// suspend keeps the workload from running: nothing is deployed while it is
	// true. Kueue sets and clears it.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// managedBy names the controller that acts on this AppWrapper. Absent or
	// workload.codeflare.dev/appwrapper-controller is this one; any other value
	// makes it leave the AppWrapper alone. It cannot be changed after creation.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// AppWrapperComponent is one object of the workload.
type AppWrapperComponent struct {
	// annotations are free metadata of the component. Nothing reads them.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// podSets say where the pod templates of the object are and how many pods each
	// of them results in. They may be left out for the kinds that are known.
	// +optional
	PodSets []AppWrapperPodSet `json:"podSets,omitempty"`

	// podSetInfos are what Kueue wants to be added to the pods of each pod set, in
	// the order of the pod sets. Kueue writes and clears them.
	// +optional
	PodSetInfos []AppWrapperPodSetInfo `json:"podSetInfos,omitempty"`

	// template is the complete object: apiVersion, kind, metadata and the rest. Its
	// namespace is empty or that of the AppWrapper.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`
}

// AppWrapperPodSet is a group of equal pods.
type AppWrapperPodSet struct {
	// annotations are hints for the topology-aware scheduling of Kueue.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// replicas is the number of pods. Without it, 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// path leads to the pod template, or to the Pod, inside the template of the
	// component: "template", then .field and [index], for example
	// template.spec.workerGroupSpecs[0].template.
	// +required
	Path string `json:"path"`
}

// AppWrapperPodSetInfo is what is added to the pods of one pod set.
type AppWrapperPodSetInfo struct {
	// annotations of the pods. A key that the template has with another value is
	// a fatal conflict.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels of the pods, with the same rule.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// nodeSelector of the pods, with the same rule.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are appended to those of the template.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// schedulingGates are appended to those of the template, each name once.
	// +optional
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
}

// AppWrapperStatus is what was observed last.
type AppWrapperStatus struct {
	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where in its life the workload is: empty, Suspended, Resuming,
	// Running, Resetting, Suspending, Succeeded, Failed or Terminating.
	// +optional
	Phase AppWrapperPhase `json:"phase,omitempty"`

	// resettingCount is the number of retries that count against the limit. It
	// never goes back.
	// +optional
	Retries int32 `json:"resettingCount,omitempty"`

	// completionTime is when the workload succeeded or failed for good. The time to
	// live after success and the delay of deletion on failure count from it.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastFailure tells what was wrong when the workload was reset or failed last.
	// It outlives the pods that it tells about.
	// +optional
	LastFailure *AppWrapperFailure `json:"lastFailure,omitempty"`

	// conditions of the workload.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// componentStatus has one entry for each component of the spec, in its order.
	// +optional
	ComponentStatus []AppWrapperComponentStatus `json:"componentStatus,omitempty"`
}

// AppWrapperFailure is what was seen of a failure before its remains were deleted.
type AppWrapperFailure struct {
	// time of the failure.
	// +required
	Time metav1.Time `json:"time"`

	// reason is that of the condition Unhealthy.
	// +required
	Reason string `json:"reason"`

	// message names pods and containers with their nodes, exit codes and last
	// states. It holds at most ten pods and 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// AppWrapperComponentStatus is what was deployed for one component.
type AppWrapperComponentStatus struct {
	// name of the deployed object; empty until its creation starts.
	// +required
	Name string `json:"name"`

	// kind of the deployed object; empty until its creation starts.
	// +required
	Kind string `json:"kind"`

	// apiVersion of the deployed object; empty until its creation starts.
	// +required
	APIVersion string `json:"apiVersion"`

	// podSets are the pod sets that hold for the component: those of the spec, or
	// the inferred ones. They are found once and never again. An empty list, and
	// not null, says that there are none.
	// +required
	PodSets []AppWrapperPodSet `json:"podSets"`

	// conditions of the component: ResourcesDeployed, and Completed once the
	// component has reported its own success.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ConditionsRef gives access to the conditions of the status.
func (a *AppWrapper) ConditionsRef() *[]metav1.Condition { return &a.Status.Conditions }

// ObserveGeneration notes metadata.generation in the status, unless another controller, or a newer release, is at work on the AppWrapper.
func (a *AppWrapper) ObserveGeneration() {
	if a.Ours() && a.Status.Phase.Known() {
		a.Status.ObservedGeneration = a.Generation
	}
}

// Ours tells whether spec.managedBy leaves the AppWrapper to this controller.
func (a *AppWrapper) Ours() bool {
	return a.Spec.ManagedBy == nil || *a.Spec.ManagedBy == ManagedByThis
}
