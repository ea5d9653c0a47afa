package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Kind is the kind of a ModelRegistry.
const Kind = v1beta1.Kind

// ModelRegistry describes a Model Registry server, its database, and how it is published.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mr,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="Version v1alpha1 of the ModelRegistry API is deprecated and will be removed in a future release. Please use v1beta1 instead."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Istio",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="IstioAvailable")].status`
// +kubebuilder:printcolumn:name="Gateway",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="GatewayAvailable")].status`
// +kubebuilder:printcolumn:name="OAuthProxy",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="OAuthProxyAvailable")].status`
// +kubebuilder:printcolumn:name="Status",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="Available")].message`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=2,JSONPath=`.status.hostsStr`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ModelRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the registry. A change that affects the pod template, such as another image or
	// database, restarts the server. So does a change to a Secret or ConfigMap that the database settings reference.
	// +optional
	Spec ModelRegistrySpec `json:"spec,omitzero"`

	// status is the most recently observed state of the registry.
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

// ModelRegistrySpec defines the desired state of a registry. It requires a database: postgres or mysql.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.istio) && has(self.oauthProxy))",message="Cannot use both istio and oauthProxy"
type ModelRegistrySpec struct {
	// rest configures the REST server.
	// +required
	Rest v1beta1.RestSpec `json:"rest"`

	// grpc has no effect. It is accepted for compatibility with older objects.
	// +required
	GRPC v1beta1.GRPCSpec `json:"grpc"`

	// postgres configures an existing PostgreSQL database. It takes precedence over mysql.
	// +optional
	Postgres *PostgresConfig `json:"postgres,omitempty"`

	// mysql configures an existing MySQL or MariaDB database.
	// +optional
	MySQL *v1beta1.MySQLConfig `json:"mysql,omitempty"`

	// enable_database_upgrade has no effect. It is accepted for compatibility with older objects.
	// +optional
	EnableDatabaseUpgrade *bool `json:"enable_database_upgrade,omitempty"`

	// downgrade_db_schema_version has no effect. It is accepted for compatibility with older objects.
	// +optional
	DowngradeDbSchemaVersion *int64 `json:"downgrade_db_schema_version,omitempty"`

	// istio is accepted for compatibility with older clients. The operator replaces it with oauthProxy.
	// +optional
	Istio *IstioConfig `json:"istio,omitempty"`

	// oauthProxy runs a proxy in front of the server. The proxy authenticates clients and accepts only those that are
	// allowed to get the Service of the registry. Without a proxy, every client that can reach the Service can read and
	// write. On OpenShift, every registry has a proxy.
	// +optional
	OAuthProxy *v1beta1.ProxyConfig `json:"oauthProxy,omitempty"`
}

// PostgresConfig describes an existing PostgreSQL database.
type PostgresConfig struct {
	// host is the host name of an existing PostgreSQL server, for example db.example.com.
	// +optional
	Host string `json:"host,omitempty"`

	// hostAddress is the IP address of an existing PostgreSQL server. It is used if host is empty.
	// +optional
	HostAddress string `json:"hostAddress,omitempty"`

	// port is the port of the PostgreSQL server. Defaults to 5432.
	// +optional
	// +kubebuilder:default=5432
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// username is the name of the database user.
	// +optional
	Username string `json:"username,omitempty"`

	// passwordSecret selects the key of a Secret that contains the password. The password becomes part of a URL, so write
	// the characters / ? # % and the space as %2F %3F %23 %25 and %20.
	// +optional
	PasswordSecret *v1beta1.SecretKeyValue `json:"passwordSecret,omitempty"`

	// database is the name of the database.
	// +required
	Database string `json:"database"`

	// skipDBCreation has no effect. It is accepted for compatibility with older objects.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// sslMode determines how the connection to the database is encrypted and verified, as sslmode in PostgreSQL clients.
	// Defaults to disable. Use verify-full with a CA certificate to verify the certificate and the host name of the
	// server.
	// +optional
	// +kubebuilder:default=disable
	SSLMode v1beta1.SSLMode `json:"sslMode,omitempty"`

	// sslCertificateSecret selects the key of a Secret that contains the client certificate.
	// +optional
	SSLCertificateSecret *v1beta1.SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret selects the key of a Secret that contains the private key of the client certificate.
	// +optional
	SSLKeySecret *v1beta1.SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslPasswordSecret is not used by the server. It is accepted for compatibility with older objects.
	// +optional
	SSLPasswordSecret *v1beta1.SecretKeyValue `json:"sslPasswordSecret,omitempty"`

	// sslRootCertificateConfigMap selects the key of a ConfigMap that contains the CA certificate of the database server.
	// It takes precedence over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *v1beta1.ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret selects the key of a Secret that contains the CA certificate of the database server.
	// +optional
	SSLRootCertificateSecret *v1beta1.SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`
}
