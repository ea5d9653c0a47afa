package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// SingletonName is the only valid name of an MLflow object.
const SingletonName = "mlflow"

// DefaultServiceAccount is the ServiceAccount of servers if spec.serviceAccountName is empty. The operator creates it.
const DefaultServiceAccount = "mlflow-sa"

// MLflow describes the MLflow server of a cluster: its stores, its pods and its scheduled jobs. A cluster has one
// MLflow object, and its name is mlflow. The operator creates the server in its own namespace, or in the namespace
// given by its --namespace flag.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mlf,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=".status.conditions[?(@.type=='Progressing')].status"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=".status.url"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'mlflow'",message="MLflow resource name must be 'mlflow'"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="MLflow resource name must be at most 40 characters"
type MLflow struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the MLflow server. A change that affects the pod template, such as another image
	// or environment variable, restarts the server. Pods are replaced one at a time. If they mount the volume of
	// spec.storage, all old pods are stopped first, and the server is unavailable until a new pod is ready.
	// +required
	Spec MLflowSpec `json:"spec"`

	// status is the most recently observed state of the MLflow server.
	// +optional
	Status MLflowStatus `json:"status,omitempty"`
}

// ConditionsRef returns a pointer to the conditions in the status.
func (m *MLflow) ConditionsRef() *[]metav1.Condition { return &m.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the current generation.
func (m *MLflow) ObserveGeneration() { m.Status.ObservedGeneration = m.Generation }

// MLflowList is a list of MLflow objects.
//
// +kubebuilder:object:root=true
type MLflowList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MLflow `json:"items"`
}

// MLflowSpec defines the desired state of the MLflow server: its image, stores, artifacts and pods.
//
// +kubebuilder:validation:XValidation:rule="has(self.defaultArtifactRoot) || (has(self.serveArtifacts) && self.serveArtifacts) || (has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled)",message="defaultArtifactRoot must be set when neither serveArtifacts nor artifactsServer.enabled is true"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultArtifactRoot) || !(self.defaultArtifactRoot.startsWith('/') || self.defaultArtifactRoot.startsWith('.') || size(self.defaultArtifactRoot) > 0 && !self.defaultArtifactRoot.contains(':') || self.defaultArtifactRoot.startsWith('file:') || self.defaultArtifactRoot.startsWith('FILE:')) || (has(self.serveArtifacts) && self.serveArtifacts) || (has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || (oldSelf.hasValue() && !(has(oldSelf.value().serveArtifacts) && oldSelf.value().serveArtifacts) && !(has(oldSelf.value().artifactsServer) && has(oldSelf.value().artifactsServer.enabled) && oldSelf.value().artifactsServer.enabled) && has(oldSelf.value().defaultArtifactRoot) && oldSelf.value().defaultArtifactRoot == self.defaultArtifactRoot)",optionalOldSelf=true,message="serveArtifacts or artifactsServer must be enabled when defaultArtifactRoot uses file-based storage"
// +kubebuilder:validation:XValidation:rule="(has(self.backendStoreUri) && size(self.backendStoreUri) > 0) || (has(self.backendStoreUriFrom) && has(self.backendStoreUriFrom.name) && size(self.backendStoreUriFrom.name) > 0 && size(self.backendStoreUriFrom.key) > 0)",message="backendStoreUri or backendStoreUriFrom must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.backendStoreUri) && has(self.backendStoreUriFrom))",message="backendStoreUri and backendStoreUriFrom are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="!(has(self.readReplicaBackendStoreUri) && has(self.readReplicaBackendStoreUriFrom))",message="readReplicaBackendStoreUri and readReplicaBackendStoreUriFrom are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="!has(self.readReplicaBackendStoreUriFrom) || (has(self.readReplicaBackendStoreUriFrom.name) && size(self.readReplicaBackendStoreUriFrom.name) > 0 && size(self.readReplicaBackendStoreUriFrom.key) > 0)",message="readReplicaBackendStoreUriFrom.name and readReplicaBackendStoreUriFrom.key must be non-empty"
// +kubebuilder:validation:XValidation:rule="!(has(self.registryStoreUri) && has(self.registryStoreUriFrom))",message="registryStoreUri and registryStoreUriFrom are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="!has(self.registryStoreUriFrom) || (has(self.registryStoreUriFrom.name) && size(self.registryStoreUriFrom.name) > 0 && size(self.registryStoreUriFrom.key) > 0)",message="registryStoreUriFrom.name and registryStoreUriFrom.key must be non-empty"
// +kubebuilder:validation:XValidation:rule="!has(self.backendStoreUri) || ['sqlite://', 'sqlite+', 'postgresql://', 'postgresql+', 'mysql://', 'mysql+'].exists(p, self.backendStoreUri.startsWith(p))",message="backendStoreUri must use a supported SQL metadata store URI scheme: sqlite, postgresql or mysql"
// +kubebuilder:validation:XValidation:rule="!has(self.readReplicaBackendStoreUri) || ['sqlite://', 'sqlite+', 'postgresql://', 'postgresql+', 'mysql://', 'mysql+'].exists(p, self.readReplicaBackendStoreUri.startsWith(p))",message="readReplicaBackendStoreUri must use a supported SQL metadata store URI scheme: sqlite, postgresql or mysql"
// +kubebuilder:validation:XValidation:rule="!has(self.registryStoreUri) || ['sqlite://', 'sqlite+', 'postgresql://', 'postgresql+', 'mysql://', 'mysql+'].exists(p, self.registryStoreUri.startsWith(p))",message="registryStoreUri must use a supported SQL metadata store URI scheme: sqlite, postgresql or mysql"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.backendStoreUri) || !(self.backendStoreUri.startsWith('sqlite://') || self.backendStoreUri.startsWith('file://'))",message="storage must be configured when using file-based backend store"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.readReplicaBackendStoreUri) || !self.readReplicaBackendStoreUri.startsWith('sqlite://')",message="storage must be configured when using a file-based read-replica backend store"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.registryStoreUri) || !(self.registryStoreUri.startsWith('sqlite://') || self.registryStoreUri.startsWith('file://'))",message="storage must be configured when using file-based registry store"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.artifactsDestination) || !(self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || size(self.artifactsDestination) > 0 && !self.artifactsDestination.contains(':') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')) || (oldSelf.hasValue() && !has(oldSelf.value().storage) && has(oldSelf.value().artifactsDestination) && oldSelf.value().artifactsDestination == self.artifactsDestination)",optionalOldSelf=true,message="storage must be configured when artifactsDestination uses file-based storage"
// +kubebuilder:validation:XValidation:rule="!has(self.artifactsDestination) || !(self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || size(self.artifactsDestination) > 0 && !self.artifactsDestination.contains(':') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')) || (has(self.serveArtifacts) && self.serveArtifacts) || (has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || (oldSelf.hasValue() && !(has(oldSelf.value().serveArtifacts) && oldSelf.value().serveArtifacts) && !(has(oldSelf.value().artifactsServer) && has(oldSelf.value().artifactsServer.enabled) && oldSelf.value().artifactsServer.enabled) && has(oldSelf.value().artifactsDestination) && oldSelf.value().artifactsDestination == self.artifactsDestination)",optionalOldSelf=true,message="serveArtifacts or artifactsServer must be enabled when artifactsDestination uses file-based storage"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.serveArtifacts) || !self.serveArtifacts || (has(self.artifactsDestination) && size(self.artifactsDestination) > 0) || (oldSelf.hasValue() && !has(oldSelf.value().storage) && has(oldSelf.value().serveArtifacts) && oldSelf.value().serveArtifacts && (!has(oldSelf.value().artifactsDestination) || size(oldSelf.value().artifactsDestination) == 0))",optionalOldSelf=true,message="storage must be configured when serveArtifacts is true and artifactsDestination is not set, because artifacts are then kept in file:///mlflow/artifacts: add spec.storage, or set spec.artifactsDestination to a remote location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && self.replicas > 1 && ((has(self.storage) && (((has(self.backendStoreUriFrom) || has(self.registryStoreUriFrom) || has(self.readReplicaBackendStoreUriFrom)) && !(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled)) || (has(self.serveArtifacts) && self.serveArtifacts && (!has(self.artifactsDestination) || size(self.artifactsDestination) == 0 || (self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')))) || (has(self.defaultArtifactRoot) && (self.defaultArtifactRoot.startsWith('/') || self.defaultArtifactRoot.startsWith('.') || self.defaultArtifactRoot.startsWith('file:') || self.defaultArtifactRoot.startsWith('FILE:'))) || (has(self.traceArchival) && has(self.traceArchival.enabled) && self.traceArchival.enabled && has(self.traceArchival.location) && (self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:'))))) || (has(self.backendStoreUri) && self.backendStoreUri.startsWith('sqlite')) || (has(self.registryStoreUri) && self.registryStoreUri.startsWith('sqlite')) || (has(self.readReplicaBackendStoreUri) && self.readReplicaBackendStoreUri.startsWith('sqlite'))) && !(has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))) || (oldSelf.hasValue() && has(oldSelf.value().replicas) && oldSelf.value().replicas > 1 && ((has(oldSelf.value().storage) && (((has(oldSelf.value().backendStoreUriFrom) || has(oldSelf.value().registryStoreUriFrom) || has(oldSelf.value().readReplicaBackendStoreUriFrom)) && !(has(oldSelf.value().artifactsServer) && has(oldSelf.value().artifactsServer.enabled) && oldSelf.value().artifactsServer.enabled)) || (has(oldSelf.value().serveArtifacts) && oldSelf.value().serveArtifacts && (!has(oldSelf.value().artifactsDestination) || size(oldSelf.value().artifactsDestination) == 0 || (oldSelf.value().artifactsDestination.startsWith('/') || oldSelf.value().artifactsDestination.startsWith('.') || oldSelf.value().artifactsDestination.startsWith('file:') || oldSelf.value().artifactsDestination.startsWith('FILE:')))) || (has(oldSelf.value().defaultArtifactRoot) && (oldSelf.value().defaultArtifactRoot.startsWith('/') || oldSelf.value().defaultArtifactRoot.startsWith('.') || oldSelf.value().defaultArtifactRoot.startsWith('file:') || oldSelf.value().defaultArtifactRoot.startsWith('FILE:'))) || (has(oldSelf.value().traceArchival) && has(oldSelf.value().traceArchival.enabled) && oldSelf.value().traceArchival.enabled && has(oldSelf.value().traceArchival.location) && (oldSelf.value().traceArchival.location.startsWith('/') || oldSelf.value().traceArchival.location.startsWith('.') || oldSelf.value().traceArchival.location.startsWith('file:') || oldSelf.value().traceArchival.location.startsWith('FILE:'))))) || (has(oldSelf.value().backendStoreUri) && oldSelf.value().backendStoreUri.startsWith('sqlite')) || (has(oldSelf.value().registryStoreUri) && oldSelf.value().registryStoreUri.startsWith('sqlite')) || (has(oldSelf.value().readReplicaBackendStoreUri) && oldSelf.value().readReplicaBackendStoreUri.startsWith('sqlite'))) && !(has(oldSelf.value().storage) && has(oldSelf.value().storage.accessModes) && ((size(oldSelf.value().storage.accessModes) > 0 && oldSelf.value().storage.accessModes[0] == 'ReadWriteMany') || (size(oldSelf.value().storage.accessModes) > 1 && oldSelf.value().storage.accessModes[1] == 'ReadWriteMany') || (size(oldSelf.value().storage.accessModes) > 2 && oldSelf.value().storage.accessModes[2] == 'ReadWriteMany'))))",optionalOldSelf=true,message="replicas must be 1 unless storage.accessModes contains ReadWriteMany, because other volumes are attached to one node at a time, and only the volume can share an SQLite file: set spec.replicas to 1, request ReadWriteMany, or keep data and artifacts elsewhere; with spec.storage, a store URI in a Secret counts as a file"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicyEgressRules) || self.networkPolicyEgressRules.all(r, (has(r.ports) && size(r.ports) > 0) || (has(r.to) && size(r.to) > 0))",message="each networkPolicyEgressRules entry must specify at least one port or one destination"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicyAdditionalEgressRules) || self.networkPolicyAdditionalEgressRules.all(r, (has(r.ports) && size(r.ports) > 0) || (has(r.to) && size(r.to) > 0))",message="each networkPolicyAdditionalEgressRules entry must specify at least one port or one destination"
// +kubebuilder:validation:XValidation:rule="!has(self.resourceClaims) || self.resourceClaims.all(c, (has(c.resourceClaimName) && size(c.resourceClaimName) > 0) != (has(c.resourceClaimTemplateName) && size(c.resourceClaimTemplateName) > 0))",message="each resourceClaims entry must set exactly one non-empty value: resourceClaimName or resourceClaimTemplateName"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.traceArchival) || !has(self.traceArchival.location) || !(self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || size(self.traceArchival.location) > 0 && !self.traceArchival.location.contains(':') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:')) || (oldSelf.hasValue() && !has(oldSelf.value().storage) && has(oldSelf.value().traceArchival) && has(oldSelf.value().traceArchival.location) && oldSelf.value().traceArchival.location == self.traceArchival.location)",optionalOldSelf=true,message="storage must be configured when traceArchival.location uses file-based storage"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !(has(self.serveArtifacts) && self.serveArtifacts)",message="serveArtifacts and artifactsServer.enabled are mutually exclusive, because one server answers for artifacts: set serveArtifacts to false, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.defaultArtifactRoot) || size(self.defaultArtifactRoot) == 0",message="defaultArtifactRoot and artifactsServer.enabled are mutually exclusive, because the root is then the public URL of the artifact server: remove defaultArtifactRoot, or set artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || (has(self.artifactsDestination) && size(self.artifactsDestination) > 0)",message="artifactsDestination must be set when artifactsServer.enabled is true: write a location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.artifactsServer.replicas) || self.artifactsServer.replicas <= 1 || !has(self.artifactsDestination) || !(self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || size(self.artifactsDestination) > 0 && !self.artifactsDestination.contains(':') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')) || (has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))",message="artifactsServer.replicas must be 1 with artifactsDestination in files unless storage.accessModes contains ReadWriteMany: set artifactsServer.replicas to 1, ask for ReadWriteMany, or set artifactsDestination to a remote location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.traceArchival) || !has(self.traceArchival.enabled) || !self.traceArchival.enabled || !has(self.traceArchival.location) || !(self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || size(self.traceArchival.location) > 0 && !self.traceArchival.location.contains(':') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:')) || (has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))",message="storage.accessModes must contain ReadWriteMany when artifactsServer.enabled is true and traceArchival.location is in files, because the server and the artifact server both read the archive: request ReadWriteMany, or set traceArchival.location to a remote location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.backendStoreUri) || !(self.backendStoreUri.startsWith('sqlite://') || self.backendStoreUri.startsWith('sqlite+'))",message="backendStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set backendStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.registryStoreUri) || !(self.registryStoreUri.startsWith('sqlite://') || self.registryStoreUri.startsWith('sqlite+'))",message="registryStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set registryStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.readReplicaBackendStoreUri) || !(self.readReplicaBackendStoreUri.startsWith('sqlite://') || self.readReplicaBackendStoreUri.startsWith('sqlite+'))",message="readReplicaBackendStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set readReplicaBackendStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
type MLflowSpec struct {
	// image selects the MLflow image and its pull policy. Defaults to the image that is configured for the operator.
	// +optional
	Image *ImageConfig `json:"image,omitempty"`

	// replicas is the number of server pods. Defaults to 1. More than one requires external databases and an object store,
	// or a volume with the access mode ReadWriteMany. If greater than 1, a PodDisruptionBudget allows one pod to be
	// evicted at a time. Scaling does not restart running pods, unless migration.mode is Always or a store might be an
	// SQLite file on the volume.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// migration controls the migration of the database schema. The server is stopped during a migration.
	// +optional
	// +kubebuilder:default={mode: Automatic}
	Migration *MigrationConfig `json:"migration,omitempty"`

	// resources are the compute resources of the server container and of the migration container. Defaults to requests of
	// 1 CPU and 2Gi of memory and limits of 4 CPU and 3Gi of memory. If you set some of these values, the defaults apply
	// to the others, except for a default request above your limit and a default limit below your request. An empty object
	// ({}) sets no requests and no limits. A change restarts the server pods.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// serviceAccountName is the name of the ServiceAccount of the server and migration pods. Defaults to mlflow-sa. The
	// operator creates it; a ServiceAccount that already exists is used unchanged. A change restarts the server pods.
	// +optional
	// +kubebuilder:default=mlflow-sa
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || (size(self) <= 253 && self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'))`,message="serviceAccountName must be the name of a ServiceAccount: at most 253 lower-case letters, digits, '-' and '.', such as mlflow-sa"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// serviceAccountAnnotations are added to the ServiceAccounts that the operator creates for the server, garbage
	// collection and trace archival. Use them to bind the ServiceAccounts to an identity of a cloud provider, for example
	// with eks.amazonaws.com/role-arn. ServiceAccounts that already existed are not annotated. A change does not restart
	// pods.
	// +optional
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`

	// imagePullSecrets are references to Secrets in the namespace of the server that contain the registry credentials for
	// the images of all pods. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// storage describes the PersistentVolumeClaim mlflow-pvc, which the operator creates. Defaults to 2Gi, ReadWriteOnce
	// and the default StorageClass. The volume is mounted at /mlflow into the pods that store data in files or might do
	// so. A store URI in a Secret counts as a file, because the operator does not read it. Of an existing claim, the
	// operator changes resources.requests.storage, which expands the volume if its StorageClass allows expansion. The
	// condition StorageInSync reports other differences. To use a volume that an administrator created, set
	// storageClassName to an empty string together with volumeName or selector.
	// +optional
	Storage *corev1.PersistentVolumeClaimSpec `json:"storage,omitempty"`

	// storageRetentionPolicy determines whether the PersistentVolumeClaim outlives the MLflow object. With Retain, the
	// default, the claim is kept, and the next MLflow object uses it again. With Delete, the claim and all data on it
	// are deleted.
	// +optional
	StorageRetentionPolicy StorageRetentionPolicy `json:"storageRetentionPolicy,omitempty"`

	// temporaryStorage configures the volume for temporary files, which is mounted at /tmp into all pods.
	// +optional
	TemporaryStorage *TemporaryStorageConfig `json:"temporaryStorage,omitempty"`

	// backendStoreUri is the URI of the database that stores experiments, runs and traces. The scheme is sqlite,
	// postgresql or mysql, for example postgresql://db.example.com/mlflow or sqlite:////mlflow/mlflow.db. SQLite requires
	// spec.storage. If the URI contains a password, use backendStoreUriFrom instead. A different URI starts a migration of
	// its database.
	// +optional
	BackendStoreURI string `json:"backendStoreUri,omitempty"`

	// backendStoreUriFrom selects a key of a Secret in the namespace of the server that contains the backend store URI. If
	// the content of the key changes, the server pods are restarted, but the database is not migrated.
	// +optional
	BackendStoreURIFrom *corev1.SecretKeySelector `json:"backendStoreUriFrom,omitempty"`

	// readReplicaBackendStoreUri is the URI of a read-only replica of the backend store for queries. The replica is
	// never migrated. If the URI contains a password, use readReplicaBackendStoreUriFrom instead. A change restarts the
	// server pods.
	// +optional
	ReadReplicaBackendStoreURI string `json:"readReplicaBackendStoreUri,omitempty"`

	// readReplicaBackendStoreUriFrom selects a key of a Secret in the namespace of the server that contains the URI of the
	// read replica.
	// +optional
	ReadReplicaBackendStoreURIFrom *corev1.SecretKeySelector `json:"readReplicaBackendStoreUriFrom,omitempty"`

	// registryStoreUri is the URI of the database that stores registered models. Defaults to the backend store. If the URI
	// contains a password, use registryStoreUriFrom instead. A different URI starts a migration of its database.
	// +optional
	RegistryStoreURI string `json:"registryStoreUri,omitempty"`

	// registryStoreUriFrom selects a key of a Secret in the namespace of the server that contains the registry store URI.
	// +optional
	RegistryStoreURIFrom *corev1.SecretKeySelector `json:"registryStoreUriFrom,omitempty"`

	// artifactsDestination is the location in which the server stores the artifacts that it serves, for example
	// s3://bucket/path. Defaults to file:///mlflow/artifacts, which requires spec.storage. It has an effect only if
	// serveArtifacts or artifactsServer.enabled is true. A change restarts the server pods.
	// +optional
	ArtifactsDestination string `json:"artifactsDestination,omitempty"`

	// defaultArtifactRoot is the location in which clients store the artifacts of new experiments, for example
	// s3://bucket/path. It is required unless serveArtifacts or artifactsServer.enabled is true. A change restarts the
	// server pods.
	// +optional
	DefaultArtifactRoot string `json:"defaultArtifactRoot,omitempty"`

	// serveArtifacts lets clients upload and download artifacts through the server, so that they need no credentials for
	// the artifact location. Defaults to false. A change restarts the server pods.
	// +optional
	// +kubebuilder:default=false
	ServeArtifacts bool `json:"serveArtifacts,omitempty"`

	// artifactsServer runs uploads and downloads of artifacts in separate pods, so that they do not slow down tracking. It
	// requires the HTTPRoute API, an exposure other than ingress, an external URL, artifactsDestination, and stores in
	// PostgreSQL or MySQL.
	// +optional
	// +nullable
	ArtifactsServer *ArtifactsServerConfig `json:"artifactsServer,omitempty"`

	// workers is the number of server processes in each server pod. Defaults to 1. A change restarts the server pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`

	// extraAllowedOrigins are additional origins from which browsers are allowed to call the server (CORS), for example
	// https://notebooks.example.com. The names of the Service, localhost and the external URL are always allowed. Empty
	// entries and entries that contain a comma are ignored. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ExtraAllowedOrigins []string `json:"extraAllowedOrigins,omitempty"`

	// allowedHosts restricts the values of the Host header that the server accepts, to protect against DNS rebinding.
	// If the list is empty, every value is accepted. Otherwise, the server accepts the names of its Service, localhost,
	// the host of the external URL, and the entries of this list. Write an entry as clients send it: with the port, unless
	// the port is 443. Wildcards are supported, for example *.example.com. An entry that consists of an asterisk allows
	// every host. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	AllowedHosts []AllowedHost `json:"allowedHosts,omitempty"`

	// workspaceLabelSelector selects the namespaces that are MLflow workspaces. An empty or missing selector excludes no
	// namespace. A change restarts the server pods.
	// +optional
	WorkspaceLabelSelector *metav1.LabelSelector `json:"workspaceLabelSelector,omitempty"`

	// env lists additional environment variables for the containers of the server, migration, garbage collection and trace
	// archival. An entry overrides the variable of the same name that the operator sets. If several entries have the same
	// name, the last one applies. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE')",message="MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_SERVER_ENABLE_JOB_EXECUTION')",message="MLFLOW_SERVER_ENABLE_JOB_EXECUTION is not allowed; the operator manages job execution lifecycle"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_K8S_AUTH_AUTHORIZATION_MODE')",message="MLFLOW_K8S_AUTH_AUTHORIZATION_MODE is not allowed; every request is authorized with a SelfSubjectAccessReview"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_BACKEND_STORE_URI')",message="MLFLOW_BACKEND_STORE_URI is not allowed; set spec.backendStoreUri or spec.backendStoreUriFrom instead"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_ENABLE_WORKSPACES')",message="MLFLOW_ENABLE_WORKSPACES is not allowed; workspaces are always on, because requests are authorized in them"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_WORKSPACE_STORE_URI')",message="MLFLOW_WORKSPACE_STORE_URI is not allowed; workspaces are the namespaces of the cluster, limit them with spec.workspaceLabelSelector"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_SERVER_ALLOWED_HOSTS')",message="MLFLOW_SERVER_ALLOWED_HOSTS is not allowed; set spec.allowedHosts instead"
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'MLFLOW_TRACKING_INSECURE_TLS')",message="MLFLOW_TRACKING_INSECURE_TLS is not allowed; the certificate of the server is always verified, set spec.caBundleConfigMap to trust another authority"
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom lists ConfigMaps and Secrets whose keys become environment variables of the server, migration, garbage
	// collection and trace archival. If their content changes, the server pods are restarted.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// podLabels are additional labels of the server and migration pods. The labels app, component and
	// app.kubernetes.io/instance are reserved for the operator, because Services and NetworkPolicies select the pods by
	// them. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] == 'mlflow' || (k != 'app' && k != 'component' && k != 'app.kubernetes.io/instance'))",message="podLabels must not set app, component or app.kubernetes.io/instance: the Deployment, Service and NetworkPolicy select the pods by them; remove these keys or choose others"
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// podAnnotations are additional annotations of the server pods. A change restarts the server pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// podSecurityContext is the security context of all pods. It replaces the default completely. The default sets
	// runAsNonRoot to true and the seccomp profile to RuntimeDefault. With spec.storage, on clusters other than OpenShift,
	// it also sets fsGroup to 1001. A change restarts the server pods.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// securityContext is the security context of all containers. It replaces the default completely. The default forbids
	// privilege escalation, makes the root file system read-only and drops all capabilities. A change restarts the server
	// pods.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// nodeSelector restricts all pods, including those of jobs, to nodes with these labels. A change restarts the server
	// pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the tolerations of all pods, including those of jobs. A change restarts the server pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity is the affinity of all pods, including those of jobs. Garbage collection and trace archival run on the node
	// of the server if they mount its volume, unless the volume is ReadWriteMany or this field contains podAffinity or
	// podAntiAffinity. A change restarts the server pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	server.CommonPods `json:",inline"`

	// resourceClaims are the claims of the server pods for dynamic resource allocation. The server container uses them
	// through resources.claims. The pods of the artifact server have their own list. A change restarts the server pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// caBundleConfigMap is a reference to a ConfigMap with additional certificate authorities that all pods trust. While
	// the ConfigMap does not exist, the operator waits for it, and the condition Available is False. If the field is set,
	// connections to PostgreSQL use sslmode verify-full, unless the store URI has an sslmode or spec.env sets PGSSLMODE.
	// +optional
	CABundleConfigMap *CABundleConfigMapRef `json:"caBundleConfigMap,omitempty"`

	// networkPolicyEgressRules replace the default egress rules of the NetworkPolicy of the server, garbage collection
	// and trace archival. The default allows DNS, ports 443, 6443 and 8443, the usual ports of
	// PostgreSQL, MySQL and object stores, and the ports in the URIs of the spec. If you set this field, include a rule
	// for DNS. The rules also replace the database ports in the NetworkPolicy of the database migration. A change does not
	// restart pods.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	NetworkPolicyEgressRules []networkingv1.NetworkPolicyEgressRule `json:"networkPolicyEgressRules,omitempty"`

	// networkPolicyAdditionalEgressRules are egress rules that are added to the rules of the server and of the database
	// migration. Use them for a port that the operator does not know, such as the port of a store URI in a Secret. A
	// change does not restart pods.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	NetworkPolicyAdditionalEgressRules []networkingv1.NetworkPolicyEgressRule `json:"networkPolicyAdditionalEgressRules,omitempty"`

	// networkPolicyIngressFrom lists the pods, namespaces and IP blocks that are allowed to connect to the server. If the
	// list is empty, all pods of the cluster are allowed. The server authorizes every request in either case. Include the
	// gateway, Prometheus and, for garbage collection, the namespace of the server. A change does not restart pods.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.podSelector) || has(p.namespaceSelector) || has(p.ipBlock))",message="each networkPolicyIngressFrom entry must name a peer: set podSelector, namespaceSelector or ipBlock"
	// +listType=atomic
	NetworkPolicyIngressFrom []networkingv1.NetworkPolicyPeer `json:"networkPolicyIngressFrom,omitempty"`

	// tls configures the source of the serving certificate.
	// +optional
	// +nullable
	TLS *TLSConfig `json:"tls,omitempty"`

	// garbageCollection, if set, permanently removes deleted runs and experiments, including their artifacts, on a
	// schedule. It runs in the CronJob mlflow-gc. A change does not restart the server pods.
	// +optional
	GarbageCollection *GarbageCollectionConfig `json:"garbageCollection,omitempty"`

	// traceArchival moves old traces from the database to an archive on a schedule. It runs in the CronJob
	// mlflow-trace-archival. A change restarts the server pods, but a change of schedule or resources alone does not.
	// +optional
	// +nullable
	TraceArchival *TraceArchivalConfig `json:"traceArchival,omitempty"`
}

// AllowedHost is the value of a Host header, as MLflow compares it.
//
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^,\s]+$')`,message="an entry of allowedHosts must not be empty and must not contain commas or whitespace: write one host name for each entry, such as mlflow.example.com or mlflow.example.com:8443"
type AllowedHost string

// TLSMode is the source of the serving certificate.
//
// +kubebuilder:validation:Enum=Automatic;Provided
type TLSMode string

const (
	// TLSAutomatic uses a certificate that OpenShift or the operator issues.
	TLSAutomatic TLSMode = "Automatic"
	// TLSProvided uses a certificate that the user provides.
	TLSProvided TLSMode = "Provided"
)

// TLSConfig configures the source of the serving certificate.
type TLSConfig struct {
	// mode is Automatic or Provided. Defaults to Automatic. With Automatic, OpenShift issues the certificate in the Secret
	// mlflow-tls. On other clusters, the operator issues and renews it, unless another client created a Secret of that
	// name. With Provided, the operator issues no certificate and waits for the Secret mlflow-tls of type
	// kubernetes.io/tls. A certificate that the operator issued before stays in use until you replace it. The mode also
	// applies to the Secret mlflow-artifacts-tls of an artifact server.
	// +optional
	// +kubebuilder:default=Automatic
	Mode TLSMode `json:"mode,omitempty"`
}

// ArtifactsServerConfig configures the artifact server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.resourceClaims) || self.resourceClaims.all(c, (has(c.resourceClaimName) && size(c.resourceClaimName) > 0) != (has(c.resourceClaimTemplateName) && size(c.resourceClaimTemplateName) > 0))",message="each artifactsServer.resourceClaims entry must set exactly one non-empty value: resourceClaimName or resourceClaimTemplateName"
type ArtifactsServerConfig struct {
	// enabled runs the artifact server. Defaults to false. If true, the tracking server serves no artifacts, and new
	// experiments store artifacts below status.artifactsUrl. Changing this field interrupts uploads and downloads until both
	// Deployments are rolled out.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// replicas is the number of pods of the artifact server. Defaults to 1. Scaling does not restart running pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// workers is the number of server processes in each pod of the artifact server. Defaults to 1. A change restarts these
	// pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`

	// resources are the compute resources of the artifact server container. Defaults to the requests and limits of
	// spec.resources, without its claims. A change restarts the pods of the artifact server.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// resourceClaims are the claims of the artifact server pods for dynamic resource allocation. The container uses them
	// through artifactsServer.resources.claims. The entries of spec.resourceClaims do not apply to these pods. A change
	// restarts these pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`
}

// StorageRetentionPolicy determines what happens to the stored data when the MLflow object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type StorageRetentionPolicy string

const (
	// StorageRetain keeps the PersistentVolumeClaim.
	StorageRetain StorageRetentionPolicy = "Retain"
	// StorageDelete deletes the PersistentVolumeClaim with the MLflow object.
	StorageDelete StorageRetentionPolicy = "Delete"
)

// ImageConfig selects the MLflow image.
type ImageConfig struct {
	// image is a full image reference with a tag or digest, for example quay.io/example/mlflow:v3. It requires MLflow
	// 3.14.0 or later. The operator checks a different image before it changes the server. If the image needs a newer
	// database schema, the operator stops the server and migrates the database.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(\S+)?$') && !self.contains('?')`,message="image must be an image reference without whitespace, such as quay.io/example/mlflow:v3"
	Image string `json:"image,omitempty"`

	// imagePullPolicy is the pull policy of all containers that run the image. If it is empty, the default of Kubernetes
	// applies: Always for the tag latest or no tag, and IfNotPresent for other tags and for digests.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// MigrationMode determines when the database is migrated.
//
// +kubebuilder:validation:Enum=Automatic;Always
type MigrationMode string

const (
	// MigrateAutomatic migrates the database at the first start, for a new store, and for an image with a newer schema.
	MigrateAutomatic MigrationMode = "Automatic"
	// MigrateAlways migrates the database once for each generation of the object.
	MigrateAlways MigrationMode = "Always"
)

// MigrationConfig controls database migrations.
type MigrationConfig struct {
	// mode is Automatic or Always. Defaults to Automatic. With Automatic, the database is migrated at the first start,
	// when the stores change, and when an image needs a newer schema. With Always, it is migrated after every change of
	// the spec, including a change of replicas.
	// +optional
	// +kubebuilder:default=Automatic
	Mode MigrationMode `json:"mode,omitempty"`

	// ttlSecondsAfterFinished is the time, in seconds, for which a finished migration Job is kept. Defaults to 86400 (one
	// day).
	// +optional
	// +kubebuilder:validation:Minimum=3600
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is the maximum duration of a migration Job, in seconds. A Job that exceeds it is terminated,
	// and the migration is retried. If it is not set, the duration is not limited. Set it with care: migrating large
	// tables can take hours, and MySQL cannot roll back an interrupted change of a table.
	// +optional
	// +kubebuilder:validation:Minimum=60
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// TemporaryStorageConfig configures the volume for temporary files.
type TemporaryStorageConfig struct {
	// sizeLimit is the size limit of the volume for temporary files in each pod. Defaults to 1Gi. A change restarts the
	// server pods.
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// CABundleConfigMapRef is a reference to a ConfigMap with certificate authorities.
type CABundleConfigMapRef struct {
	// name is the name of a ConfigMap in the namespace of the server. The certificates in all keys that end in .crt or
	// .pem are trusted.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// CronSchedule is a schedule in the format of a Kubernetes CronJob: five fields or a macro.
//
// Each field has its own rule, which keeps the cost of a rule below the limit of the API server: it must assume that
// the string has any length. A schedule that passes the rules and that Kubernetes rejects, such as a range in reverse
// order, fails when the CronJob is written. The condition ScheduledJobsReady reports it. Kubernetes ignores stray
// commas, a third digit, and characters after *-; the rules reject them.
//
// +kubebuilder:validation:XValidation:rule=`!self.contains('TZ')`,message="schedule must not name a time zone, because the times of a CronJob are those of the cluster: remove TZ= or CRON_TZ="
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'^\s*(\S+\s+){4}\S+\s*$')`,message="schedule must have five fields (minute, hour, day of the month, month and day of the week), such as '15 3 * * 0', or be a macro such as @daily: add or remove fields"
// +kubebuilder:validation:XValidation:rule=`!self.startsWith('@') || self.matches(r'^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [-+]?(0|([\d.]*\d[\d.]*([nuµμm]?s|m|h))+))$')`,message="schedule may start with @ only as @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or '@every' with a duration such as '@every 6h': write one of these"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || !self.matches(r'/0*([,\s]|$)')`,message="schedule has a step that is not a positive number: write a step such as */15"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(([*?]|((0*[0-5]?\d)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the minute in schedule must be 0-59, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){1}(([*?]|((0*(2[0-3]|1?\d))-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the hour in schedule must be 0-23, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){2}(([*?]|((3[01]|[12]\d|0*[1-9])-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the day of the month in schedule must be 1-31, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){3}(([*?]|((1[0-2]|0*[1-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the month in schedule must be 1-12 or jan-dec, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){4}(([*?]|((0*[0-6]|sun|mon|tue|wed|thu|fri|sat)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the day of the week in schedule must be 0-6 or sun-sat, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
type CronSchedule string

// GarbageCollectionConfig configures the permanent removal of deleted runs and experiments.
type GarbageCollectionConfig struct {
	// schedule is a cron expression, for example "15 3 * * 0", or a macro such as @daily. The fields are minute, hour, day
	// of the month, month and day of the week. Times are in the time zone of the kube-controller-manager.
	// +required
	// +kubebuilder:validation:MinLength=1
	Schedule CronSchedule `json:"schedule"`

	// olderThan is the minimum age of the deleted objects that are removed, for example 30d or 12h30m. Units are d, h, m
	// and s, in this order. If it is not set, all deleted objects are removed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="olderThan must be longer than zero: write an age such as 30d or 12h30m, or leave olderThan out to remove everything that is deleted"
	OlderThan string `json:"olderThan,omitempty"`

	// resources are the compute resources of the garbage collection container. Defaults to requests of 100m CPU and 256Mi
	// of memory and limits of 500m CPU and 512Mi of memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// TraceArchivalConfig configures the archival of traces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.schedule) && size(self.schedule) > 0)",message="traceArchival.schedule is required when traceArchival.enabled is true"
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.location) && size(self.location) > 0)",message="traceArchival.location is required when traceArchival.enabled is true"
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.retention) && size(self.retention) > 0)",message="traceArchival.retention is required when traceArchival.enabled is true"
type TraceArchivalConfig struct {
	// enabled turns trace archival on. Defaults to false. If true, location and retention are required.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// schedule is a cron expression or a macro such as @daily. Defaults to "0 */6 * * *", every six hours. The fields are
	// minute, hour, day of the month, month and day of the week. Times are in the time zone of the
	// kube-controller-manager.
	// +optional
	// +kubebuilder:default="0 */6 * * *"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule CronSchedule `json:"schedule,omitempty"`

	// location is the URI below which traces are archived, for example s3://bucket/traces. A location in files requires
	// spec.storage.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Location string `json:"location,omitempty"`

	// retention is the age at which traces are archived: a number with the unit m (minutes), h (hours) or d (days), for
	// example 30d.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^\d+[mhd]$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="retention must be longer than zero: write an age such as 30d, 12h or 90m"
	Retention string `json:"retention,omitempty"`

	// maxTracesPerPass is the maximum number of traces that one run archives. Defaults to 1000.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	MaxTracesPerPass *int32 `json:"maxTracesPerPass,omitempty"`

	// longRetentionAllowlist lists the IDs of experiments that are allowed to keep their traces in the database for longer
	// than retention.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	LongRetentionAllowlist []string `json:"longRetentionAllowlist,omitempty"`

	// resources are the compute resources of the trace archival container. Defaults to requests of 100m CPU and 256Mi of
	// memory and limits of 500m CPU and 512Mi of memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// MLflowStatus is the most recently observed state of the MLflow server.
type MLflowStatus struct {
	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the server. Ready, Available and Progressing report on the
	// server, and Migration reports on the database. Most of the others exist only while something needs attention.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// address is the address of the server inside the cluster.
	// +optional
	Address *MLflowAddress `json:"address,omitempty"`

	// url is the external URL of the server. It is empty until the server is published.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// artifactsUrl is the external URL below which the artifact server serves artifacts. It is empty if there is no
	// artifact server.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ArtifactsURL string `json:"artifactsUrl,omitempty"`

	// version is the MLflow version, as reported by the image, that last migrated the database and was then rolled out. A
	// later image under the same tag with the same database schema does not change it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// migration is a record of the last database migration. The operator uses it after the migration Job is deleted.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	server.Scale `json:",inline"`
}

// MigrationOutcome is the state of a database migration.
//
// +kubebuilder:validation:Enum=Running;RolloutPending;Completed;Failed
type MigrationOutcome string

const (
	// MigrationRunning means that the migration Job exists and has not finished.
	MigrationRunning MigrationOutcome = "Running"
	// MigrationRolloutPending means that the database is migrated and the server is not ready yet.
	MigrationRolloutPending MigrationOutcome = "RolloutPending"
	// MigrationCompleted means that the database is migrated and the server has become ready since.
	MigrationCompleted MigrationOutcome = "Completed"
	// MigrationFailed means that the Job failed permanently: another attempt would fail too.
	MigrationFailed MigrationOutcome = "Failed"
)

// MigrationStatus is a record of the last database migration.
type MigrationStatus struct {
	// outcome is Running, RolloutPending, Completed or Failed. RolloutPending means that the database is migrated and the
	// server is not ready yet; the migration is not repeated if its Job expires in the meantime. Failed is kept until the
	// version, the image or the stores change, or until a new migration is forced.
	// +optional
	Outcome MigrationOutcome `json:"outcome,omitempty"`

	// jobUID is the UID of the Job that led to the outcome.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	JobUID string `json:"jobUID,omitempty"`

	// generation is the generation of the MLflow object for which the database was migrated.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// version is the MLflow version to which the database was migrated, as reported by the image. If the outcome is
	// Running or Failed, it is the oldest version that the operator accepts.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// image is the MLflow image that the migration used.
	// +optional
	Image string `json:"image,omitempty"`

	// stores is a hash of the settings that select the databases: the URIs, and the names and keys of Secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Stores string `json:"stores,omitempty"`

	// force is a hash of the value of the annotation mlflow.opendatahub.io/force-migrate that requested the migration. It
	// is empty if the migration was not forced.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Force string `json:"force,omitempty"`
}

// MLflowAddress is the address of the server inside the cluster.
type MLflowAddress struct {
	// url is the URL of the server, with scheme, port and path, for example https://mlflow.opendatahub.svc:8443/mlflow.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}
