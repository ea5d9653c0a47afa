package v1alpha1

import "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"

// IstioConfig is accepted for compatibility with older clients. The operator replaces it with oauthProxy.
type IstioConfig struct {
	// authProvider has no effect.
	// +optional
	AuthProvider string `json:"authProvider,omitempty"`

	// authConfigLabels has no effect.
	// +optional
	AuthConfigLabels map[string]string `json:"authConfigLabels,omitempty"`

	// tlsMode has no effect.
	// +optional
	// +kubebuilder:default=ISTIO_MUTUAL
	TLSMode string `json:"tlsMode,omitempty"`

	// audiences has no effect.
	// +optional
	// +listType=atomic
	Audiences []string `json:"audiences,omitempty"`

	// gateway is converted to the Route of the proxy. Without it, oauthProxy.serviceRoute is disabled.
	// +optional
	Gateway *GatewayConfig `json:"gateway,omitempty"`
}

// GatewayConfig is converted to the Route of the proxy.
type GatewayConfig struct {
	// domain becomes oauthProxy.domain, the domain of the Route.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*)?$`
	Domain string `json:"domain,omitempty"`

	// istioIngress has no effect.
	// +optional
	IstioIngress string `json:"istioIngress,omitempty"`

	// controlPlane has no effect.
	// +optional
	ControlPlane string `json:"controlPlane,omitempty"`

	// rest determines whether a Route is created, and its port.
	// +required
	REST ServerConfig `json:"rest"`

	// grpc has no effect.
	// +required
	GRPC ServerConfig `json:"grpc"`
}

// ServerConfig configures a server behind the gateway.
type ServerConfig struct {
	// port becomes oauthProxy.routePort if tls is set. Otherwise, it has no effect.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// tls makes port take effect. Its fields have no effect.
	// +optional
	TLS *TLSServerSettings `json:"tls,omitempty"`

	// gatewayRoute determines whether a Route is created. If disabled, oauthProxy.serviceRoute is disabled.
	// +optional
	GatewayRoute v1beta1.ServiceRoute `json:"gatewayRoute,omitempty"`
}

// TLSServerSettings only makes the port of its server take effect. Its fields have no effect.
type TLSServerSettings struct {
	// mode has no effect.
	// +optional
	// +kubebuilder:default=SIMPLE
	// +kubebuilder:validation:Enum=SIMPLE;MUTUAL;ISTIO_MUTUAL;OPTIONAL_MUTUAL
	Mode string `json:"mode,omitempty"`

	// credentialName has no effect.
	// +optional
	CredentialName string `json:"credentialName,omitempty"`
}
