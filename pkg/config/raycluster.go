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

	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
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

// RayCluster holds the settings of the component raycluster; see their tags for their meaning. It is not modified after loading.
type RayCluster struct {
	OAuth bool `key:"raycluster.rayDashboardOAuthEnabled" default:"true" help:"restrict the dashboard to users who may get pods of the namespace, by an OAuth proxy on OpenShift and kube-rbac-proxy elsewhere"`
	MTLS  bool `key:"raycluster.mTLSEnabled" default:"true" help:"secure the traffic between Ray pods with certificates"`
	// OpenToNamespace allows all pods of the namespace to reach the head without the proxy.
	OpenToNamespace bool   `key:"raycluster.openToNamespace" default:"true" help:"allow all pods of the namespace to reach the dashboard and the client port without the proxy, as with the CodeFlare operator; the submitters of RayJobs require it"`
	KubeRaySecurity string `key:"raycluster.kubeRaySecurity" default:"warn" oneof:"warn trust deny" help:"what to do if users let KubeRay secure their cluster (spec.authOptions, tlsOptions and networkPolicy): warn (a warning; the operator adds its sidecar and NetworkPolicies, but no certificates), trust (the operator adds none of these, and publishes a dashboard that is protected only by a token of Ray) or deny (new clusters of this kind are refused)"`
	// AllowPause makes the pause annotation effective on RayClusters, whose editors can set it.
	AllowPause bool `key:"raycluster.allowPause" default:"false" help:"let the annotation platform.opendatahub.io/paused take effect on a RayCluster even if its namespace does not have it; editors of RayClusters can set this annotation"`
	// KubeRayNamespaces and IngressNamespaces are empty unless they are configured.
	KubeRayNamespaces    []string `key:"raycluster.kubeRayNamespaces" help:"namespaces of KubeRay, from which it can reach the dashboards; if empty, the namespace of the ServiceAccount in ClusterRoleBinding kuberay-operator, the namespace of the manager if it contains Deployment kuberay-operator, and the namespace of the platform; if none of these is known, KubeRay cannot reach the dashboards"`
	IngressNamespaces    []string `key:"raycluster.ingressNamespaces" help:"namespaces of ingress controllers, from which they can reach Ray Serve and dashboards without a sidecar; if empty, on OpenShift the namespace of its router, elsewhere none"`
	MonitoringNamespaces []string `key:"raycluster.monitoringNamespaces" default:"openshift-monitoring,openshift-user-workload-monitoring" help:"namespaces from which metrics can be scraped"`
	OAuthProxyImage      string   `env:"OAUTH_PROXY_IMAGE" key:"raycluster.oauthProxyImage" default:"registry.redhat.io/openshift4/ose-oauth-proxy@sha256:1ea6a01bf3e63cdcf125c6064cbd4a4a270deaf0f157b3eabb78f60556840366" parse:"requiredImage" help:"image of the OAuth proxy in front of Ray dashboards on OpenShift"`
	AuthProxyImage       string   `env:"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE KUBE_RBAC_PROXY_IMAGE" key:"raycluster.authProxyImage" default:"quay.io/brancz/kube-rbac-proxy:v0.19.1" parse:"requiredImage" help:"image of kube-rbac-proxy in front of Ray dashboards, except on OpenShift"`
	CertGeneratorImage   string   `env:"CERT_GENERATOR_IMAGE" key:"raycluster.certGeneratorImage" default:"registry.redhat.io/ubi9@sha256:770cf07083e1c85ae69c25181a205b7cdef63c11b794c89b3b487d4670b4c328" parse:"requiredImage" help:"image of create-cert, the init container of Ray pods"`
	// SidecarResources and CertificateResources are the defaults of the sidecar and of create-cert, see resourceSettings.
	SidecarResources, CertificateResources corev1.ResourceRequirements
	Certificates                           string `key:"raycluster.certificates" default:"operator" oneof:"operator pod cert-manager" help:"who issues the certificates of new clusters: operator (this manager), pod (each pod, with the key of the CA, as with the CodeFlare operator) or cert-manager"`
	CertificateKeyAlgorithm                string `key:"raycluster.certificateKeyAlgorithm" default:"ECDSA" oneof:"ECDSA RSA" help:"key algorithm of the certificates of pods: ECDSA or RSA"`
	CertManagerIssuer                      Issuer `section:""`
	ClusterDomain                          string `key:"raycluster.clusterDomain" default:"cluster.local" parse:"trimmed" help:"DNS domain of Services in the cluster"`
	Publish                                string `key:"raycluster.publish" default:"auto" oneof:"auto open gateway none" help:"how a dashboard is published: auto (on OpenShift a Route, only with a sidecar; elsewhere an HTTPRoute if exposure.kind is gateway, otherwise an Ingress), open (like auto, and also without a sidecar if OAuth is disabled), gateway (HTTPRoute to the Gateway raycluster.gatewayName, whatever exposure.kind is) or none"`
	// IngressDomain is empty unless it is configured.
	IngressDomain    string `key:"raycluster.ingressDomain" parse:"trimmed" help:"domain of host names; if empty, the domain in the Ingress configuration of OpenShift; elsewhere, if exposure.kind is ingress, exposure.ingressDomain"`
	GatewayName      string `key:"raycluster.gatewayName" parse:"trimmed" help:"Gateway to which HTTPRoutes attach; if exposure.kind is gateway, the default is modelregistry.gatewayName"`
	GatewayNamespace string `key:"raycluster.gatewayNamespace" parse:"trimmed" help:"namespace of the Gateway; if exposure.kind is gateway, the default is modelregistry.gatewayNamespace; if empty, openshift-ingress on OpenShift, and elsewhere there are no HTTPRoutes"`
	// Exposure is the exposure of all servers; see ForPlatform.
	Exposure Exposure
	// TLS is the profile of servers in pods.
	TLS tlsprofile.Profile
}

// ForPlatform returns the effective settings on a platform. Except on OpenShift, exposure by Gateway overrides Publish unless it is
// PublishNone, and exposure by Ingress provides a default IngressDomain. On OpenShift, Exposure is empty, and the default GatewayNamespace
// is OpenShiftGateways.
func (r RayCluster) ForPlatform(openShift bool) RayCluster {
	switch {
	case openShift:
		r.Exposure, r.GatewayNamespace = Exposure{}, cmp.Or(r.GatewayNamespace, OpenShiftGateways)
	case r.Exposure.UsesGateway() && r.Publish != PublishNone:
		r.Publish = PublishGateway
	case r.Exposure.UsesIngress():
		r.IngressDomain = cmp.Or(r.IngressDomain, r.Exposure.IngressDomain)
	}
	return r
}

// Issuer identifies an issuer of cert-manager; Name is empty if there is none.
type Issuer struct {
	Name  string `key:"raycluster.certManagerIssuer.name" parse:"trimmed" help:"issuer of the certificates if raycluster.certificates is cert-manager"`
	Kind  string `key:"raycluster.certManagerIssuer.kind" default:"ClusterIssuer" oneof:"Issuer ClusterIssuer" help:"kind of the issuer: Issuer or ClusterIssuer"`
	Group string `key:"raycluster.certManagerIssuer.group" default:"cert-manager.io" parse:"trimmed" help:"group of the issuer"`
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
	if c.Exposure.UsesGateway() {
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

// rayClusterSettings returns the settings of the component. The default of the Gateway depends on other settings.
func rayClusterSettings(r *RayCluster, gateway RegistryGateway) []setting {
	all := fieldSettings(r)
	all[indexOf(all, "raycluster.gatewayName")].defaultValue = gateway.Name
	all[indexOf(all, "raycluster.gatewayNamespace")].defaultValue = gateway.Namespace
	return slices.Insert(all, indexOf(all, "raycluster.certificates"), resourceSettings(r)...)
}

func resourceSettings(r *RayCluster) []setting {
	return []setting{
		{key: "raycluster.sidecarResources.requests", defaultValue: `{"cpu": "20m", "memory": "64Mi"}`, valueType: typeObject, set: quantities(&r.SidecarResources.Requests), help: "requests of the sidecar, unless the user sets its resources in the cluster; replaces the whole default"},
		{key: "raycluster.sidecarResources.limits", defaultValue: `{"cpu": "500m", "memory": "256Mi"}`, valueType: typeObject, set: quantities(&r.SidecarResources.Limits), help: "limits of the sidecar, unless the user sets its resources in the cluster; replaces the whole default"},
		{key: "raycluster.certificateResources.requests", defaultValue: `{"cpu": "20m", "memory": "32Mi"}`, valueType: typeObject, set: quantities(&r.CertificateResources.Requests), help: "requests of create-cert, unless the user sets its resources in the cluster; replaces the whole default"},
		{key: "raycluster.certificateResources.limits", defaultValue: `{"cpu": "500m", "memory": "128Mi"}`, valueType: typeObject, set: quantities(&r.CertificateResources.Limits), help: "limits of create-cert, unless the user sets its resources in the cluster; replaces the whole default"},
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

// trimmedSubdomain parses an optional object name or domain, and removes dots around it.
func trimmedSubdomain(dst *string) func(string) error {
	return func(raw string) error { return optional(subdomain, dst)(strings.Trim(strings.TrimSpace(raw), ".")) }
}

func namespaces(dst *[]string) func(string) error {
	return func(raw string) error {
		*dst = strings.FieldsFunc(raw, func(r rune) bool { return r == ',' })
		if slices.ContainsFunc(*dst, func(name string) bool { return checkNamespace(name) != nil }) {
			return errors.New("must be a list of namespaces, each of at most 63 characters a-z, 0-9 and -")
		}
		return nil
	}
}

// quantities parses a JSON object of quantities, which replaces the existing list.
func quantities(dst *corev1.ResourceList) func(string) error {
	return func(raw string) error {
		*dst = nil
		err := quantity.CheckJSON([]byte(`{"requests": ` + raw + `}`))
		if err == nil {
			err = json.Unmarshal([]byte(raw), dst)
		}
		for _, parsed := range *dst {
			if parsed.Sign() < 0 {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return errors.New("must be quantities of Kubernetes that are not negative, such as {cpu: 100m, memory: 64Mi}")
		}
		return nil
	}
}
