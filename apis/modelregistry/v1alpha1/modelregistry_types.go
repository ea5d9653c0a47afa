package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Kind is the kind of a ModelRegistry.
const Kind = v1beta1.Kind

// ModelRegistry is one Model Registry server with its database and its publication.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mr,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="Version v1alpha1 of the ModelRegistry API is deprecated and will be removed in a future release. Please use v1beta1 instead."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Istio",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="IstioAvailable")].status`
// +kubebuilder:printcolumn:name="Gateway",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="GatewayAvailable")].status`
// +kubebuilder:printcolumn:name="OAuthProxy",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="OAuthProxyAvailable")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=2,JSONPath=`.status.hostsStr`
// +kubebuilder:printcolumn:name="Status",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="Available")].message`
type ModelRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted server.
	// +optional
	Spec ModelRegistrySpec `json:"spec,omitzero"`

	// status is what was observed last.
	// +optional
	Status v1beta1.ModelRegistryStatus `json:"status,omitzero"`
}

// ModelRegistryList is a list of ModelRegistry objects.
//
// +kubebuilder:object:root=true
type ModelRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModelRegistry `json:"items"`
}

// ModelRegistrySpec is the wanted server. It needs a database: postgres, or else mysql.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.istio) && has(self.oauthProxy))",message="Cannot use both istio and oauthProxy"
type ModelRegistrySpec struct {
	// rest is the REST server.
	// +required
	Rest v1beta1.RestSpec `json:"rest"`

	// grpc has no effect.
	// +required
	GRPC v1beta1.GRPCSpec `json:"grpc"`

	// postgres is a PostgreSQL database. It is preferred over mysql.
	// +optional
	Postgres *PostgresConfig `json:"postgres,omitempty"`

	// mysql is a MySQL or MariaDB database.
	// +optional
	MySQL *v1beta1.MySQLConfig `json:"mysql,omitempty"`

	// enable_database_upgrade has no effect.
	// +optional
	EnableDatabaseUpgrade *bool `json:"enable_database_upgrade,omitempty"`

	// downgrade_db_schema_version has no effect.
	// +optional
	DowngradeDbSchemaVersion *int64 `json:"downgrade_db_schema_version,omitempty"`

	// istio is replaced by oauthProxy.
	// +optional
	Istio *IstioConfig `json:"istio,omitempty"`

	// oauthProxy puts a proxy in front of the server that admits who may read the Service of the registry. On OpenShift
	// there is always one.
	// +optional
	OAuthProxy *v1beta1.ProxyConfig `json:"oauthProxy,omitempty"`
}

// PostgresConfig is an existing PostgreSQL database.
type PostgresConfig struct {
	// host name of the server.
	// +optional
	Host string `json:"host,omitempty"`

	// hostAddress is the numeric address of the server. It is used when host is empty.
	// +optional
	HostAddress string `json:"hostAddress,omitempty"`

	// port of the server.
	// +optional
	// +kubebuilder:default=5432
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// username by which the registry connects.
	// +optional
	Username string `json:"username,omitempty"`

	// passwordSecret holds the password.
	// +optional
	PasswordSecret *v1beta1.SecretKeyValue `json:"passwordSecret,omitempty"`

	// database to use.
	// +required
	Database string `json:"database"`

	// skipDBCreation has no effect.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// sslMode protects the connection.
	// +optional
	// +kubebuilder:default=disable
	SSLMode v1beta1.SSLMode `json:"sslMode,omitempty"`

	// sslCertificateSecret holds the certificate of the client.
	// +optional
	SSLCertificateSecret *v1beta1.SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret holds the key of the client.
	// +optional
	SSLKeySecret *v1beta1.SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslPasswordSecret is not used by the server.
	// +optional
	SSLPasswordSecret *v1beta1.SecretKeyValue `json:"sslPasswordSecret,omitempty"`

	// sslRootCertificateConfigMap holds the CA of the server. It is preferred over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *v1beta1.ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret holds the CA of the server.
	// +optional
	SSLRootCertificateSecret *v1beta1.SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`
}
