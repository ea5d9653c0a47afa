package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Kind is the kind of a Catalog.
const Kind = "Catalog"

// CatalogName is the only valid name of a new Catalog.
const CatalogName = "catalog"

// Finalizer keeps a Catalog until its objects outside of its namespace are deleted.
const Finalizer = "catalog.aihub.opendatahub.io/finalizer"

// Catalog describes the catalog server, in which users browse models, MCP servers, agents and serving runtimes, with
// its database and its sources. A cluster has one active Catalog, and its name is catalog.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mcat,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Catalog struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the catalog. An empty spec deploys a server with a database. A change that
	// affects the pod template, such as another data image, restarts the server.
	// +optional
	// +nullable
	Spec CatalogSpec `json:"spec,omitzero"`

	// status is the most recently observed state of the catalog.
	// +optional
	Status CatalogStatus `json:"status,omitzero"`
}

// ConditionsRef returns a pointer to the conditions in the status.
func (c *Catalog) ConditionsRef() *[]metav1.Condition { return &c.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the current generation.
func (c *Catalog) ObserveGeneration() { c.Status.ObservedGeneration = c.Generation }

// CatalogList is a list of Catalog objects.
//
// +kubebuilder:object:root=true
type CatalogList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Catalog `json:"items"`
}

// CatalogSpec defines the desired state of a catalog.
type CatalogSpec struct {
	// resources are the compute resources of the containers. A change restarts the pods with these containers.
	// +optional
	Resources *CatalogResources `json:"resources,omitempty"`

	// database configures the database that stores the content of the sources. Defaults to a PostgreSQL database that the
	// operator runs.
	// +optional
	Database *CatalogDatabase `json:"database,omitempty"`

	// access determines who can read the catalog. A change does not restart pods.
	// +optional
	Access *CatalogAccess `json:"access,omitempty"`

	// authProxy configures the authenticating proxy in front of the server.
	// +optional
	AuthProxy *CatalogAuthProxy `json:"authProxy,omitempty"`

	// proxy configures the outbound proxy of the server. If it is not set, the server uses the cluster-wide proxy of
	// OpenShift. An empty object ({}) turns off all proxies. A change restarts the server pods.
	// +optional
	Proxy *CatalogProxy `json:"proxy,omitempty"`

	// catalogDataImage is the digest or tag of the image that contains the model descriptions, for example v2.1. Defaults
	// to the image of the release. The registry and the repository are always those of the release. Leading and trailing
	// spaces are ignored. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.trim().matches(r'^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$')`,messageExpression=`'catalogDataImage is "' + self + '"; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository'`
	CatalogDataImage string `json:"catalogDataImage,omitempty"`

	// benchmarkDataImage is the digest or tag of the image that contains the performance data of models, for example v2.1.
	// Defaults to the image of the release. The registry and the repository are always those of the release. Leading and
	// trailing spaces are ignored. A change restarts the server pods.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.trim().matches(r'^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$')`,messageExpression=`'benchmarkDataImage is "' + self + '"; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository'`
	BenchmarkDataImage string `json:"benchmarkDataImage,omitempty"`

	server.Pods `json:",inline"`
}

// CatalogResources are the compute resources of the containers.
type CatalogResources struct {
	// catalog contains the resources of the server container. Defaults to requests of 100m CPU and 256Mi of memory and a
	// limit of 256Mi of memory. The field claims is ignored.
	// +optional
	Catalog *corev1.ResourceRequirements `json:"catalog,omitempty"`

	// postgres contains the resources of the database container. Defaults to requests of 250m CPU and 256Mi of memory and
	// limits of 500m CPU and 512Mi of memory. The field claims is ignored.
	// +optional
	Postgres *corev1.ResourceRequirements `json:"postgres,omitempty"`

	// kubeRBACProxy contains the resources of the container of the proxy in front of the server. Defaults to requests of
	// 100m CPU and 256Mi of memory and a limit of 256Mi of memory. The field claims is ignored.
	// +optional
	KubeRBACProxy *corev1.ResourceRequirements `json:"kubeRBACProxy,omitempty"`

	// init contains the resources of the init containers, which copy the data of the catalog before the server starts. By
	// default, they have no requests and no limits. The field claims is ignored.
	// +optional
	Init *corev1.ResourceRequirements `json:"init,omitempty"`
}

// CatalogDatabase configures a PostgreSQL database: a database that the operator runs, or an existing database.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && has(self.connection))",message="external and connection are two ways to an existing database: set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.serverTLS) || !(has(self.external) || has(self.connection))",message="serverTLS applies only to the database that the operator runs: remove it, or remove external and connection"
type CatalogDatabase struct {
	// volume configures the volume of the database that the operator runs. The volume is deleted with the database pod;
	// the server then fills the database again from the sources.
	// +optional
	Volume *CatalogVolume `json:"volume,omitempty"`

	// external describes an existing database by host and Secret. If it is set, the operator runs no database.
	// +optional
	External *ExternalDatabase `json:"external,omitempty"`

	// connection describes an existing database by a Secret alone. If it is set, the operator runs no database.
	// +optional
	Connection *DatabaseConnection `json:"connection,omitempty"`

	// serverTLS encrypts the connections to the database that the operator runs. If Enabled, the operator issues a
	// certificate from its own CA, and the server verifies the certificate. The operator renews it every eight months,
	// which restarts the database and the server. If Disabled, the default, connections are not encrypted. A change
	// restarts the database and the server.
	// +optional
	ServerTLS server.Switch `json:"serverTLS,omitempty"`
}

// CatalogVolume configures a volume that is deleted with its pod.
type CatalogVolume struct {
	// sizeLimit is the size limit of the volume. Defaults to 5Gi. A change restarts the database pod.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",message="sizeLimit must be greater than zero"
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// ExternalDatabase describes an existing PostgreSQL database by host and Secret.
type ExternalDatabase struct {
	// host is the host name or IP address of the PostgreSQL server, for example db.example.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// port is the port of the PostgreSQL server. Defaults to 5432.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// secretName is the name of a Secret in the namespace of the Catalog with the keys database-name, database-user and
	// database-password. After a change of the Secret, restart the Deployment model-catalog.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// sslMode determines how the connection to the database is encrypted and verified, as sslmode in PostgreSQL clients.
	// If it is empty, the default of the catalog server applies.
	// +optional
	// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
	SSLMode string `json:"sslMode,omitempty"`
}

// CatalogAccess determines who can read the catalog.
type CatalogAccess struct {
	// authenticated is Enabled or Disabled. If Enabled, the default, every authenticated user of the cluster can read the
	// catalog. If Disabled, only users with a RoleBinding that an administrator created can read it.
	// +optional
	Authenticated server.Switch `json:"authenticated,omitempty"`
}

// CatalogAuthProxy configures the authenticating proxy in front of the server.
type CatalogAuthProxy struct {
	// mode is Enabled or Disabled. If Enabled, the default, a proxy runs in front of the server. If Disabled, clients are
	// not authenticated. A change restarts the server pods.
	// +optional
	Mode server.Switch `json:"mode,omitempty"`

	// certificateSecretName is the name of a Secret that contains the serving certificate in the keys tls.crt and tls.key.
	// Defaults to the Secret model-catalog-kube-rbac-proxy, which OpenShift or, on other clusters, the operator creates.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CertificateSecretName string `json:"certificateSecretName,omitempty"`
}

// CatalogProxy configures the outbound proxy of the server. Everyone who can read the Catalog object can read these
// fields, so they should not contain a password.
type CatalogProxy struct {
	// httpProxy is the address of the proxy for HTTP requests, for example http://proxy.example.com:3128. If it is empty,
	// HTTP requests use no proxy.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(((https?|socks5h?)://)?([^/?#@\s]+@)?[^/?#@\s]+/?)?$')`,message="httpProxy must be the address of a proxy without a path, such as http://proxy.example.com:3128, or empty for none"
	HTTPProxy *string `json:"httpProxy,omitempty"`

	// httpsProxy is the address of the proxy for HTTPS requests, for example http://proxy.example.com:3128. If it is
	// empty, HTTPS requests use no proxy.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(((https?|socks5h?)://)?([^/?#@\s]+@)?[^/?#@\s]+/?)?$')`,message="httpsProxy must be the address of a proxy without a path, such as http://proxy.example.com:3128, or empty for none"
	HTTPSProxy *string `json:"httpsProxy,omitempty"`

	// noProxy is a comma-separated list of destinations that are reached without a proxy: host names, domains with a
	// leading dot, IP addresses and CIDRs, for example .svc,.cluster.local,10.0.0.0/8.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	NoProxy *string `json:"noProxy,omitempty"`

	// mode is the legacy name of authProxy.mode, which takes precedence. It does not affect the outbound proxy.
	// +optional
	Mode server.Switch `json:"mode,omitempty"`

	// certificateSecretName is the legacy name of authProxy.certificateSecretName, which takes precedence. It does not
	// affect the outbound proxy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CertificateSecretName string `json:"certificateSecretName,omitempty"`
}

// CatalogStatus is the most recently observed state of a catalog.
type CatalogStatus struct {
	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the state of the catalog. Ready and Available report on the server. Most
	// of the others exist only while something needs attention.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// sources lists the ConfigMaps with the label opendatahub.io/catalog-source and reports whether the catalog uses them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Sources []CatalogSource `json:"sources,omitempty"`

	// sourcesOmitted is the number of sources that do not fit into status.sources.
	// +optional
	SourcesOmitted int32 `json:"sourcesOmitted,omitempty"`

	server.Scale `json:",inline"`
}

// SourceState is Accepted or Rejected.
//
// +kubebuilder:validation:Enum=Accepted;Rejected
type SourceState string

const (
	// SourceAccepted means that the catalog uses the source.
	SourceAccepted SourceState = "Accepted"
	// SourceRejected means that the catalog does not use the source.
	SourceRejected SourceState = "Rejected"
)

// CatalogSource is the state of a ConfigMap with sources.
type CatalogSource struct {
	// name is the name of the ConfigMap.
	// +required
	Name string `json:"name"`

	// state is Accepted if the catalog uses the ConfigMap, or Rejected if it does not.
	// +required
	State SourceState `json:"state"`

	// reason is the cause of the state in one word, for example Mounted or KeyMissing.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message describes the cause and how to fix it.
	// +optional
	Message string `json:"message,omitempty"`
}
