package server

import corev1 "k8s.io/api/core/v1"

// Pods says how many pods a server has and where they run, in the fields that Deployments and pods have for it.
type Pods struct {
	// replicas is the number of pods of the server. More than one get a PodDisruptionBudget, by which one pod is evicted at a time. A
	// database that is run for the server has one pod always.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// imagePullSecrets name Secrets in the same namespace with which the images of all pods are pulled, those of the database included.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// nodeSelector restricts all pods to nodes with these labels, those of the database included.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of all pods, those of the database included.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods of the server.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	More `json:",inline"`
}

// More is what MLflow shares with the other kinds: the rest of Pods it has by its own definitions.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name))",message="each volumeMounts entry must name an entry of volumes: add the volume, or correct the name"
type More struct {
	// topologySpreadConstraints spread the pods of the server over nodes or zones. One without a labelSelector counts the pods of the server.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew > 0 && c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="each topologySpreadConstraints entry must have a maxSkew above zero, and DoNotSchedule or ScheduleAnyway in whenUnsatisfiable"
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName names the PriorityClass of all pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')`,message="priorityClassName must be the name of a PriorityClass: lowercase letters, digits, - and ., with a letter or digit at both ends"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// volumes that can be mounted beside those of the operator. In the pods their names begin with extra-.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Volumes []Volume `json:"volumes,omitempty"`

	// volumeMounts mount entries of volumes into the container of the server.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=mountPath
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// Volume is a volume of a kind that the Pod Security level restricted allows.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.projected), has(self.persistentVolumeClaim), has(self.emptyDir), has(self.csi)].filter(one, one).size() == 1",message="a volume must have exactly one of configMap, secret, projected, persistentVolumeClaim, emptyDir and csi"
type Volume struct {
	// name by which volumeMounts refer to the volume.
	// +required
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// configMap shows the keys of a ConfigMap as files.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// secret shows the keys of a Secret as files.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// projected shows several sources in one directory.
	// +optional
	Projected *corev1.ProjectedVolumeSource `json:"projected,omitempty"`

	// persistentVolumeClaim is an existing claim in the same namespace. Several pods on different nodes need one that is ReadWriteMany
	// or ReadOnlyMany.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// emptyDir is empty when a pod starts, and goes with it.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// csi is a volume of a driver that makes it for the pod, such as that of an external store of secrets.
	// +optional
	CSI *corev1.CSIVolumeSource `json:"csi,omitempty"`
}

// Scale is what the scale subresource reads of the status.
type Scale struct {
	// replicas is the number of pods that the server has.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// selector finds these pods by their labels; autoscalers read it.
	// +optional
	Selector string `json:"selector,omitempty"`
}
