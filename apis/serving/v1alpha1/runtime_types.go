package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectMeta is metav1.ObjectMeta. The views of runtimes embed it under this name, because controller-gen then generates no CRDs for them.
type ObjectMeta = metav1.ObjectMeta

// ServingRuntime is a partial view of KServe's ServingRuntime, a template for pods that serve the models of its namespace.
//
// +kubebuilder:object:root=true
type ServingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`

	// Spec is the template.
	Spec ServingRuntimeSpec `json:"spec,omitzero"`
	// Malformed describes the first field of the stored spec that could not be decoded and is missing in Spec. It is empty without such a field.
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

// ClusterServingRuntime is a partial view of KServe's ClusterServingRuntime, a template for pods that serve the models of all namespaces.
//
// +kubebuilder:object:root=true
type ClusterServingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`

	// Spec is the template.
	Spec ServingRuntimeSpec `json:"spec,omitzero"`
	// Malformed is the same as in [ServingRuntime].
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

// ServingRuntimeSpec contains the fields that ModelMesh uses of a template. KServe's schema does not limit numbers, so they are int64 here,
// and the code that uses them checks their range.
type ServingRuntimeSpec struct {
	// SupportedModelFormats are the formats that the server can load.
	SupportedModelFormats []SupportedModelFormat `json:"supportedModelFormats,omitempty"`
	// MultiModel selects the template for ModelMesh if true.
	MultiModel *bool `json:"multiModel,omitempty"`
	// Disabled turns the runtime off if true.
	Disabled *bool `json:"disabled,omitempty"`
	// ProtocolVersions are the inference protocols that the server supports.
	ProtocolVersions []string `json:"protocolVersions,omitempty"`

	// Containers are the containers of the pods.
	Containers []corev1.Container `json:"containers"`
	// Volumes are the volumes of the pods.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// NodeSelector is the node selector of the pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity is the affinity of the pods.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations are the tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Labels are the labels of the pods.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the annotations of the pods.
	Annotations map[string]string `json:"annotations,omitempty"`
	// ImagePullSecrets are the image pull secrets of the pods.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// SchedulerName is the scheduler of the pods.
	SchedulerName string `json:"schedulerName,omitempty"`
	// ResourceClaims are the claims of the pods for dynamic resource allocation.
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// GRPCEndpoint is the endpoint for loading and unloading models: port:<n> or unix:<path>.
	GRPCEndpoint *string `json:"grpcEndpoint,omitempty"`
	// GRPCDataEndpoint is the endpoint for inference requests: port:<n> or unix:<path>.
	GRPCDataEndpoint *string `json:"grpcDataEndpoint,omitempty"`
	// HTTPDataEndpoint is not used by ModelMesh.
	HTTPDataEndpoint *string `json:"httpDataEndpoint,omitempty"`
	// Replicas is the desired number of pods. Stored objects can contain any integer.
	Replicas *int64 `json:"replicas,omitempty"`
	// StorageHelper configures the container that downloads models.
	StorageHelper *StorageHelper `json:"storageHelper,omitempty"`
	// BuiltInAdapter configures the container that translates ModelMesh's protocol for a server that does not support it.
	BuiltInAdapter *BuiltInAdapter `json:"builtInAdapter,omitempty"`
	// Ignored lists the paths of up to maxIgnored fields in the stored spec that have no effect on pods of ModelMesh.
	Ignored []string `json:"-"`
}

// SupportedModelFormat is a model format that a server can load.
type SupportedModelFormat struct {
	// Name is the name of the format.
	Name string `json:"name"`
	// Version is the version of the format, an opaque string.
	Version *string `json:"version,omitempty"`
	// AutoSelect offers the runtime to models of the format that do not select a runtime by name.
	AutoSelect *bool `json:"autoSelect,omitempty"`
}

// StorageHelper configures the container that downloads models.
type StorageHelper struct {
	// Disabled removes the container if true.
	Disabled bool `json:"disabled,omitempty"`
}

// BuiltInAdapter configures the container that translates ModelMesh's protocol for a server that does not support it.
type BuiltInAdapter struct {
	// ServerType is the type of the server, and the name of its container.
	ServerType string `json:"serverType,omitempty"`
	// RuntimeManagementPort is the port on which the server accepts requests to load models.
	RuntimeManagementPort int64 `json:"runtimeManagementPort,omitempty"`
	// MemBufferBytes is the memory, in bytes, that is not available for models.
	MemBufferBytes int64 `json:"memBufferBytes,omitempty"`
	// ModelLoadingTimeoutMillis is the maximum duration of loading a model, in milliseconds.
	ModelLoadingTimeoutMillis int64 `json:"modelLoadingTimeoutMillis,omitempty"`
	// Env contains environment variables of the adapter.
	Env []corev1.EnvVar `json:"env,omitempty"`
}
