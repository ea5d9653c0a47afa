package v1beta1

import corev1 "k8s.io/api/core/v1"

// ProxyConfig configures the authenticating proxy in front of the REST server.
//
// +kubebuilder:validation:XValidation:rule="has(self.tlsCertificateSecret) == has(self.tlsKeySecret)",message="tlsCertificateSecret and tlsKeySecret MUST be set together"
type ProxyConfig struct {
	// port is the port of the proxy and of the Service. Defaults to 8443. A change restarts the server pods.
	// +optional
	// +kubebuilder:default=8443
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// tlsCertificateSecret selects the key of a Secret that contains the serving certificate. It must be set together with
	// tlsKeySecret. Defaults to the key tls.crt of the Secret N-kube-rbac-proxy for a registry N, which OpenShift or, on
	// other clusters, the operator creates.
	// +optional
	TLSCertificateSecret *SecretKeyValue `json:"tlsCertificateSecret,omitempty"`

	// tlsKeySecret selects the key of a Secret that contains the private key of the serving certificate. Defaults to the
	// key tls.key of the Secret N-kube-rbac-proxy for a registry N.
	// +optional
	TLSKeySecret *SecretKeyValue `json:"tlsKeySecret,omitempty"`

	// serviceRoute publishes the proxy through a Route on OpenShift, or through an Ingress if the operator runs with
	// --exposure=ingress. Defaults to enabled. A change does not restart pods.
	// +optional
	// +kubebuilder:default=enabled
	ServiceRoute ServiceRoute `json:"serviceRoute,omitempty"`

	// domain is the domain of the Route or Ingress, for example apps.example.com. Defaults to the domain that is
	// configured for the operator, or else to the domain of the cluster. The host name is N-rest.DOMAIN for a registry N.
	// A change does not restart pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*)?$`
	Domain string `json:"domain,omitempty"`

	// routePort is the port in the external address that the operator writes into an annotation of the Service. Defaults
	// to 443. A change does not restart pods.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	RoutePort *int32 `json:"routePort,omitempty"`

	// image is the image of the proxy. Defaults to the image that is configured for the operator. A change restarts the
	// server pods.
	// +optional
	Image string `json:"image,omitempty"`

	// resources are the compute resources of the proxy container. Defaults to requests of 100m CPU and 256Mi of memory and
	// a limit of 256Mi of memory. The field claims is ignored. A change restarts the server pods.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}
