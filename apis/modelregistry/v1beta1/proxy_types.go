package v1beta1

import corev1 "k8s.io/api/core/v1"

// ProxyConfig is a proxy in front of the REST server that authenticates clients.
//
// +kubebuilder:validation:XValidation:rule="has(self.tlsCertificateSecret) == has(self.tlsKeySecret)",message="tlsCertificateSecret and tlsKeySecret MUST be set together"
type ProxyConfig struct {
	// port on which the proxy listens, and of the Service.
	// +optional
	// +kubebuilder:default=8443
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// tlsCertificateSecret holds the serving certificate; absent for the Secret that the platform fills.
	// +optional
	TLSCertificateSecret *SecretKeyValue `json:"tlsCertificateSecret,omitempty"`

	// tlsKeySecret holds the key of the serving certificate.
	// +optional
	TLSKeySecret *SecretKeyValue `json:"tlsKeySecret,omitempty"`

	// serviceRoute makes a Route to the proxy, on OpenShift.
	// +optional
	// +kubebuilder:default=enabled
	ServiceRoute ServiceRoute `json:"serviceRoute,omitempty"`

	// domain of the Route; absent for the one of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*)?$`
	Domain string `json:"domain,omitempty"`

	// routePort is the port that is published for the Route.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	RoutePort *int32 `json:"routePort,omitempty"`

	// image overrides the one that the platform ships.
	// +optional
	Image string `json:"image,omitempty"`

	// resources of the container. claims are ignored.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}
