package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// SecretKeyValue selects a key of a Secret in the namespace of the registry. If the value of the key changes, the pods
// that use it are restarted. The proxy reloads a serving certificate without a restart.
type SecretKeyValue struct {
	// name is the name of the Secret.
	// +required
	Name string `json:"name"`

	// key is the key in the Secret.
	// +required
	Key string `json:"key"`
}

// ConfigMapKeyValue selects a key of a ConfigMap in the namespace of the registry.
type ConfigMapKeyValue struct {
	// name is the name of the ConfigMap.
	// +required
	Name string `json:"name"`

	// key is the key in the ConfigMap.
	// +required
	Key string `json:"key"`
}

// SSLMode is the sslmode of a connection to PostgreSQL.
//
// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
type SSLMode string

// RetentionPolicy determines what happens to the data of a generated database when its registry is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetainData keeps the volume and the credentials. A new registry of the same name uses them again.
	RetainData RetentionPolicy = "Retain"
	// DeleteData deletes the volume and the credentials with the registry.
	DeleteData RetentionPolicy = "Delete"
)

// PostgresConfig describes a PostgreSQL database: an existing database, or a database that the operator runs, called a
// generated database.
//
// The first rule tests whether each field is present, because a missing field would otherwise cause an error with
// another message.
//
// +kubebuilder:validation:XValidation:rule="(has(self.generateDeployment) && self.generateDeployment) || (has(self.host) && size(self.host) > 0) || (has(self.hostAddress) && size(self.hostAddress) > 0) || (has(self.connectionSecretName) && size(self.connectionSecretName) > 0)",message="GenerateDeployment must be set to true if host/hostAddress are not provided"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || size(self.database) == 0 || (has(self.username) && size(self.username) > 0)",message="Username must be set if database is specified"
// +kubebuilder:validation:XValidation:rule="!(has(self.generateDeployment) && self.generateDeployment) || ((!has(self.host) || size(self.host) == 0) && (!has(self.hostAddress) || size(self.hostAddress) == 0))",message="host and hostAddress must not be set when generateDeployment is true"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionSecretName) || size(self.connectionSecretName) == 0 || !((has(self.generateDeployment) && self.generateDeployment) || (has(self.host) && size(self.host) > 0) || (has(self.hostAddress) && size(self.hostAddress) > 0) || (has(self.username) && size(self.username) > 0) || (has(self.database) && size(self.database) > 0) || has(self.passwordSecret))",message="connectionSecretName is used instead of generateDeployment, host, hostAddress, username, database and passwordSecret: set one or the other"
// +kubebuilder:validation:XValidation:rule="(has(self.generateDeployment) && self.generateDeployment) || !(has(self.resources) || has(self.serverTLS) || has(self.majorVersion) || has(self.backup))",message="resources, serverTLS, majorVersion and backup are those of a generated database: remove them, or set generateDeployment to true"
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

	// username is the name of the database user. A generated database is created with this user, which defaults to
	// modelregistry. Later changes have no effect on a generated database.
	// +optional
	Username string `json:"username,omitempty"`

	// passwordSecret selects the key of a Secret that contains the password. The password becomes part of a URL, so write
	// the characters / ? # % and the space as %2F %3F %23 %25 and %20.
	// +optional
	PasswordSecret *SecretKeyValue `json:"passwordSecret,omitempty"`

	// database is the name of the database. A generated database is created with this name, which defaults to
	// model_registry. Later changes have no effect on a generated database.
	// +optional
	Database string `json:"database,omitempty"`

	// skipDBCreation has no effect. It is accepted for compatibility with older objects.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// generateDeployment makes the operator run a PostgreSQL server for this registry if true: one pod with one volume,
	// called a generated database. Defaults to false. The fields host, hostAddress and connectionSecretName must be empty
	// if it is true.
	// +optional
	GenerateDeployment *bool `json:"generateDeployment,omitempty"`

	// retentionPolicy is what happens to the data of a generated database when the registry is deleted. With Retain, the
	// default, the volume and the credentials are kept, and a new registry of the same name uses them again. With Delete,
	// they are deleted. Backups are always kept.
	// +optional
	RetentionPolicy RetentionPolicy `json:"retentionPolicy,omitempty"`

	// storage describes the PersistentVolumeClaim of a generated database. Defaults to 5Gi of the default StorageClass.
	// Increasing the size expands the volume if its StorageClass allows expansion. The condition StorageInSync reports
	// other differences.
	// +optional
	Storage *PostgresStorage `json:"storage,omitempty"`

	// sslMode determines how the connection to the database is encrypted and verified, as sslmode in PostgreSQL clients.
	// Defaults to disable. Use verify-full with a CA certificate to verify the certificate and the host name of the
	// server. For a generated database, set serverTLS instead.
	// +optional
	// +kubebuilder:default=disable
	SSLMode SSLMode `json:"sslMode,omitempty"`

	// sslCertificateSecret selects the key of a Secret that contains the client certificate.
	// +optional
	SSLCertificateSecret *SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret selects the key of a Secret that contains the private key of the client certificate.
	// +optional
	SSLKeySecret *SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslPasswordSecret is not used by the server. It is accepted for compatibility with older objects.
	// +optional
	SSLPasswordSecret *SecretKeyValue `json:"sslPasswordSecret,omitempty"`

	// sslRootCertificateConfigMap selects the key of a ConfigMap that contains the CA certificate of the database server.
	// It takes precedence over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret selects the key of a Secret that contains the CA certificate of the database server.
	// +optional
	SSLRootCertificateSecret *SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`

	// image is the PostgreSQL image of a generated database. Defaults to the image that is configured for the operator.
	// The image must be compatible with the sclorg images and contain flock. A change restarts the database.
	// +optional
	Image string `json:"image,omitempty"`

	// connectionSecretName is the name of a Secret that describes an existing database in its key uri: host, port,
	// database, user and password. CloudNativePG (CLUSTER-app) and Crunchy Postgres for Kubernetes (CLUSTER-pguser-USER)
	// write such Secrets. The field port is ignored. sslMode still applies and defaults to disable. If the Secret changes,
	// the server pods are restarted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConnectionSecretName string `json:"connectionSecretName,omitempty"`

	// resources are the compute resources of the container of a generated database. Defaults to requests of 250m CPU and
	// 256Mi of memory and limits of 500m CPU and 512Mi of memory. The field claims is ignored. A change restarts the
	// database.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// serverTLS encrypts the connections to a generated database. If Enabled, the operator issues a certificate from its
	// own CA, and every client verifies the certificate. The operator renews it every eight months, which restarts the
	// database. If Disabled, the default, connections are not encrypted. A change restarts the database and the server.
	// +optional
	ServerTLS server.Switch `json:"serverTLS,omitempty"`

	// majorVersion is the major version of PostgreSQL in image, for example 16. Set it if the name of the image does not
	// contain the version. The operator never runs a major version other than the one that wrote the data.
	// +optional
	// +kubebuilder:validation:Minimum=9
	// +kubebuilder:validation:Maximum=99
	MajorVersion *int32 `json:"majorVersion,omitempty"`

	// backup schedules backups of a generated database. They are stored on a separate PersistentVolumeClaim, which is
	// never deleted. The condition BackupReady reports the result of the last backup.
	// +optional
	Backup *PostgresBackup `json:"backup,omitempty"`
}

// PostgresStorage describes the PersistentVolumeClaim of a generated database or of its backups.
type PostgresStorage struct {
	// size is the requested size of the volume, for example 10Gi. Defaults to 5Gi. It can be increased but not decreased.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",message="size must be greater than zero"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the StorageClass of the volume. Defaults to the default StorageClass of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// MySQLConfig describes an existing MySQL or MariaDB database.
type MySQLConfig struct {
	// host is the host name or IP address of the server, for example db.example.com.
	// +required
	Host string `json:"host"`

	// port is the port of the server. Defaults to 3306.
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// username is the name of the database user. It must not contain a colon.
	// +required
	Username string `json:"username"`

	// passwordSecret selects the key of a Secret that contains the password.
	// +optional
	PasswordSecret *SecretKeyValue `json:"passwordSecret,omitempty"`

	// database is the name of the database.
	// +required
	Database string `json:"database"`

	// skipDBCreation has no effect. It is accepted for compatibility with older objects.
	// +optional
	// +kubebuilder:default=false
	SkipDBCreation *bool `json:"skipDBCreation,omitempty"`

	// sslCertificateSecret selects the key of a Secret that contains the client certificate.
	// +optional
	SSLCertificateSecret *SecretKeyValue `json:"sslCertificateSecret,omitempty"`

	// sslKeySecret selects the key of a Secret that contains the private key of the client certificate.
	// +optional
	SSLKeySecret *SecretKeyValue `json:"sslKeySecret,omitempty"`

	// sslRootCertificateConfigMap selects the key of a ConfigMap that contains the CA certificate of the database server.
	// It takes precedence over sslRootCertificateSecret.
	// +optional
	SSLRootCertificateConfigMap *ConfigMapKeyValue `json:"sslRootCertificateConfigMap,omitempty"`

	// sslRootCertificateSecret selects the key of a Secret that contains the CA certificate of the database server.
	// +optional
	SSLRootCertificateSecret *SecretKeyValue `json:"sslRootCertificateSecret,omitempty"`

	// sslRootCertificatesConfigMapName is the name of a ConfigMap in which each key contains a CA certificate. It takes
	// precedence over sslRootCertificatesSecretName.
	// +optional
	SSLRootCertificatesConfigMapName string `json:"sslRootCertificatesConfigMapName,omitempty"`

	// sslRootCertificatesSecretName is the name of a Secret in which each key contains a CA certificate.
	// +optional
	SSLRootCertificatesSecretName string `json:"sslRootCertificatesSecretName,omitempty"`

	// sslCipher is the list of allowed ciphers for the connection.
	// +optional
	SSLCipher string `json:"sslCipher,omitempty"`

	// verifyServerCert determines whether the certificate of the database server is verified. If it is not set, the
	// default of the registry server applies.
	// +optional
	VerifyServerCert *bool `json:"verifyServerCert,omitempty"`
}
