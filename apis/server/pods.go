package server

import corev1 "k8s.io/api/core/v1"

// Pods describes the number and the placement of the pods of a server, in the fields of a Deployment and a Pod.
type Pods struct {
	// replicas is the number of server pods. Defaults to 1. If greater than 1, a PodDisruptionBudget allows one pod to be
	// evicted at a time. A database that the operator runs for the server always has one pod. Scaling does not restart
	// running pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// imagePullSecrets are references to Secrets in the same namespace that contain the registry credentials for the
	// images of the server and database pods. A change restarts these pods.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// nodeSelector restricts the server and database pods to nodes with these labels. A change restarts these pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the tolerations of the server and database pods. A change restarts these pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity is the affinity of the server pods. It does not apply to the database pod. A change restarts the server
	// pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	CommonPods `json:",inline"`
}

// CommonPods contains the fields of Pods that MLflow shares with the other kinds. MLflow has its own versions of the other fields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name))",message="each volumeMounts entry must name an entry of volumes: add the volume, or correct the name"
type CommonPods struct {
	// topologySpreadConstraints spread the server pods over zones, nodes or other domains. A constraint without a
	// labelSelector counts the server pods. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew > 0 && c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="each topologySpreadConstraints entry must have a maxSkew above zero, and DoNotSchedule or ScheduleAnyway in whenUnsatisfiable"
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the name of the PriorityClass of the server pods. In an MLflow, it also applies to the pods of
	// jobs, and in other kinds, to the database pod. A change restarts the server and database pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')`,message="priorityClassName must be the name of a PriorityClass: lowercase letters, digits, - and ., with a letter or digit at both ends"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// volumes are additional volumes of the server pods. In an MLflow, they are also volumes of the pods of jobs. In the
	// pods, the prefix extra- is added to their names. If the content of a mounted Secret or ConfigMap changes, the files
	// change, but the pods are not restarted.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Volumes []Volume `json:"volumes,omitempty"`

	// volumeMounts mount entries of volumes into the server container. In an MLflow, they apply to the containers of jobs
	// too.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=mountPath
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// Volume is a volume of a type that the Pod Security Standard restricted allows. Exactly one type must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.projected), has(self.persistentVolumeClaim), has(self.emptyDir), has(self.csi)].filter(one, one).size() == 1",message="a volume must have exactly one of configMap, secret, projected, persistentVolumeClaim, emptyDir and csi"
type Volume struct {
	// name is the name of the volume. Entries of volumeMounts refer to it.
	// +required
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// configMap mounts the keys of a ConfigMap as files.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// secret mounts the keys of a Secret as files.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// projected mounts several sources, such as Secrets and ConfigMaps, into one directory.
	// +optional
	Projected *corev1.ProjectedVolumeSource `json:"projected,omitempty"`

	// persistentVolumeClaim mounts an existing PersistentVolumeClaim of the same namespace. If pods on different nodes use
	// the claim, its access mode must be ReadWriteMany or ReadOnlyMany.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// emptyDir is an empty directory that is created with a pod and deleted with it.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// csi is an ephemeral volume that a CSI driver provides for each pod, for example with the content of an external
	// secret store.
	// +optional
	CSI *corev1.CSIVolumeSource `json:"csi,omitempty"`
}

// Scale contains the status fields that the scale subresource uses.
type Scale struct {
	// replicas is the number of existing server pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// selector is the label selector of the server pods, in string form. Autoscalers use it.
	// +optional
	Selector string `json:"selector,omitempty"`
}
