package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// SingletonName is the only name that an MLflow object may bear.
const SingletonName = "mlflow"

// DefaultServiceAccount is the account of servers whose MLflow names none. The operator makes it.
const DefaultServiceAccount = "mlflow-sa"

// MLflow describes the MLflow server of the cluster. There is one, named mlflow.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mlf,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=".status.conditions[?(@.type=='Progressing')].status"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=".status.url"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'mlflow'",message="MLflow resource name must be 'mlflow'"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="MLflow resource name must be at most 40 characters"
type MLflow struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted server.
	// +required
	Spec MLflowSpec `json:"spec"`

	// status is what was observed last.
	// +optional
	Status MLflowStatus `json:"status,omitempty"`
}

// ConditionsRef gives access to the conditions of the status.
func (m *MLflow) ConditionsRef() *[]metav1.Condition { return &m.Status.Conditions }

// ObserveGeneration records that the present generation was reconciled.
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

// MLflowSpec is the wanted server: its image, stores, artifacts and pod.
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
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && self.replicas > 1 && ((has(self.storage) && (((has(self.backendStoreUriFrom) || has(self.registryStoreUriFrom) || has(self.readReplicaBackendStoreUriFrom)) && !(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled)) || (has(self.serveArtifacts) && self.serveArtifacts && (!has(self.artifactsDestination) || size(self.artifactsDestination) == 0 || (self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')))) || (has(self.defaultArtifactRoot) && (self.defaultArtifactRoot.startsWith('/') || self.defaultArtifactRoot.startsWith('.') || self.defaultArtifactRoot.startsWith('file:') || self.defaultArtifactRoot.startsWith('FILE:'))) || (has(self.traceArchival) && has(self.traceArchival.enabled) && self.traceArchival.enabled && has(self.traceArchival.location) && (self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:'))))) || (has(self.backendStoreUri) && self.backendStoreUri.startsWith('sqlite')) || (has(self.registryStoreUri) && self.registryStoreUri.startsWith('sqlite')) || (has(self.readReplicaBackendStoreUri) && self.readReplicaBackendStoreUri.startsWith('sqlite'))) && !(has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))) || (oldSelf.hasValue() && has(oldSelf.value().replicas) && oldSelf.value().replicas > 1 && ((has(oldSelf.value().storage) && (((has(oldSelf.value().backendStoreUriFrom) || has(oldSelf.value().registryStoreUriFrom) || has(oldSelf.value().readReplicaBackendStoreUriFrom)) && !(has(oldSelf.value().artifactsServer) && has(oldSelf.value().artifactsServer.enabled) && oldSelf.value().artifactsServer.enabled)) || (has(oldSelf.value().serveArtifacts) && oldSelf.value().serveArtifacts && (!has(oldSelf.value().artifactsDestination) || size(oldSelf.value().artifactsDestination) == 0 || (oldSelf.value().artifactsDestination.startsWith('/') || oldSelf.value().artifactsDestination.startsWith('.') || oldSelf.value().artifactsDestination.startsWith('file:') || oldSelf.value().artifactsDestination.startsWith('FILE:')))) || (has(oldSelf.value().defaultArtifactRoot) && (oldSelf.value().defaultArtifactRoot.startsWith('/') || oldSelf.value().defaultArtifactRoot.startsWith('.') || oldSelf.value().defaultArtifactRoot.startsWith('file:') || oldSelf.value().defaultArtifactRoot.startsWith('FILE:'))) || (has(oldSelf.value().traceArchival) && has(oldSelf.value().traceArchival.enabled) && oldSelf.value().traceArchival.enabled && has(oldSelf.value().traceArchival.location) && (oldSelf.value().traceArchival.location.startsWith('/') || oldSelf.value().traceArchival.location.startsWith('.') || oldSelf.value().traceArchival.location.startsWith('file:') || oldSelf.value().traceArchival.location.startsWith('FILE:'))))) || (has(oldSelf.value().backendStoreUri) && oldSelf.value().backendStoreUri.startsWith('sqlite')) || (has(oldSelf.value().registryStoreUri) && oldSelf.value().registryStoreUri.startsWith('sqlite')) || (has(oldSelf.value().readReplicaBackendStoreUri) && oldSelf.value().readReplicaBackendStoreUri.startsWith('sqlite'))) && !(has(oldSelf.value().storage) && has(oldSelf.value().storage.accessModes) && ((size(oldSelf.value().storage.accessModes) > 0 && oldSelf.value().storage.accessModes[0] == 'ReadWriteMany') || (size(oldSelf.value().storage.accessModes) > 1 && oldSelf.value().storage.accessModes[1] == 'ReadWriteMany') || (size(oldSelf.value().storage.accessModes) > 2 && oldSelf.value().storage.accessModes[2] == 'ReadWriteMany'))))",optionalOldSelf=true,message="replicas must be 1 unless storage.accessModes contains ReadWriteMany, because other volumes are attached to one node at a time and an SQLite file is shared by the volume only: set spec.replicas to 1, ask for ReadWriteMany, or keep data and artifacts elsewhere; beside spec.storage a store URI in a Secret counts as a file"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicyEgressRules) || self.networkPolicyEgressRules.all(r, (has(r.ports) && size(r.ports) > 0) || (has(r.to) && size(r.to) > 0))",message="each networkPolicyEgressRules entry must specify at least one port or one destination"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicyAdditionalEgressRules) || self.networkPolicyAdditionalEgressRules.all(r, (has(r.ports) && size(r.ports) > 0) || (has(r.to) && size(r.to) > 0))",message="each networkPolicyAdditionalEgressRules entry must specify at least one port or one destination"
// +kubebuilder:validation:XValidation:rule="!has(self.resourceClaims) || self.resourceClaims.all(c, (has(c.resourceClaimName) && size(c.resourceClaimName) > 0) != (has(c.resourceClaimTemplateName) && size(c.resourceClaimTemplateName) > 0))",message="each resourceClaims entry must set exactly one non-empty value: resourceClaimName or resourceClaimTemplateName"
// +kubebuilder:validation:XValidation:rule="has(self.storage) || !has(self.traceArchival) || !has(self.traceArchival.location) || !(self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || size(self.traceArchival.location) > 0 && !self.traceArchival.location.contains(':') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:')) || (oldSelf.hasValue() && !has(oldSelf.value().storage) && has(oldSelf.value().traceArchival) && has(oldSelf.value().traceArchival.location) && oldSelf.value().traceArchival.location == self.traceArchival.location)",optionalOldSelf=true,message="storage must be configured when traceArchival.location uses file-based storage"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !(has(self.serveArtifacts) && self.serveArtifacts)",message="serveArtifacts and artifactsServer.enabled are mutually exclusive, because one server answers for artifacts: set serveArtifacts to false, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.defaultArtifactRoot) || size(self.defaultArtifactRoot) == 0",message="defaultArtifactRoot and artifactsServer.enabled are mutually exclusive, because the root is then the public URL of the artifact server: remove defaultArtifactRoot, or set artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || (has(self.artifactsDestination) && size(self.artifactsDestination) > 0)",message="artifactsDestination must be set when artifactsServer.enabled is true: write a location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.artifactsServer.replicas) || self.artifactsServer.replicas <= 1 || !has(self.artifactsDestination) || !(self.artifactsDestination.startsWith('/') || self.artifactsDestination.startsWith('.') || size(self.artifactsDestination) > 0 && !self.artifactsDestination.contains(':') || self.artifactsDestination.startsWith('file:') || self.artifactsDestination.startsWith('FILE:')) || (has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))",message="artifactsServer.replicas must be 1 with artifactsDestination in files unless storage.accessModes contains ReadWriteMany: set artifactsServer.replicas to 1, ask for ReadWriteMany, or set artifactsDestination to a remote location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.traceArchival) || !has(self.traceArchival.enabled) || !self.traceArchival.enabled || !has(self.traceArchival.location) || !(self.traceArchival.location.startsWith('/') || self.traceArchival.location.startsWith('.') || size(self.traceArchival.location) > 0 && !self.traceArchival.location.contains(':') || self.traceArchival.location.startsWith('file:') || self.traceArchival.location.startsWith('FILE:')) || (has(self.storage) && has(self.storage.accessModes) && ((size(self.storage.accessModes) > 0 && self.storage.accessModes[0] == 'ReadWriteMany') || (size(self.storage.accessModes) > 1 && self.storage.accessModes[1] == 'ReadWriteMany') || (size(self.storage.accessModes) > 2 && self.storage.accessModes[2] == 'ReadWriteMany')))",message="storage.accessModes must contain ReadWriteMany when artifactsServer.enabled is true and traceArchival.location is in files, because the server reads the archive beside the artifact server: ask for ReadWriteMany, or set traceArchival.location to a remote location such as s3://bucket/path"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.backendStoreUri) || !(self.backendStoreUri.startsWith('sqlite://') || self.backendStoreUri.startsWith('sqlite+'))",message="backendStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set backendStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.registryStoreUri) || !(self.registryStoreUri.startsWith('sqlite://') || self.registryStoreUri.startsWith('sqlite+'))",message="registryStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set registryStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
// +kubebuilder:validation:XValidation:rule="!(has(self.artifactsServer) && has(self.artifactsServer.enabled) && self.artifactsServer.enabled) || !has(self.readReplicaBackendStoreUri) || !(self.readReplicaBackendStoreUri.startsWith('sqlite://') || self.readReplicaBackendStoreUri.startsWith('sqlite+'))",message="readReplicaBackendStoreUri must not be SQLite when artifactsServer.enabled is true, because two servers use the store at once: set readReplicaBackendStoreUri to a postgresql or mysql store, or artifactsServer.enabled to false"
type MLflowSpec struct {
	// image overrides the MLflow image that the platform ships.
	// +optional
	Image *ImageConfig `json:"image,omitempty"`

	// replicas is the number of server pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// migration controls when the database schema is migrated.
	// +optional
	// +kubebuilder:default={mode: Automatic}
	Migration *MigrationConfig `json:"migration,omitempty"`

	// resources of the server container. The default (requests: 1 CPU, 2Gi of
	// memory; limits: 4 CPU, 3Gi of memory) fills in what is left open, unless it
	// contradicts what is given: a default request above a given limit, or a
	// default limit below a given request. An empty block asks for nothing.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// serviceAccountName is the service account that is created for the server.
	// +optional
	// +kubebuilder:default=mlflow-sa
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || (size(self) <= 253 && self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'))`,message="serviceAccountName must be the name of a ServiceAccount: at most 253 lower-case letters, digits, '-' and '.', such as mlflow-sa"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// serviceAccountAnnotations are annotations of the service accounts that are
	// created for the server, the garbage collection and the trace archival, such
	// as those that bind an account to an identity of a cloud. An account that
	// exists already is used as it is and gets none of them.
	// +optional
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`

	// imagePullSecrets name Secrets in the namespace of the server with which the
	// images of all pods are pulled.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// storage asks for a persistent volume claim, mounted at /mlflow by the pods
	// that have something in files there, or may have: a store URI in a Secret is
	// not known to the operator. It is used when the claim is created; of an existing claim only
	// resources.requests.storage is changed, which expands the volume where its
	// storage class allows that. Without values the claim asks for 2Gi,
	// ReadWriteOnce, of the default storage class. An empty storageClassName asks
	// for a volume that was provisioned by hand.
	// +optional
	Storage *corev1.PersistentVolumeClaimSpec `json:"storage,omitempty"`

	// storageRetentionPolicy says what happens to the persistent volume claim
	// when the MLflow object is deleted. Retain, which also holds when this is not
	// set, keeps it: the next MLflow of the same name takes it up again. Delete
	// removes it and all that was stored.
	// +optional
	StorageRetentionPolicy StorageRetentionPolicy `json:"storageRetentionPolicy,omitempty"`

	// temporaryStorage configures the writable scratch directory of the pods.
	// +optional
	TemporaryStorage *TemporaryStorageConfig `json:"temporaryStorage,omitempty"`

	// backendStoreUri is where experiments, runs and traces are stored: a
	// sqlite, postgresql or mysql URI. Prefer backendStoreUriFrom when the URI
	// holds a password.
	// +optional
	BackendStoreURI string `json:"backendStoreUri,omitempty"`

	// backendStoreUriFrom takes the backend store URI from a Secret in the
	// namespace of the server.
	// +optional
	BackendStoreURIFrom *corev1.SecretKeySelector `json:"backendStoreUriFrom,omitempty"`

	// readReplicaBackendStoreUri is a read-only copy of the backend store which
	// answers queries. It is never migrated.
	// +optional
	ReadReplicaBackendStoreURI string `json:"readReplicaBackendStoreUri,omitempty"`

	// readReplicaBackendStoreUriFrom takes the URI of the read replica from a
	// Secret in the namespace of the server.
	// +optional
	ReadReplicaBackendStoreURIFrom *corev1.SecretKeySelector `json:"readReplicaBackendStoreUriFrom,omitempty"`

	// registryStoreUri is where registered models are stored. Without it, the
	// backend store holds them.
	// +optional
	RegistryStoreURI string `json:"registryStoreUri,omitempty"`

	// registryStoreUriFrom takes the registry store URI from a Secret in the
	// namespace of the server.
	// +optional
	RegistryStoreURIFrom *corev1.SecretKeySelector `json:"registryStoreUriFrom,omitempty"`

	// artifactsDestination is where the server keeps the artifacts that it
	// serves. Without it, file:///mlflow/artifacts.
	// +optional
	ArtifactsDestination string `json:"artifactsDestination,omitempty"`

	// defaultArtifactRoot is where clients store artifacts of new experiments.
	// Required unless serveArtifacts or artifactsServer.enabled is true.
	// +optional
	DefaultArtifactRoot string `json:"defaultArtifactRoot,omitempty"`

	// serveArtifacts lets clients read and write artifacts through the server.
	// +optional
	// +kubebuilder:default=false
	ServeArtifacts bool `json:"serveArtifacts,omitempty"`

	// artifactsServer moves uploads and downloads of artifacts to pods of their
	// own, so that they do not hold up tracking. It needs the HTTPRoute API, a
	// public URL, and stores that are postgresql or mysql.
	// +optional
	// +nullable
	ArtifactsServer *ArtifactsServerConfig `json:"artifactsServer,omitempty"`

	// workers is the number of server processes in each pod.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`

	// extraAllowedOrigins are origins beyond those of the server itself that
	// browsers may call from. Blank entries and entries with a comma are ignored.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ExtraAllowedOrigins []string `json:"extraAllowedOrigins,omitempty"`

	// allowedHosts limits the names, in the Host header of requests, under which
	// the server answers, and so protects against DNS rebinding. Without entries
	// it answers under every name, because clients may reach it under names that
	// the operator does not know. With entries it answers under the names of its
	// Service, localhost, the host of the external URL and the entries, each as
	// clients send it: with the port unless that is 443. An entry may hold
	// wildcards, such as *.example.com; the entry * allows every name.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	AllowedHosts []AllowedHost `json:"allowedHosts,omitempty"`

	// workspaceLabelSelector limits the namespaces that appear as workspaces.
	// +optional
	WorkspaceLabelSelector *metav1.LabelSelector `json:"workspaceLabelSelector,omitempty"`

	// env are further environment variables of the server. An entry replaces a
	// variable of the same name that the operator would set; of several entries
	// of one name the last holds.
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

	// envFrom are ConfigMaps and Secrets whose keys become environment variables.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// podLabels are further labels of the server pods. The labels app, component
	// and app.kubernetes.io/instance select the pods and belong to the operator.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] == 'mlflow' || (k != 'app' && k != 'component' && k != 'app.kubernetes.io/instance'))",message="podLabels must not set app, component or app.kubernetes.io/instance: the Deployment, Service and NetworkPolicy select the pods by them; remove these keys or choose others"
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// podAnnotations are annotations of the server pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// podSecurityContext replaces the default security context of the pods
	// (runAsNonRoot, seccomp profile RuntimeDefault; with storage, and elsewhere
	// than on OpenShift, fsGroup 1001) as a whole.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// securityContext replaces the default security context of the containers
	// (no privilege escalation, read-only root, no capabilities) as a whole.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// nodeSelector restricts the pods to nodes with these labels.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 63)",message="label values must be 63 characters or less"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	server.More `json:",inline"`

	// resourceClaims are the dynamic resource claims of the server pods. The
	// container uses them through resources.claims.
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// caBundleConfigMap names a ConfigMap with further certificate authorities
	// to trust, in the namespace of the server.
	// +optional
	CABundleConfigMap *CABundleConfigMapRef `json:"caBundleConfigMap,omitempty"`

	// networkPolicyEgressRules replace the connections that the server may open
	// by default.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	NetworkPolicyEgressRules []networkingv1.NetworkPolicyEgressRule `json:"networkPolicyEgressRules,omitempty"`

	// networkPolicyAdditionalEgressRules are further connections that the server
	// and the database migration may open.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	NetworkPolicyAdditionalEgressRules []networkingv1.NetworkPolicyEgressRule `json:"networkPolicyAdditionalEgressRules,omitempty"`

	// networkPolicyIngressFrom are the pods, namespaces and address blocks that
	// may connect to the server. Without entries all pods of the cluster may; every
	// request is authorized in any case. Remember the gateway, Prometheus, and the
	// garbage collection, which runs in the namespace of the server.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.podSelector) || has(p.namespaceSelector) || has(p.ipBlock))",message="each networkPolicyIngressFrom entry must name a peer: set podSelector, namespaceSelector or ipBlock"
	// +listType=atomic
	NetworkPolicyIngressFrom []networkingv1.NetworkPolicyPeer `json:"networkPolicyIngressFrom,omitempty"`

	// tls says where the serving certificate comes from.
	// +optional
	// +nullable
	TLS *TLSConfig `json:"tls,omitempty"`

	// garbageCollection, when present, removes deleted runs for good on a schedule.
	// +optional
	GarbageCollection *GarbageCollectionConfig `json:"garbageCollection,omitempty"`

	// traceArchival moves old traces out of the database.
	// +optional
	// +nullable
	TraceArchival *TraceArchivalConfig `json:"traceArchival,omitempty"`
}

// AllowedHost is a name in a Host header, as MLflow compares it.
//
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^,\s]+$')`,message="an entry of allowedHosts must not be blank and must not contain a comma or a blank: write one host name for each entry, such as mlflow.example.com or mlflow.example.com:8443"
type AllowedHost string

// TLSMode says who supplies the serving certificate.
//
// +kubebuilder:validation:Enum=Automatic;Provided
type TLSMode string

const (
	// TLSAutomatic leaves the certificate to OpenShift or to the operator.
	TLSAutomatic TLSMode = "Automatic"
	// TLSProvided leaves the certificate to the user.
	TLSProvided TLSMode = "Provided"
)

// TLSConfig says where the serving certificate comes from.
type TLSConfig struct {
	// mode is Automatic or Provided. Automatic: OpenShift signs the certificate in
	// Secret mlflow-tls, and elsewhere the operator does so unless there is a
	// Secret of that name that it did not make; it renews what it issued.
	// Provided: the operator issues nothing and waits for the Secret, of type
	// kubernetes.io/tls. One that it issued earlier stays until it is replaced.
	// +optional
	// +kubebuilder:default=Automatic
	Mode TLSMode `json:"mode,omitempty"`
}

// ArtifactsServerConfig configures the server for artifacts.
//
// +kubebuilder:validation:XValidation:rule="!has(self.resourceClaims) || self.resourceClaims.all(c, (has(c.resourceClaimName) && size(c.resourceClaimName) > 0) != (has(c.resourceClaimTemplateName) && size(c.resourceClaimTemplateName) > 0))",message="each artifactsServer.resourceClaims entry must set exactly one non-empty value: resourceClaimName or resourceClaimTemplateName"
type ArtifactsServerConfig struct {
	// enabled runs the server for artifacts. The tracking server then serves
	// none, and new experiments keep theirs under status.artifactsUrl.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// replicas is the number of its pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`

	// workers is the number of server processes in each of its pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`

	// resources of its container. Without them, the requests and limits of
	// spec.resources, but not its claims.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// resourceClaims are the dynamic resource claims of its pods; those of
	// spec.resourceClaims are not among them. The container uses them through
	// artifactsServer.resources.claims.
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`
}

// StorageRetentionPolicy says what becomes of the stored data when its MLflow
// object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type StorageRetentionPolicy string

const (
	// StorageRetain keeps the persistent volume claim.
	StorageRetain StorageRetentionPolicy = "Retain"
	// StorageDelete deletes the persistent volume claim with the MLflow object.
	StorageDelete StorageRetentionPolicy = "Delete"
)

// ImageConfig chooses the MLflow image.
type ImageConfig struct {
	// image is the full reference, with tag or digest.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(\S+)?$') && !self.contains('?')`,message="image must be an image reference without blanks, such as quay.io/example/mlflow:v3"
	Image string `json:"image,omitempty"`

	// imagePullPolicy of all containers that run the image. Without it, the
	// default of Kubernetes holds.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// MigrationMode says when the database is migrated.
//
// +kubebuilder:validation:Enum=Automatic;Always
type MigrationMode string

const (
	// MigrateAutomatic migrates at the first start and when the image changes.
	MigrateAutomatic MigrationMode = "Automatic"
	// MigrateAlways migrates once for each generation of the object.
	MigrateAlways MigrationMode = "Always"
)

// MigrationConfig controls database migrations.
type MigrationConfig struct {
	// mode says when the database is migrated: Automatic at the first start and
	// when another image needs a newer schema, Always after every change of the spec.
	// +optional
	// +kubebuilder:default=Automatic
	Mode MigrationMode `json:"mode,omitempty"`

	// ttlSecondsAfterFinished is for how long a finished migration Job is kept,
	// in seconds. Without it, one day.
	// +optional
	// +kubebuilder:validation:Minimum=3600
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is for how long one migration Job may run, in seconds;
	// then it is ended and another one is made. Without it there is no limit: a
	// migration rewrites tables at the speed of the database, and MySQL cannot take
	// back a change of a table that is cut short.
	// +optional
	// +kubebuilder:validation:Minimum=60
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// TemporaryStorageConfig configures the scratch directory.
type TemporaryStorageConfig struct {
	// sizeLimit of the scratch directory. Without it, 1Gi.
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// CABundleConfigMapRef names a ConfigMap with certificate authorities.
type CABundleConfigMapRef struct {
	// name of the ConfigMap. All its keys that end in .crt or .pem are trusted.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// CronSchedule is a schedule as Kubernetes reads it: five fields, or a macro.
//
// One rule for each field keeps the cost of each below the limit of the API
// server, which must assume that the text has any length. What a rule lets
// through and Kubernetes does not, such as a range that runs backwards, fails
// when the CronJob is written, which is reported in condition ScheduledJobsReady. Stray commas, a third digit and what follows *-
// mean nothing to Kubernetes, which passes over them; here they are refused.
//
// +kubebuilder:validation:XValidation:rule=`!self.contains('TZ')`,message="schedule must not name a time zone, because the times of a CronJob are those of the cluster: remove TZ= or CRON_TZ="
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'^\s*(\S+\s+){4}\S+\s*$')`,message="schedule must have five fields (minute, hour, day of the month, month and day of the week), such as '15 3 * * 0', or be a macro such as @daily: add or remove fields"
// +kubebuilder:validation:XValidation:rule=`!self.startsWith('@') || self.matches(r'^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [-+]?(0|([\d.]*\d[\d.]*([nuµμm]?s|m|h))+))$')`,message="schedule may start with @ only as @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or '@every' with a duration such as '@every 6h': write one of these"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || !self.matches(r'/0*([,\s]|$)')`,message="schedule has a step that is no number above zero: write a step such as */15"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(([*?]|((0*[0-5]?\d)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the minute in schedule must be 0-59, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){1}(([*?]|((0*(2[0-3]|1?\d))-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the hour in schedule must be 0-23, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){2}(([*?]|((3[01]|[12]\d|0*[1-9])-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the day of the month in schedule must be 1-31, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){3}(([*?]|((1[0-2]|0*[1-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the month in schedule must be 1-12 or jan-dec, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
// +kubebuilder:validation:XValidation:rule=`self.startsWith('@') || self.matches(r'(?is)^\s*(\S+\s+){4}(([*?]|((0*[0-6]|sun|mon|tue|wed|thu|fri|sat)-?\b){1,2})(/\d+)?(,|\s.*|$))+$')`,message="the day of the week in schedule must be 0-6 or sun-sat, * or ?, alone, as a range such as 1-5, with a step such as */2, or several of these with commas between: correct it, as in '15 3 * * 0'"
type CronSchedule string

// GarbageCollectionConfig schedules the final removal of deleted runs.
type GarbageCollectionConfig struct {
	// schedule is a cron expression: minute, hour, day of the month, month and day
	// of the week, or a macro such as @daily.
	// +required
	// +kubebuilder:validation:MinLength=1
	Schedule CronSchedule `json:"schedule"`

	// olderThan spares what was deleted more recently, such as 30d or 12h30m.
	// Without it, everything deleted is removed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="olderThan must be longer than zero: write an age such as 30d or 12h30m, or leave olderThan out to remove everything that is deleted"
	OlderThan string `json:"olderThan,omitempty"`

	// resources of the garbage collection container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// TraceArchivalConfig schedules the archival of traces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.schedule) && size(self.schedule) > 0)",message="traceArchival.schedule is required when traceArchival.enabled is true"
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.location) && size(self.location) > 0)",message="traceArchival.location is required when traceArchival.enabled is true"
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.retention) && size(self.retention) > 0)",message="traceArchival.retention is required when traceArchival.enabled is true"
type TraceArchivalConfig struct {
	// enabled switches archival on.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// schedule is a cron expression: minute, hour, day of the month, month and day
	// of the week, or a macro such as @daily.
	// +optional
	// +kubebuilder:default="0 */6 * * *"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule CronSchedule `json:"schedule,omitempty"`

	// location is the URI under which traces are archived.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Location string `json:"location,omitempty"`

	// retention is the age at which traces are archived: a number with the unit
	// m, h or d.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^\d+[mhd]$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="retention must be longer than zero: write an age such as 30d, 12h or 90m"
	Retention string `json:"retention,omitempty"`

	// maxTracesPerPass limits the traces that one run archives.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	MaxTracesPerPass *int32 `json:"maxTracesPerPass,omitempty"`

	// longRetentionAllowlist are the ids of experiments which may keep their
	// traces for longer.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	LongRetentionAllowlist []string `json:"longRetentionAllowlist,omitempty"`

	// resources of the archival container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// MLflowStatus is what was observed last.
type MLflowStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the server: Available, Progressing and others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// address is where the server is reached inside the cluster.
	// +optional
	Address *MLflowAddress `json:"address,omitempty"`

	// url is where the server is reached from outside, if it is published.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// artifactsUrl is the public root of the artifacts that the artifact server
	// serves; empty without one.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ArtifactsURL string `json:"artifactsUrl,omitempty"`

	// version is the MLflow version that migrated the database and was rolled out, as
	// its image reported it. A later image with the same database schema, under the
	// same tag, does not change it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// migration is what must be known of the last database migration when its Job
	// is gone. It is written by the operator for itself.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	server.Scale `json:",inline"`
}

// MigrationOutcome is how far a database migration has come.
//
// +kubebuilder:validation:Enum=Running;RolloutPending;Completed;Failed
type MigrationOutcome string

const (
	// MigrationRunning means that a Job was made and has not ended yet.
	MigrationRunning MigrationOutcome = "Running"
	// MigrationRolloutPending means that the database is migrated; the server is not ready yet.
	MigrationRolloutPending MigrationOutcome = "RolloutPending"
	// MigrationCompleted means that the database is migrated and the server was ready since.
	MigrationCompleted MigrationOutcome = "Completed"
	// MigrationFailed means that the Job failed in a way that repetition cannot mend.
	MigrationFailed MigrationOutcome = "Failed"
)

// MigrationStatus is a record of the last database migration.
type MigrationStatus struct {
	// outcome is how far the migration has come. RolloutPending keeps it from
	// being repeated when its Job expires or the object is edited before the
	// server is ready; Failed holds until version, image or stores change, or a
	// new migration is forced.
	// +optional
	Outcome MigrationOutcome `json:"outcome,omitempty"`

	// jobUID is the uid of the Job whose end led to the outcome.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	JobUID string `json:"jobUID,omitempty"`

	// generation is the generation of the object that was migrated for.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// version is the MLflow version that was migrated to, as its image reported it.
	// Of Running and Failed it is the oldest one accepted.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// image is the MLflow image that migrated.
	// +optional
	Image string `json:"image,omitempty"`

	// stores is a hash of the settings that say which databases are meant: URIs,
	// and names and keys of Secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Stores string `json:"stores,omitempty"`

	// force is a hash of the value of the annotation
	// mlflow.opendatahub.io/force-migrate which the migration answered; empty when
	// it was not forced.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Force string `json:"force,omitempty"`
}

// MLflowAddress is the address of the server inside the cluster.
type MLflowAddress struct {
	// url with scheme, port and path.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}
