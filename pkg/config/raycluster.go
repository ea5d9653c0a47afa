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

// rayClusterKey is what the keys of the component start with.
const rayClusterKey = "raycluster."

// Issuers of certificates.
const (
	CertificatesByOperator    = "operator"
	CertificatesByPod         = "pod"
	CertificatesByCertManager = "cert-manager"
)

// Ways to publish a dashboard.
const (
	PublishAuto    = "auto"
	PublishOpen    = "open"
	PublishGateway = "gateway"
	PublishNone    = "none"
)

// What is done where users ask KubeRay to secure their cluster.
const (
	KubeRaySecurityWarn  = "warn"
	KubeRaySecurityTrust = "trust"
	KubeRaySecurityDeny  = "deny"
)

// Images of the CodeFlare operator, and that of the proxy which it did not have.
const (
	defaultOAuthProxyImage    = "registry.redhat.io/openshift4/ose-oauth-proxy@sha256:1ea6a01bf3e63cdcf125c6064cbd4a4a270deaf0f157b3eabb78f60556840366"
	defaultCertGeneratorImage = "registry.redhat.io/ubi9@sha256:770cf07083e1c85ae69c25181a205b7cdef63c11b794c89b3b487d4670b4c328"
	defaultAuthProxyImage     = "quay.io/brancz/kube-rbac-proxy:v0.19.1"
)

// RayCluster holds the settings of the component raycluster; see rayClusterSettings for what they mean. It is a value that is never
// changed after it has been read.
type RayCluster struct {
	OAuth bool
	MTLS  bool
	// IngressDomain is "" unless it is configured.
	IngressDomain      string
	OAuthProxyImage    string
	CertGeneratorImage string
	AuthProxyImage     string
	// SidecarResources and CertificateResources are those of containers of ours whose user sets none.
	SidecarResources     corev1.ResourceRequirements
	CertificateResources corev1.ResourceRequirements
	// Certificates is one of the constants above, CertificateKeyAlgorithm ECDSA or RSA.
	Certificates            string
	CertificateKeyAlgorithm string
	CertManagerIssuer       Issuer
	ClusterDomain           string
	// KubeRayNamespaces and IngressNamespaces are empty unless they are configured.
	KubeRayNamespaces    []string
	IngressNamespaces    []string
	MonitoringNamespaces []string
	// OpenToNamespace lets all pods of the namespace reach a head past its proxy.
	OpenToNamespace bool
	// Publish is one of the constants above.
	Publish          string
	GatewayName      string
	GatewayNamespace string
	// KubeRaySecurity is one of the constants above.
	KubeRaySecurity string
	// AllowPause lets the annotation of pause count on a RayCluster itself, whose editors can set it.
	AllowPause bool
	// Exposure is that of all servers; see On.
	Exposure Exposure
	// TLS is that of all listeners.
	TLS tlsprofile.Profile
}

// On returns the settings as they take effect on a platform. Outside of OpenShift, the exposure of all servers decides what the
// settings of the component leave open.
func (r RayCluster) On(openShift bool) RayCluster {
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

// Issuer names an issuer of cert-manager; its Name is empty where there is none.
type Issuer struct {
	Name  string
	Kind  string
	Group string
}

// DefaultRayCluster returns the settings that hold without any configuration.
func DefaultRayCluster() RayCluster {
	settings, _, _ := Config{Exposure: Exposure{Kind: ExposeAuto}}.RayCluster(nil) // a default is never refused
	return settings
}

// RayCluster returns the settings of the component raycluster: the defaults, over them those of the CodeFlare operator's
// ConfigMap when there is one, over them the section of the configuration file, and over the images what the environment
// names. Notes name keys that have no effect. An error names the key, its value, the fix, and the document.
func (c Config) RayCluster(older *LegacyConfig) (RayCluster, []string, error) {
	gateway, settings := defaultGateway, RayCluster{Exposure: c.Exposure, TLS: c.TLS}
	if c.Exposure.Gateway() {
		gateway = c.ModelRegistry.Gateway
	}
	var maps []LegacyConfig
	if older != nil {
		maps = append(maps, *older)
	}
	notes, err := c.layered(rayClusterSettings(&settings, gateway), maps)
	if err == nil {
		err = settings.check()
	}
	return settings, notes, err
}

func rayClusterSettings(r *RayCluster, gateway RegistryGateway) []setting {
	return slices.Concat(rayAccess(r), rayContainers(r), rayCertificates(r), rayPublication(r, gateway))
}

func rayAccess(r *RayCluster) []setting {
	return []setting{
		{key: "raycluster.rayDashboardOAuthEnabled", fallback: "true", shape: aSwitch, set: boolean(&r.OAuth),
			help: "restrict the dashboard to users who may get pods of the namespace, by an OAuth proxy on OpenShift and kube-rbac-proxy elsewhere"},
		{key: "raycluster.mTLSEnabled", fallback: "true", shape: aSwitch,
			set: boolean(&r.MTLS), help: "secure the traffic between Ray pods with certificates"},
		{key: "raycluster.openToNamespace", fallback: "true", shape: aSwitch, set: boolean(&r.OpenToNamespace),
			help: "allow all pods of the namespace to reach the dashboard and the client port without the proxy, as with the CodeFlare operator; the " +
				"submitters of RayJobs require it"},
		{key: "raycluster.kubeRaySecurity", fallback: KubeRaySecurityWarn,
			set: oneOf(&r.KubeRaySecurity, KubeRaySecurityWarn, KubeRaySecurityTrust, KubeRaySecurityDeny),
			help: "what to do if users let KubeRay secure their cluster (spec.authOptions, tlsOptions and networkPolicy): warn (a warning; the operator adds its " +
				"sidecar and NetworkPolicies, but no certificates), trust (the operator adds none of these, and publishes a dashboard that is protected only " +
				"by a token of Ray) or deny (new clusters of this kind are refused)"},
		{key: "raycluster.allowPause", fallback: "false", shape: aSwitch, set: boolean(&r.AllowPause),
			help: "let the annotation platform.opendatahub.io/paused take effect on a RayCluster even if its namespace does not have it; editors of RayClusters " +
				"can set this annotation"},
		{key: "raycluster.kubeRayNamespaces", shape: aList, set: namespaces(&r.KubeRayNamespaces),
			help: "namespaces of KubeRay, from which it can reach the dashboards; if empty, the namespace of the ServiceAccount in ClusterRoleBinding " +
				"kuberay-operator, the namespace of the manager if it contains Deployment kuberay-operator, and the namespace of the platform; if none of " +
				"these is known, KubeRay cannot reach the dashboards"},
		{key: "raycluster.ingressNamespaces", shape: aList, set: namespaces(&r.IngressNamespaces),
			help: "namespaces of ingress controllers, from which they can reach Ray Serve and dashboards without a sidecar; if empty, on OpenShift the " +
				"namespace of its router, elsewhere none"},
		{key: "raycluster.monitoringNamespaces", fallback: "openshift-monitoring,openshift-user-workload-monitoring", shape: aList,
			set:  namespaces(&r.MonitoringNamespaces),
			help: "namespaces from which metrics can be scraped"},
	}
}

func rayContainers(r *RayCluster) []setting {
	return []setting{
		{env: []string{"OAUTH_PROXY_IMAGE"}, key: "raycluster.oauthProxyImage", fallback: defaultOAuthProxyImage,
			set:  requiredImage(&r.OAuthProxyImage),
			help: "image of the OAuth proxy in front of Ray dashboards on OpenShift"},
		{env: []string{"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE", "KUBE_RBAC_PROXY_IMAGE"}, key: "raycluster.authProxyImage", fallback: defaultAuthProxyImage,
			set: requiredImage(&r.AuthProxyImage), help: "image of kube-rbac-proxy in front of Ray dashboards, except on OpenShift"},
		{env: []string{"CERT_GENERATOR_IMAGE"}, key: "raycluster.certGeneratorImage", fallback: defaultCertGeneratorImage,
			set:  requiredImage(&r.CertGeneratorImage),
			help: "image of create-cert, the init container of Ray pods"},
		{key: "raycluster.sidecarResources.requests", fallback: `{"cpu": "20m", "memory": "64Mi"}`, shape: anObject,
			set:  quantities(&r.SidecarResources.Requests),
			help: "requests of the sidecar, unless the user sets its resources in the cluster; replaces the whole default"},
		{key: "raycluster.sidecarResources.limits", fallback: `{"cpu": "500m", "memory": "256Mi"}`, shape: anObject,
			set:  quantities(&r.SidecarResources.Limits),
			help: "limits of the sidecar, in the same way"},
		{key: "raycluster.certificateResources.requests", fallback: `{"cpu": "20m", "memory": "32Mi"}`, shape: anObject,
			set:  quantities(&r.CertificateResources.Requests),
			help: "requests of create-cert, in the same way"},
		{key: "raycluster.certificateResources.limits", fallback: `{"cpu": "500m", "memory": "128Mi"}`, shape: anObject,
			set:  quantities(&r.CertificateResources.Limits),
			help: "limits of create-cert, in the same way"},
	}
}

func rayCertificates(r *RayCluster) []setting {
	i := &r.CertManagerIssuer
	return []setting{
		{key: "raycluster.certificates", fallback: CertificatesByOperator,
			set: oneOf(&r.Certificates, CertificatesByOperator, CertificatesByPod, CertificatesByCertManager),
			help: "who issues the certificates of new clusters: operator (this manager), pod (each pod, with the key of the CA, as with the CodeFlare operator) " +
				"or cert-manager"},
		{key: "raycluster.certificateKeyAlgorithm", fallback: "ECDSA", set: oneOf(&r.CertificateKeyAlgorithm, "ECDSA", "RSA"),
			help: "key algorithm of the certificates of pods: ECDSA or RSA"},
		{key: "raycluster.certManagerIssuer.name",
			set: dotted(&i.Name), help: "issuer of the certificates if raycluster.certificates is cert-manager"},
		{key: "raycluster.certManagerIssuer.kind", fallback: "ClusterIssuer",
			set: oneOf(&i.Kind, "Issuer", "ClusterIssuer"), help: "kind of the issuer: Issuer or ClusterIssuer"},
		{key: "raycluster.certManagerIssuer.group", fallback: "cert-manager.io", set: dotted(&i.Group), help: "group of the issuer"},
		{key: "raycluster.clusterDomain", fallback: "cluster.local",
			set: dotted(&r.ClusterDomain), help: "DNS domain of Services in the cluster"},
	}
}

func rayPublication(r *RayCluster, gateway RegistryGateway) []setting {
	return []setting{
		{key: "raycluster.publish", fallback: PublishAuto, set: oneOf(&r.Publish, PublishAuto, PublishOpen, PublishGateway, PublishNone),
			help: "how a dashboard is published: auto (on OpenShift a Route, only with a sidecar; elsewhere an HTTPRoute if exposure.kind is gateway, otherwise " +
				"an Ingress), open (like auto, and also without a sidecar if OAuth is disabled), gateway (HTTPRoute to the Gateway below, whatever " +
				"exposure.kind is) or none"},
		{key: "raycluster.ingressDomain", set: dotted(&r.IngressDomain),
			help: "domain of host names; if empty, the domain in the Ingress configuration of OpenShift; elsewhere, if exposure.kind is ingress, exposure.ingressDomain"},
		{key: "raycluster.gatewayName", fallback: gateway.Name, set: dotted(&r.GatewayName),
			help: "Gateway to which HTTPRoutes attach; if exposure.kind is gateway, the default is modelregistry.gatewayName"},
		{key: "raycluster.gatewayNamespace", fallback: gateway.Namespace, set: dotted(&r.GatewayNamespace),
			help: "namespace of that Gateway; if exposure.kind is gateway, the default is modelregistry.gatewayNamespace; if empty, openshift-ingress on OpenShift, and elsewhere there are no HTTPRoutes"},
	}
}

// check refuses values that do not fit together.
func (r *RayCluster) check() error {
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

// dotted accepts a name with dots around it, which do not count, and none.
func dotted(dst *string) func(string) error {
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

// quantities replaces a list of resources by one in JSON.
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
