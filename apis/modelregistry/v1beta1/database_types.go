package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SecretKeyValue names one key of a Secret in the namespace of the registry.
type SecretKeyValue struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`

	// key in the Secret.
	// +required
	Key string `json:"key"`
}

// ConfigMapKeyValue names one key of a ConfigMap in the namespace of the registry.
type ConfigMapKeyValue struct {
	// name of the ConfigMap.
	// +required
	Name string `json:"name"`

	// key in the ConfigMap.
	// +required
	Key string `json:"key"`
}

// SSLMode says how a connection to PostgreSQL is protected.
//
// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
type SSLMode string

// RetentionPolicy says what becomes of the data of a generated database when its registry is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetainData keeps volume and credentials; a new registry of the same name finds them again.
	RetainData RetentionPolicy = "Retain"
	// DeleteData deletes volume and credentials with the registry.
	DeleteData RetentionPolicy = "Delete"
)

// PostgresConfig is a PostgreSQL database: an existing one, or one that is generated.
//
// The first rule has tests of presence for its message's sake: without them an absent field would be an error of its own.
//
// +kubebuilder:validation:XValidation:rule="(has(self.generateDeployment) && self.generateDeployment) || (has(self.host) && size(self.host) > 0) || (has(self.hostAddress) && size(self.hostAddress) > 0) || (has(self.connectionSecretName) && size(self.connectionSecretName) > 0)",message="GenerateDeployment must be set to true if host/hostAddress are not provided"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || size(self.database) == 0 || (has(self.username) && size(self.username) > 0)",message="Username must be set if database is specified"
// +kubebuilder:validation:XValidation:rule="!(has(self.generateDeployment) && self.generateDeployment) || ((!has(self.host) || size(self.host) == 0) && (!has(self.hostAddress) || size(self.hostAddress) == 0))",message="host and hostAddress must not be set when generateDeployment is true"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionSecretName) || size(self.connectionSecretName) == 0 || !((has(self.generateDeployment) && self.generateDeployment) || (has(self.host) && size(self.host) > 0) || (has(self.hostAddress) && size(self.hostAddress) > 0) || (has(self.username) && size(self.username) > 0) || (has(self.database) && size(self.database) > 0) || has(self.passwordSecret))",message="connectionSecretName is used instead of generateDeployment, host, hostAddress, username, database and passwordSecret: set one or the other"
// +kubebuilder:validation:XValidation:rule="(has(self.generateDeployment) && self.generateDeployment) || !(has(self.resources) || has(self.serverTLS) || has(self.majorVersion) || has(self.backup))",message="resources, serverTLS, majorVersion and backup are those of a generated database: remove them, or set generateDeployment to true"
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

	// username by which the registry connects. A generated database is created for it.
	// +optional
	Username string `json:"username,omitempty"`

	// passwordSecret holds the password as it stands in a URL: where it has one of / ? # % or a space, the Secret holds %2F %3F
	// %23 %25 or %20 instead.
	// +optional
	PasswordSecret *SecretKeyValue `json:"passwordSecret,omitempty"`

	// database to use. A generated database is created with it.
	// +optional
	Database string `json:"database,omitempty"`

	// skipDBCreation is accepted from older objects and has no effect.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// generateDeployment makes a PostgreSQL server for this registry.
	// +optional
	GenerateDeployment *bool `json:"generateDeployment,omitempty"`

	// retentionPolicy says what becomes of the data of a generated database when the registry is deleted: Retain, which is
	// also the meaning of an empty field, or Delete.
	// +optional
	RetentionPolicy RetentionPolicy `json:"retentionPolicy,omitempty"`

	// storage of a generated database. A larger size makes its volume grow, if the class of the volume allows that.
	// +optional
	Storage *PostgresStorage `json:"storage,omitempty"`

	// sslMode protects the connection.
	// +optional
	// +kubebuilder:default=disable
	SSLMode SSLMode `json:"sslMode,omitempty"`

	// sslCertificateSecret holds the certificate of the client.
	// +optional
	SSLCertificateSecret *SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret holds the key of the client.
	// +optional
	SSLKeySecret *SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslPasswordSecret is accepted from older objects; the server does not use it.
	// +optional
	SSLPasswordSecret *SecretKeyValue `json:"sslPasswordSecret,omitempty"`

	// sslRootCertificateConfigMap holds the CA of the server. It is preferred over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret holds the CA of the server.
	// +optional
	SSLRootCertificateSecret *SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`

	// image overrides the one that the platform ships, for a generated database.
	// +optional
	Image string `json:"image,omitempty"`

	// connectionSecretName names a Secret with the way to an existing database, in the form that CloudNativePG (CLUSTER-app) and Crunchy
	// Postgres for Kubernetes (CLUSTER-pguser-USER) write. Host, port, database, user and password are those of its key uri; port is
	// ignored. sslMode applies, which is disable unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConnectionSecretName string `json:"connectionSecretName,omitempty"`

	// resources of the container of a generated database. claims are ignored.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// serverTLS encrypts the connections to a generated database, with a certificate of a CA of the operator that every client
	// verifies. Disabled, which is also the meaning of an empty field, leaves them in plain text.
	// +optional
	ServerTLS Switch `json:"serverTLS,omitempty"`

	// majorVersion of PostgreSQL in image, for an image whose name does not tell it. The operator never runs another major version than
	// the one that wrote the data.
	// +optional
	// +kubebuilder:validation:Minimum=9
	// +kubebuilder:validation:Maximum=99
	MajorVersion *int32 `json:"majorVersion,omitempty"`

	// backup of a generated database.
	// +optional
	Backup *PostgresBackup `json:"backup,omitempty"`
}

// PostgresStorage is the volume of a generated database.
type PostgresStorage struct {
	// size of the volume.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",message="size must be greater than zero"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName of the volume; absent for the default class of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// MySQLConfig is an existing MySQL or MariaDB database.
type MySQLConfig struct {
	// host name of the server.
	// +required
	Host string `json:"host"`

	// port of the server.
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// username by which the registry connects.
	// +required
	Username string `json:"username"`

	// passwordSecret holds the password.
	// +optional
	PasswordSecret *SecretKeyValue `json:"passwordSecret,omitempty"`

	// database to use.
	// +required
	Database string `json:"database"`

	// skipDBCreation is accepted from older objects and has no effect.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// sslCertificateSecret holds the certificate of the client.
	// +optional
	SSLCertificateSecret *SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret holds the key of the client.
	// +optional
	SSLKeySecret *SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslRootCertificateConfigMap holds the CA of the server. It is preferred over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret holds the CA of the server.
	// +optional
	SSLRootCertificateSecret *SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`

	// sslRootCertificatesConfigMapName names a ConfigMap whose keys are CAs. It is preferred over sslRootCertificatesSecretName.
	// +optional
	SSLRootCertificatesConfigMapName string `json:"sslRootCertificatesConfigMapName,omitempty"`

	// sslRootCertificatesSecretName names a Secret whose keys are CAs.
	// +optional
	SSLRootCertificatesSecretName string `json:"sslRootCertificatesSecretName,omitempty"`

	// sslCipher lists the allowed ciphers.
	// +optional
	SSLCipher string `json:"sslCipher,omitempty"`

	// verifyServerCert says whether the certificate of the server is verified; absent for what the server does by default.
	// +optional
	VerifyServerCert *bool `json:"verifyServerCert,omitempty"`
}
