package v1alpha1

import corev1 "k8s.io/api/core/v1"

// RayCluster holds the settings of the component raycluster. What it names wins over the ConfigMap
// codeflare-operator-config in the manager's namespace, which is followed while the manager runs.
type RayCluster struct {
	// RayDashboardOAuthEnabled lets in only those who may read pods of the namespace: an OAuth proxy stands before the
	// dashboard on OpenShift, kube-rbac-proxy elsewhere. Default: true.
	// +optional
	RayDashboardOAuthEnabled *bool `json:"rayDashboardOAuthEnabled,omitempty"`

	// MTLSEnabled secures Ray's own traffic with certificates. Default: true.
	// +optional
	MTLSEnabled *bool `json:"mTLSEnabled,omitempty"`

	// IngressDomain is the domain below which hosts are made. Default: that of OpenShift's Ingress configuration.
	// +optional
	IngressDomain string `json:"ingressDomain,omitempty"`

	// OAuthProxyImage is the sidecar before the dashboard on OpenShift. Default: OAUTH_PROXY_IMAGE, else the image of the
	// CodeFlare operator.
	// +optional
	OAuthProxyImage string `json:"oauthProxyImage,omitempty"`

	// CertGeneratorImage runs create-cert, the init container of Ray's pods. Default: CERT_GENERATOR_IMAGE, else the image of
	// the CodeFlare operator.
	// +optional
	CertGeneratorImage string `json:"certGeneratorImage,omitempty"`

	// AuthProxyImage is the sidecar before the dashboard where there is no OpenShift. Default:
	// RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE or KUBE_RBAC_PROXY_IMAGE, else a release of kube-rbac-proxy.
	// +optional
	AuthProxyImage string `json:"authProxyImage,omitempty"`

	// SidecarResources are those of the sidecar of a cluster whose user sets none: a list that is given counts as it is.
	// Default: 20m to 500m of CPU and 64Mi to 256Mi of memory.
	// +optional
	SidecarResources *corev1.ResourceRequirements `json:"sidecarResources,omitempty"`

	// CertificateResources are those of create-cert, likewise. Default: 20m to 500m of CPU and 32Mi to 128Mi of memory.
	// +optional
	CertificateResources *corev1.ResourceRequirements `json:"certificateResources,omitempty"`

	// Certificates says who issues the certificates of new clusters: operator (this manager), pod (each pod with the key of
	// the authority, as the CodeFlare operator had it) or cert-manager. Default: operator.
	// +optional
	Certificates string `json:"certificates,omitempty"`

	// CertificateKeyAlgorithm of the certificates of pods: ECDSA or RSA. Default: ECDSA.
	// +optional
	CertificateKeyAlgorithm string `json:"certificateKeyAlgorithm,omitempty"`

	// CertManagerIssuer issues the certificates where certificates is cert-manager.
	// +optional
	CertManagerIssuer *IssuerReference `json:"certManagerIssuer,omitempty"`

	// ClusterDomain ends the names of Services in the cluster. Default: cluster.local.
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// KubeRayNamespaces are where KubeRay runs, which may reach the dashboards. Default: the namespace of the account in
	// ClusterRoleBinding kuberay-operator, that of the manager where Deployment kuberay-operator is there, and that of the
	// platform. Where none of these is known KubeRay is not admitted.
	// +optional
	KubeRayNamespaces []string `json:"kubeRayNamespaces,omitempty"`

	// IngressNamespaces are where the ingress controllers run, which may reach Ray Serve and dashboards without a sidecar.
	// Default: on OpenShift its router, elsewhere none.
	// +optional
	IngressNamespaces []string `json:"ingressNamespaces,omitempty"`

	// MonitoringNamespaces may scrape the metrics. Default: openshift-monitoring and openshift-user-workload-monitoring.
	// +optional
	MonitoringNamespaces []string `json:"monitoringNamespaces,omitempty"`

	// OpenToNamespace lets all pods of the namespace reach the dashboard and the client port past the proxy, as the CodeFlare
	// operator did; submitters of RayJobs need it. Default: true.
	// +optional
	OpenToNamespace *bool `json:"openToNamespace,omitempty"`

	// Publish says how a dashboard is published: auto (Route on OpenShift, Ingress elsewhere; on OpenShift only behind a
	// sidecar), open (as auto, and without a sidecar too where OAuth is off), gateway (HTTPRoute to the Gateway below, for
	// dashboards without a sidecar) or none. Default: auto.
	// +optional
	Publish string `json:"publish,omitempty"`

	// KubeRaySecurity says what is done where users ask KubeRay to secure their cluster (spec.authOptions, tlsOptions and
	// networkPolicy): warn (a warning; sidecar and NetworkPolicies stay, certificates step aside), trust (all of them step
	// aside, and a dashboard that only a token of Ray guards is published) or deny (new ones are refused). Default: warn.
	// +optional
	KubeRaySecurity string `json:"kubeRaySecurity,omitempty"`

	// AllowPause lets annotation platform.opendatahub.io/paused count on a RayCluster whose namespace does not bear it:
	// editors of RayClusters can set it. Default: false.
	// +optional
	AllowPause *bool `json:"allowPause,omitempty"`

	// GatewayName is the Gateway that HTTPRoutes attach to. Default: data-science-gateway.
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// GatewayNamespace is where that Gateway is. Default: openshift-ingress.
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
