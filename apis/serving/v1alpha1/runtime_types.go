package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectMeta is that of every object. Views of foreign kinds embed it by this name, by which the generator of CRDs does not take
// them for kinds of ours.
type ObjectMeta = metav1.ObjectMeta

// ServingRuntime is a view of a template for pods that serve models of its namespace.
//
// +kubebuilder:object:root=true
type ServingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`

	// Spec is the template.
	Spec ServingRuntimeSpec `json:"spec,omitzero"`
	// Malformed tells which part of the spec holds what no runtime can have and was therefore left out of Spec; empty for
	// none.
	Malformed string `json:"-"`
}

// ServingRuntimeList is a list of ServingRuntime objects.
//
// +kubebuilder:object:root=true
type ServingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServingRuntime `json:"items"`
}

// ClusterServingRuntime is a view of a template for pods that serve models of every namespace.
//
// +kubebuilder:object:root=true
type ClusterServingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`

	// Spec is the template.
	Spec ServingRuntimeSpec `json:"spec,omitzero"`
	// Malformed is that of a [ServingRuntime].
	Malformed string `json:"-"`
}

// ClusterServingRuntimeList is a list of ClusterServingRuntime objects.
//
// +kubebuilder:object:root=true
type ClusterServingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterServingRuntime `json:"items"`
}

// ServingRuntimeSpec is what ModelMesh reads of a template. The schema is KServe's and leaves numbers unbounded, so they are
// wide here and judged by who uses them.
type ServingRuntimeSpec struct {
	// SupportedModelFormats are the formats that the server can load.
	SupportedModelFormats []SupportedModelFormat `json:"supportedModelFormats,omitempty"`
	// MultiModel tells that the template is for ModelMesh.
	MultiModel *bool `json:"multiModel,omitempty"`
	// Disabled takes the runtime out of service.
	Disabled *bool `json:"disabled,omitempty"`
	// ProtocolVersions of the requests that the server answers.
	ProtocolVersions []string `json:"protocolVersions,omitempty"`

	// Containers of the pods.
	Containers []corev1.Container `json:"containers"`
	// Volumes of the pods.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// NodeSelector of the pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity of the pods.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Labels of the pods.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pods.
	Annotations map[string]string `json:"annotations,omitempty"`
	// ImagePullSecrets of the pods.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// SchedulerName is the scheduler of the pods.
	SchedulerName string `json:"schedulerName,omitempty"`
	// ResourceClaims of the pods, for dynamic resource allocation.
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// GRPCEndpoint is where models are loaded and unloaded: port:<n> or unix:<path>.
	GRPCEndpoint *string `json:"grpcEndpoint,omitempty"`
	// GRPCDataEndpoint is where requests are answered: port:<n> or unix:<path>.
	GRPCDataEndpoint *string `json:"grpcDataEndpoint,omitempty"`
	// HTTPDataEndpoint is not used by ModelMesh.
	HTTPDataEndpoint *string `json:"httpDataEndpoint,omitempty"`
	// Replicas is the wanted number of pods. Stored objects may hold any whole number.
	Replicas *int64 `json:"replicas,omitempty"`
	// StorageHelper is the container that fetches models.
	StorageHelper *StorageHelper `json:"storageHelper,omitempty"`
	// BuiltInAdapter is the container that speaks ModelMesh's protocol for a server that does not.
	BuiltInAdapter *BuiltInAdapter `json:"builtInAdapter,omitempty"`
	// Ignored are the fields of the stored spec that have no effect on pods of ModelMesh, by their paths in it.
	Ignored []string `json:"-"`
}

// SupportedModelFormat is a format that a server can load.
type SupportedModelFormat struct {
	// Name of the format.
	Name string `json:"name"`
	// Version of the format; an opaque word.
	Version *string `json:"version,omitempty"`
	// AutoSelect offers the runtime to models of the format that name no runtime.
	AutoSelect *bool `json:"autoSelect,omitempty"`
}

// StorageHelper is the container that fetches models.
type StorageHelper struct {
	// Disabled leaves the container out.
	Disabled bool `json:"disabled,omitempty"`
}

// BuiltInAdapter is the container that speaks ModelMesh's protocol for a server that does not.
type BuiltInAdapter struct {
	// ServerType is the kind of the server, and the name of its container.
	ServerType string `json:"serverType,omitempty"`
	// RuntimeManagementPort is where the server listens for orders to load models.
	RuntimeManagementPort int64 `json:"runtimeManagementPort,omitempty"`
	// MemBufferBytes is memory that models must leave free, in bytes.
	MemBufferBytes int64 `json:"memBufferBytes,omitempty"`
	// ModelLoadingTimeoutMillis is how long loading may take, in milliseconds.
	ModelLoadingTimeoutMillis int64 `json:"modelLoadingTimeoutMillis,omitempty"`
	// Env of the adapter.
	Env []corev1.EnvVar `json:"env,omitempty"`
}
