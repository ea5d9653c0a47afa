package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Kind is the kind of a Catalog.
const Kind = "Catalog"

// CatalogName is the only name that a new Catalog may bear.
const CatalogName = "catalog"

// Finalizer keeps a Catalog until what stands outside of its namespace is gone.
const Finalizer = "catalog.aihub.opendatahub.io/finalizer"

// Catalog is the catalog server with its database and its sources.
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

	// spec is the wanted server; empty for the usual one.
	// +optional
	// +nullable
	Spec CatalogSpec `json:"spec,omitzero"`

	// status is what was observed last.
	// +optional
	Status CatalogStatus `json:"status,omitzero"`
}

// ConditionsRef gives access to the conditions of the status.
func (c *Catalog) ConditionsRef() *[]metav1.Condition { return &c.Status.Conditions }

// ObserveGeneration records that the present generation was reconciled.
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

// CatalogSpec is the wanted server.
type CatalogSpec struct {
	// resources of the containers.
	// +optional
	Resources *CatalogResources `json:"resources,omitempty"`

	// database in which the server keeps what it read from its sources.
	// +optional
	Database *CatalogDatabase `json:"database,omitempty"`

	// access says who may read the catalog.
	// +optional
	Access *CatalogAccess `json:"access,omitempty"`

	// authProxy is the proxy in front of the server. It authenticates clients.
	// +optional
	AuthProxy *CatalogAuthProxy `json:"authProxy,omitempty"`

	// proxy is the outbound proxy of the server. If it sets none of httpProxy, httpsProxy and noProxy, the server uses the cluster-wide
	// proxy of OpenShift. An empty proxy, {}, means no proxy at all.
	// +optional
	Proxy *CatalogProxy `json:"proxy,omitempty"`

	// catalogDataImage selects the image with the descriptions of models by its digest or tag; absent for the image of the release.
	// The registry and the repository are always those of the release.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.trim().matches(r'^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$')`,messageExpression=`'catalogDataImage is "' + self + '"; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository'`
	CatalogDataImage string `json:"catalogDataImage,omitempty"`

	// benchmarkDataImage selects the image with performance data of models, as catalogDataImage does.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.trim().matches(r'^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$')`,messageExpression=`'benchmarkDataImage is "' + self + '"; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository'`
	BenchmarkDataImage string `json:"benchmarkDataImage,omitempty"`

	server.Pods `json:",inline"`
}

// Switch turns something on or off.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

const (
	// Enabled is on.
	Enabled Switch = "Enabled"
	// Disabled is off.
	Disabled Switch = "Disabled"
)

// CatalogResources are those of the containers.
type CatalogResources struct {
	// catalog is the container of the server. claims are ignored.
	// +optional
	Catalog *corev1.ResourceRequirements `json:"catalog,omitempty"`

	// postgres is the container of the database. claims are ignored.
	// +optional
	Postgres *corev1.ResourceRequirements `json:"postgres,omitempty"`

	// kubeRBACProxy is the container of the proxy in front of the server. claims are ignored.
	// +optional
	KubeRBACProxy *corev1.ResourceRequirements `json:"kubeRBACProxy,omitempty"`

	// init are the containers that copy the data of the catalog before the server starts. claims are ignored.
	// +optional
	Init *corev1.ResourceRequirements `json:"init,omitempty"`
}

// CatalogDatabase is a PostgreSQL database: one that is run beside the server, or an existing one.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.external) && has(self.connection))",message="external and connection are two ways to an existing database: set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.serverTLS) || !(has(self.external) || has(self.connection))",message="serverTLS is that of the database that is run beside the server: remove it, or remove external and connection"
type CatalogDatabase struct {
	// volume of the database that is run beside the server. Its content is created again from the sources.
	// +optional
	Volume *CatalogVolume `json:"volume,omitempty"`

	// external is an existing database; none is run beside the server then.
	// +optional
	External *ExternalDatabase `json:"external,omitempty"`

	// connection is an existing database, described by a Secret alone; none is run beside the server then.
	// +optional
	Connection *DatabaseConnection `json:"connection,omitempty"`

	// serverTLS encrypts the connections to the database that is run beside the server, with a certificate of a CA of the operator that
	// the server verifies. Disabled, which is also the meaning of an empty field, leaves them in plain text.
	// +optional
	ServerTLS Switch `json:"serverTLS,omitempty"`
}

// CatalogVolume is a volume that lives as long as its pod.
type CatalogVolume struct {
	// sizeLimit of the volume.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",message="sizeLimit must be greater than zero"
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// ExternalDatabase is an existing PostgreSQL database.
type ExternalDatabase struct {
	// host of the server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// port of the server, 5432 when it is absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// secretName names a Secret with the keys database-name, database-user and database-password.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// sslMode protects the connection; absent for what the server does by default.
	// +optional
	// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
	SSLMode string `json:"sslMode,omitempty"`
}

// CatalogAccess says who may read the catalog.
type CatalogAccess struct {
	// authenticated lets every user of the cluster read it, which is also the meaning of an empty field. Disabled leaves it to
	// role bindings that administrators make.
	// +optional
	Authenticated Switch `json:"authenticated,omitempty"`
}

// CatalogAuthProxy authenticates clients.
type CatalogAuthProxy struct {
	// mode runs a proxy in front of the server, which is also the meaning of an empty field.
	// +optional
	Mode Switch `json:"mode,omitempty"`

	// certificateSecretName names a Secret with the serving certificate, in the keys tls.crt and tls.key; absent for the one
	// that the platform fills.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CertificateSecretName string `json:"certificateSecretName,omitempty"`
}

// CatalogProxy is the outbound proxy of the server. Everyone who can read the Catalog can read it, so it should contain no
// password.
type CatalogProxy struct {
	// httpProxy is the proxy for HTTP requests, such as http://proxy.example.com:3128; empty for none.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(((https?|socks5h?)://)?([^/?#@\s]+@)?[^/?#@\s]+/?)?$')`,message="httpProxy must be the address of a proxy without a path, such as http://proxy.example.com:3128, or empty for none"
	HTTPProxy *string `json:"httpProxy,omitempty"`

	// httpsProxy is the proxy for HTTPS requests, such as http://proxy.example.com:3128; empty for none.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(((https?|socks5h?)://)?([^/?#@\s]+@)?[^/?#@\s]+/?)?$')`,message="httpsProxy must be the address of a proxy without a path, such as http://proxy.example.com:3128, or empty for none"
	HTTPSProxy *string `json:"httpsProxy,omitempty"`

	// noProxy is a comma-separated list of destinations that are reached without a proxy: host names, domains with a leading dot,
	// IP addresses and CIDRs, such as .svc,.cluster.local,10.0.0.0/8.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	NoProxy *string `json:"noProxy,omitempty"`

	// mode of the proxy that authenticates clients; the older name of authProxy.mode, which takes precedence.
	// +optional
	Mode Switch `json:"mode,omitempty"`

	// certificateSecretName of the proxy that authenticates clients; the older name of authProxy.certificateSecretName, which takes
	// precedence.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CertificateSecretName string `json:"certificateSecretName,omitempty"`
}

// CatalogStatus is what was observed last.
type CatalogStatus struct {
	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the catalog.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// sources tells for each ConfigMap with sources whether it is used.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Sources []CatalogSource `json:"sources,omitempty"`

	// sourcesOmitted is how many more there are than sources has room for.
	// +optional
	SourcesOmitted int32 `json:"sourcesOmitted,omitempty"`

	server.Scale `json:",inline"`
}

// SourceState says whether a source is used.
//
// +kubebuilder:validation:Enum=Accepted;Rejected
type SourceState string

const (
	// SourceAccepted is used.
	SourceAccepted SourceState = "Accepted"
	// SourceRejected is not used.
	SourceRejected SourceState = "Rejected"
)

// CatalogSource is what became of one ConfigMap with sources.
type CatalogSource struct {
	// name of the ConfigMap.
	// +required
	Name string `json:"name"`

	// state says whether it is used.
	// +required
	State SourceState `json:"state"`

	// reason is one word for the cause.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message names the cause and the fix.
	// +optional
	Message string `json:"message,omitempty"`
}
