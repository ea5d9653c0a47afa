package v1alpha1

// DatabaseConnection describes an existing PostgreSQL database by the Secret that a database operator writes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.caSecretName) && size(self.caSecretName) > 0) || (has(self.sslMode) && self.sslMode in ['verify-ca', 'verify-full'])",message="caSecretName is used only when the server is verified: set sslMode to verify-full"
type DatabaseConnection struct {
	// secretName is the name of a Secret in the namespace of the Catalog with the keys host, port, dbname, user and
	// password. CloudNativePG (CLUSTER-app) and Crunchy Postgres for Kubernetes (CLUSTER-pguser-USER) write such Secrets.
	// After a change of the Secret, restart the Deployment model-catalog.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// sslMode determines how the connection to the database is encrypted and verified, as sslmode in PostgreSQL clients.
	// If it is empty, the default of the catalog server applies.
	// +optional
	// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
	SSLMode string `json:"sslMode,omitempty"`

	// caSecretName is the name of a Secret that contains the CA certificate of the database in the key ca.crt, for example
	// CLUSTER-ca of CloudNativePG or CLUSTER-cluster-cert of Crunchy Postgres for Kubernetes. It requires the sslMode
	// verify-ca or verify-full.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CASecretName string `json:"caSecretName,omitempty"`
}
