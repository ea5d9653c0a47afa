package v1alpha1

import corev1 "k8s.io/api/core/v1"

// RayCluster holds the settings of the component raycluster. What it names wins over the ConfigMap
// codeflare-operator-config in the manager's namespace, which is followed while the manager runs.
type RayCluster struct {
	// RayDashboardOAuthEnabled restricts the dashboard to users who may get pods of the namespace: an OAuth proxy is in front of
	// it on OpenShift, kube-rbac-proxy elsewhere. Default: true.
	// +optional
	RayDashboardOAuthEnabled *bool `json:"rayDashboardOAuthEnabled,omitempty"`

	// MTLSEnabled secures the traffic between Ray pods with certificates. Default: true.
	// +optional
	MTLSEnabled *bool `json:"mTLSEnabled,omitempty"`

	// IngressDomain is the domain of host names. Default: the domain in the Ingress configuration of OpenShift; elsewhere, if exposure.kind
	// is ingress, exposure.ingressDomain.
	// +optional
	IngressDomain string `json:"ingressDomain,omitempty"`

	// OAuthProxyImage is the image of the sidecar in front of the dashboard on OpenShift. Default: OAUTH_PROXY_IMAGE, else the
	// image of the CodeFlare operator.
	// +optional
	OAuthProxyImage string `json:"oauthProxyImage,omitempty"`

	// CertGeneratorImage is the image of create-cert, the init container of Ray pods. Default: CERT_GENERATOR_IMAGE, else the
	// image of the CodeFlare operator.
	// +optional
	CertGeneratorImage string `json:"certGeneratorImage,omitempty"`

	// AuthProxyImage is the image of the sidecar in front of the dashboard, except on OpenShift. Default:
	// RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE or KUBE_RBAC_PROXY_IMAGE, else a release of kube-rbac-proxy.
	// +optional
	AuthProxyImage string `json:"authProxyImage,omitempty"`

	// SidecarResources are the resources of the sidecar, unless the user sets them in the cluster. A list of requests or
	// limits replaces the whole default list. Default: 20m to 500m of CPU and 64Mi to 256Mi of memory.
	// +optional
	SidecarResources *corev1.ResourceRequirements `json:"sidecarResources,omitempty"`

	// CertificateResources are the resources of create-cert, in the same way. Default: 20m to 500m of CPU and 32Mi to 128Mi of memory.
	// +optional
	CertificateResources *corev1.ResourceRequirements `json:"certificateResources,omitempty"`

	// Certificates selects who issues the certificates of new clusters: operator (this manager), pod (each pod, with the key
	// of the CA, as with the CodeFlare operator) or cert-manager. Default: operator.
	// +optional
	Certificates string `json:"certificates,omitempty"`

	// CertificateKeyAlgorithm is the key algorithm of the certificates of pods: ECDSA or RSA. Default: ECDSA.
	// +optional
	CertificateKeyAlgorithm string `json:"certificateKeyAlgorithm,omitempty"`

	// CertManagerIssuer is the issuer of the certificates if certificates is cert-manager.
	// +optional
	CertManagerIssuer *IssuerReference `json:"certManagerIssuer,omitempty"`

	// ClusterDomain is the DNS domain of Services in the cluster. Default: cluster.local.
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// KubeRayNamespaces are the namespaces of KubeRay, from which it can reach the dashboards. Default: the namespace of the
	// ServiceAccount in ClusterRoleBinding kuberay-operator, the namespace of the manager if it contains Deployment
	// kuberay-operator, and the namespace of the platform. If none of these is known, KubeRay cannot reach the dashboards.
	// +optional
	KubeRayNamespaces []string `json:"kubeRayNamespaces,omitempty"`

	// IngressNamespaces are the namespaces of ingress controllers, from which they can reach Ray Serve and dashboards without a
	// sidecar. Default: on OpenShift the namespace of its router, elsewhere none.
	// +optional
	IngressNamespaces []string `json:"ingressNamespaces,omitempty"`

	// MonitoringNamespaces are the namespaces from which metrics can be scraped. Default: openshift-monitoring and
	// openshift-user-workload-monitoring.
	// +optional
	MonitoringNamespaces []string `json:"monitoringNamespaces,omitempty"`

	// OpenToNamespace allows all pods of the namespace to reach the dashboard and the client port without the proxy, as with the
	// CodeFlare operator; the submitters of RayJobs require it. Default: true.
	// +optional
	OpenToNamespace *bool `json:"openToNamespace,omitempty"`

	// Publish selects how a dashboard is published: auto (on OpenShift a Route, only with a sidecar; elsewhere an HTTPRoute if
	// exposure.kind is gateway, otherwise an Ingress), open (like auto, and also without a sidecar if OAuth is disabled), gateway
	// (HTTPRoute to the Gateway below, whatever exposure.kind is) or none. Default: auto.
	// +optional
	Publish string `json:"publish,omitempty"`

	// KubeRaySecurity selects what to do if users let KubeRay secure their cluster (spec.authOptions, tlsOptions and
	// networkPolicy): warn (a warning; the operator adds its sidecar and NetworkPolicies, but no certificates), trust (the
	// operator adds none of these, and publishes a dashboard that is protected only by a token of Ray) or deny (new clusters
	// of this kind are refused). Default: warn.
	// +optional
	KubeRaySecurity string `json:"kubeRaySecurity,omitempty"`

	// AllowPause makes the annotation platform.opendatahub.io/paused take effect on a RayCluster even if its namespace does not
	// have it. Editors of RayClusters can set this annotation. Default: false.
	// +optional
	AllowPause *bool `json:"allowPause,omitempty"`

	// GatewayName is the Gateway to which HTTPRoutes attach. Default: that of registries if exposure.kind is gateway, else
	// data-science-gateway.
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// GatewayNamespace is the namespace of that Gateway. Default: that of registries if exposure.kind is gateway, else
	// openshift-ingress.
	// +optional
	GatewayNamespace string `json:"gatewayNamespace,omitempty"`
}

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// Name of the issuer.
	Name string `json:"name"`

	// Kind is Issuer or ClusterIssuer. Default: ClusterIssuer.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Group of the issuer. Default: cert-manager.io.
	// +optional
	Group string `json:"group,omitempty"`
}
