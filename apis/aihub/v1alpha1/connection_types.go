package v1alpha1

// DatabaseConnection is an existing PostgreSQL database, described by the Secret that the operator of the database writes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.caSecretName) && size(self.caSecretName) > 0) || (has(self.sslMode) && self.sslMode in ['verify-ca', 'verify-full'])",message="caSecretName is used only when the server is verified: set sslMode to verify-full"
type DatabaseConnection struct {
	// secretName names a Secret with the keys host, port, dbname, user and password, as CloudNativePG (CLUSTER-app) and Crunchy
	// Postgres for Kubernetes (CLUSTER-pguser-USER) write it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// sslMode protects the connection; absent for what the server does by default.
	// +optional
	// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
	SSLMode string `json:"sslMode,omitempty"`

	// caSecretName names a Secret with the CA of the database in its key ca.crt, such as CLUSTER-ca of CloudNativePG or
	// CLUSTER-cluster-cert of Crunchy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CASecretName string `json:"caSecretName,omitempty"`
}
