package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// rayClusterKey is the prefix of the keys of the component.
const rayClusterKey = "raycluster."

// Values of RayCluster.Certificates.
const (
	CertificatesByOperator    = "operator"
	CertificatesByPod         = "pod"
	CertificatesByCertManager = "cert-manager"
)

// Values of RayCluster.Publish.
const (
	PublishAuto    = "auto"
	PublishOpen    = "open"
	PublishGateway = "gateway"
	PublishNone    = "none"
)

// Values of RayCluster.KubeRaySecurity, for clusters whose users enable the security of KubeRay.
const (
	KubeRaySecurityWarn  = "warn"
	KubeRaySecurityTrust = "trust"
	KubeRaySecurityDeny  = "deny"
)

// Default images, those of the CodeFlare operator except kube-rbac-proxy.
const (
	defaultOAuthProxyImage    = "registry.redhat.io/openshift4/ose-oauth-proxy@sha256:1ea6a01bf3e63cdcf125c6064cbd4a4a270deaf0f157b3eabb78f60556840366"
	defaultCertGeneratorImage = "registry.redhat.io/ubi9@sha256:770cf07083e1c85ae69c25181a205b7cdef63c11b794c89b3b487d4670b4c328"
	defaultAuthProxyImage     = "quay.io/brancz/kube-rbac-proxy:v0.19.1"
)

// RayCluster holds the settings of the component raycluster; see rayClusterSettings for their meaning. It is not modified after loading.
type RayCluster struct {
	OAuth bool
	MTLS  bool
	// IngressDomain is empty unless it is configured.
	IngressDomain      string
	OAuthProxyImage    string
	CertGeneratorImage string
	AuthProxyImage     string
	// SidecarResources and CertificateResources are the defaults for our containers.
	SidecarResources     corev1.ResourceRequirements
	CertificateResources corev1.ResourceRequirements
	// Certificates is one of the constants above; CertificateKeyAlgorithm is ECDSA or RSA.
	Certificates            string
	CertificateKeyAlgorithm string
	CertManagerIssuer       Issuer
	ClusterDomain           string
	// KubeRayNamespaces and IngressNamespaces are empty unless they are configured.
	KubeRayNamespaces    []string
	IngressNamespaces    []string
	MonitoringNamespaces []string
	// OpenToNamespace allows all pods of the namespace to reach the head without the proxy.
	OpenToNamespace bool
	// Publish is one of the constants above.
	Publish          string
	GatewayName      string
	GatewayNamespace string
	// KubeRaySecurity is one of the constants above.
	KubeRaySecurity string
	// AllowPause makes the pause annotation effective on RayClusters, whose editors can set it.
	AllowPause bool
	// Exposure is the exposure of all servers; see ForPlatform.
	Exposure Exposure
	// TLS is the profile of all listeners.
	TLS tlsprofile.Profile
}

// ForPlatform returns the effective settings on a platform. Exposure provides the defaults on platforms other than OpenShift.
func (r RayCluster) ForPlatform(openShift bool) RayCluster {
	switch {
	case openShift:
		r.Exposure, r.GatewayNamespace = Exposure{}, cmp.Or(r.GatewayNamespace, OpenShiftGateways)
	case r.Exposure.Gateway() && r.Publish != PublishNone:
		r.Publish = PublishGateway
	case r.Exposure.Ingress():
		r.IngressDomain = cmp.Or(r.IngressDomain, r.Exposure.IngressDomain)
	}
	return r
}

// Issuer identifies an issuer of cert-manager; Name is empty if there is none.
type Issuer struct {
	Name  string
	Kind  string
	Group string
}

// DefaultRayCluster returns the settings without any configuration.
func DefaultRayCluster() RayCluster {
	settings, _, _ := Config{Exposure: Exposure{Kind: ExposeAuto}}.RayCluster(nil) // defaults are valid
	return settings
}

// RayCluster returns the settings of the component raycluster from the defaults, the ConfigMap of the CodeFlare operator, which may be nil, the
// configuration file and, for images, the environment, in ascending precedence. It also returns warnings about keys without effect.
func (c Config) RayCluster(legacy *LegacyConfig) (RayCluster, []string, error) {
	gateway, settings := defaultGateway, RayCluster{Exposure: c.Exposure, TLS: c.TLS}
	if c.Exposure.Gateway() {
		gateway = c.ModelRegistry.Gateway
	}
	var legacyConfigs []LegacyConfig
	if legacy != nil {
		legacyConfigs = append(legacyConfigs, *legacy)
	}
	warnings, err := c.mergeLayers(rayClusterSettings(&settings, gateway), legacyConfigs)
	if err == nil {
		err = settings.validate()
	}
	return settings, warnings, err
}

func rayClusterSettings(r *RayCluster, gateway RegistryGateway) []setting {
	return slices.Concat(rayAccess(r), rayContainers(r), rayCertificates(r), rayPublication(r, gateway))
}

func rayAccess(r *RayCluster) []setting {
	return []setting{
		{key: "raycluster.rayDashboardOAuthEnabled", defaultValue: "true", valueType: typeBool, set: boolean(&r.OAuth),
			help: "restrict the dashboard to users who may get pods of the namespace, by an OAuth proxy on OpenShift and kube-rbac-proxy elsewhere"},
		{key: "raycluster.mTLSEnabled", defaultValue: "true", valueType: typeBool,
			set: boolean(&r.MTLS), help: "secure the traffic between Ray pods with certificates"},
		{key: "raycluster.openToNamespace", defaultValue: "true", valueType: typeBool, set: boolean(&r.OpenToNamespace),
			help: "allow all pods of the namespace to reach the dashboard and the client port without the proxy, as with the CodeFlare operator; the " +
				"submitters of RayJobs require it"},
		{key: "raycluster.kubeRaySecurity", defaultValue: KubeRaySecurityWarn,
			set: oneOf(&r.KubeRaySecurity, KubeRaySecurityWarn, KubeRaySecurityTrust, KubeRaySecurityDeny),
			help: "what to do if users let KubeRay secure their cluster (spec.authOptions, tlsOptions and networkPolicy): warn (a warning; the operator adds its " +
				"sidecar and NetworkPolicies, but no certificates), trust (the operator adds none of these, and publishes a dashboard that is protected only " +
				"by a token of Ray) or deny (new clusters of this kind are refused)"},
		{key: "raycluster.allowPause", defaultValue: "false", valueType: typeBool, set: boolean(&r.AllowPause),
			help: "let the annotation platform.opendatahub.io/paused take effect on a RayCluster even if its namespace does not have it; editors of RayClusters " +
				"can set this annotation"},
		{key: "raycluster.kubeRayNamespaces", valueType: typeList, set: namespaces(&r.KubeRayNamespaces),
			help: "namespaces of KubeRay, from which it can reach the dashboards; if empty, the namespace of the ServiceAccount in ClusterRoleBinding " +
				"kuberay-operator, the namespace of the manager if it contains Deployment kuberay-operator, and the namespace of the platform; if none of " +
				"these is known, KubeRay cannot reach the dashboards"},
		{key: "raycluster.ingressNamespaces", valueType: typeList, set: namespaces(&r.IngressNamespaces),
			help: "namespaces of ingress controllers, from which they can reach Ray Serve and dashboards without a sidecar; if empty, on OpenShift the " +
				"namespace of its router, elsewhere none"},
		{key: "raycluster.monitoringNamespaces", defaultValue: "openshift-monitoring,openshift-user-workload-monitoring", valueType: typeList,
			set:  namespaces(&r.MonitoringNamespaces),
			help: "namespaces from which metrics can be scraped"},
	}
}

func rayContainers(r *RayCluster) []setting {
	return []setting{
		{env: []string{"OAUTH_PROXY_IMAGE"}, key: "raycluster.oauthProxyImage", defaultValue: defaultOAuthProxyImage,
			set:  requiredImage(&r.OAuthProxyImage),
			help: "image of the OAuth proxy in front of Ray dashboards on OpenShift"},
		{env: []string{"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE", "KUBE_RBAC_PROXY_IMAGE"}, key: "raycluster.authProxyImage", defaultValue: defaultAuthProxyImage,
			set: requiredImage(&r.AuthProxyImage), help: "image of kube-rbac-proxy in front of Ray dashboards, except on OpenShift"},
		{env: []string{"CERT_GENERATOR_IMAGE"}, key: "raycluster.certGeneratorImage", defaultValue: defaultCertGeneratorImage,
			set:  requiredImage(&r.CertGeneratorImage),
			help: "image of create-cert, the init container of Ray pods"},
		{key: "raycluster.sidecarResources.requests", defaultValue: `{"cpu": "20m", "memory": "64Mi"}`, valueType: typeObject,
			set:  quantities(&r.SidecarResources.Requests),
			help: "requests of the sidecar, unless the user sets its resources in the cluster; replaces the whole default"},
		{key: "raycluster.sidecarResources.limits", defaultValue: `{"cpu": "500m", "memory": "256Mi"}`, valueType: typeObject,
			set:  quantities(&r.SidecarResources.Limits),
			help: "limits of the sidecar, in the same way"},
		{key: "raycluster.certificateResources.requests", defaultValue: `{"cpu": "20m", "memory": "32Mi"}`, valueType: typeObject,
			set:  quantities(&r.CertificateResources.Requests),
			help: "requests of create-cert, in the same way"},
		{key: "raycluster.certificateResources.limits", defaultValue: `{"cpu": "500m", "memory": "128Mi"}`, valueType: typeObject,
			set:  quantities(&r.CertificateResources.Limits),
			help: "limits of create-cert, in the same way"},
	}
}

func rayCertificates(r *RayCluster) []setting {
	i := &r.CertManagerIssuer
	return []setting{
		{key: "raycluster.certificates", defaultValue: CertificatesByOperator,
			set: oneOf(&r.Certificates, CertificatesByOperator, CertificatesByPod, CertificatesByCertManager),
			help: "who issues the certificates of new clusters: operator (this manager), pod (each pod, with the key of the CA, as with the CodeFlare operator) " +
				"or cert-manager"},
		{key: "raycluster.certificateKeyAlgorithm", defaultValue: "ECDSA", set: oneOf(&r.CertificateKeyAlgorithm, "ECDSA", "RSA"),
			help: "key algorithm of the certificates of pods: ECDSA or RSA"},
		{key: "raycluster.certManagerIssuer.name",
			set: trimmedSubdomain(&i.Name), help: "issuer of the certificates if raycluster.certificates is cert-manager"},
		{key: "raycluster.certManagerIssuer.kind", defaultValue: "ClusterIssuer",
			set: oneOf(&i.Kind, "Issuer", "ClusterIssuer"), help: "kind of the issuer: Issuer or ClusterIssuer"},
		{key: "raycluster.certManagerIssuer.group", defaultValue: "cert-manager.io", set: trimmedSubdomain(&i.Group), help: "group of the issuer"},
		{key: "raycluster.clusterDomain", defaultValue: "cluster.local",
			set: trimmedSubdomain(&r.ClusterDomain), help: "DNS domain of Services in the cluster"},
	}
}

func rayPublication(r *RayCluster, gateway RegistryGateway) []setting {
	return []setting{
		{key: "raycluster.publish", defaultValue: PublishAuto, set: oneOf(&r.Publish, PublishAuto, PublishOpen, PublishGateway, PublishNone),
			help: "how a dashboard is published: auto (on OpenShift a Route, only with a sidecar; elsewhere an HTTPRoute if exposure.kind is gateway, otherwise " +
				"an Ingress), open (like auto, and also without a sidecar if OAuth is disabled), gateway (HTTPRoute to the Gateway below, whatever " +
				"exposure.kind is) or none"},
		{key: "raycluster.ingressDomain", set: trimmedSubdomain(&r.IngressDomain),
			help: "domain of host names; if empty, the domain in the Ingress configuration of OpenShift; elsewhere, if exposure.kind is ingress, exposure.ingressDomain"},
		{key: "raycluster.gatewayName", defaultValue: gateway.Name, set: trimmedSubdomain(&r.GatewayName),
			help: "Gateway to which HTTPRoutes attach; if exposure.kind is gateway, the default is modelregistry.gatewayName"},
		{key: "raycluster.gatewayNamespace", defaultValue: gateway.Namespace, set: trimmedSubdomain(&r.GatewayNamespace),
			help: "namespace of that Gateway; if exposure.kind is gateway, the default is modelregistry.gatewayNamespace; if empty, openshift-ingress on OpenShift, and elsewhere there are no HTTPRoutes"},
	}
}

// validate checks combinations of settings.
func (r *RayCluster) validate() error {
	if r.Certificates == CertificatesByCertManager && r.CertManagerIssuer.Name == "" {
		return errors.New("raycluster.certificates is cert-manager and no issuer is named: set raycluster.certManagerIssuer.name")
	}
	for key, resources := range map[string]corev1.ResourceRequirements{
		"sidecarResources": r.SidecarResources, "certificateResources": r.CertificateResources,
	} {
		for _, name := range sortedKeys(resources.Requests) {
			request := resources.Requests[name]
			if limit, limited := resources.Limits[name]; limited && request.Cmp(limit) > 0 {
				return fmt.Errorf("raycluster.%s.requests %q: must be at most the limit of %s, which is %s", key, request.String(), name, limit.String())
			}
		}
	}
	return nil
}

// trimmedSubdomain parses an optional object name and removes dots around it.
func trimmedSubdomain(dst *string) func(string) error {
	return func(raw string) error { return optional(subdomain, dst)(strings.Trim(strings.TrimSpace(raw), ".")) }
}

func namespaces(dst *[]string) func(string) error {
	return func(raw string) error {
		*dst = strings.FieldsFunc(raw, func(r rune) bool { return r == ',' })
		if slices.ContainsFunc(*dst, func(name string) bool { return checkNamespace(name) != nil }) {
			return errors.New("must be a list of namespaces, each at most 63 of a-z, 0-9 and -")
		}
		return nil
	}
}

// quantities parses a JSON object of quantities, which replaces the list.
func quantities(dst *corev1.ResourceList) func(string) error {
	return func(raw string) error {
		*dst = nil
		err := json.Unmarshal([]byte(raw), dst)
		for _, quantity := range *dst {
			if quantity.Sign() < 0 {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return errors.New("must be quantities of Kubernetes that are not negative, such as {cpu: 100m, memory: 64Mi}")
		}
		return nil
	}
}
