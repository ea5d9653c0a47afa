package v1alpha1

import "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"

// IstioConfig is accepted from older clients and replaced by oauthProxy.
type IstioConfig struct {
	// authProvider has no effect.
	// +optional
	AuthProvider string `json:"authProvider,omitempty"`

	// authConfigLabels have no effect.
	// +optional
	AuthConfigLabels map[string]string `json:"authConfigLabels,omitempty"`

	// tlsMode has no effect.
	// +optional
	// +kubebuilder:default=ISTIO_MUTUAL
	TLSMode string `json:"tlsMode,omitempty"`

	// audiences have no effect.
	// +optional
	// +listType=atomic
	Audiences []string `json:"audiences,omitempty"`

	// gateway becomes the Route of the proxy.
	// +optional
	Gateway *GatewayConfig `json:"gateway,omitempty"`
}

// GatewayConfig becomes the Route of the proxy.
type GatewayConfig struct {
	// domain becomes the one of the Route.
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

	// rest says whether there is a Route, and its port.
	// +required
	REST ServerConfig `json:"rest"`

	// grpc has no effect.
	// +required
	GRPC ServerConfig `json:"grpc"`
}

// ServerConfig is one server behind the gateway.
type ServerConfig struct {
	// port that is published. It counts when tls is set, too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// tls makes port count.
	// +optional
	TLS *TLSServerSettings `json:"tls,omitempty"`

	// gatewayRoute says whether there is a Route.
	// +optional
	GatewayRoute v1beta1.ServiceRoute `json:"gatewayRoute,omitempty"`
}

// TLSServerSettings have no effect beyond their presence.
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
