package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// rayClusterKey is the section of the component in the configuration file, rayKey the one in the ConfigMap.
const (
	rayClusterKey = "raycluster"
	rayKey        = "kuberay"
)

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

// RayCluster holds the settings of the component raycluster; see apis/config/v1alpha1 for what they mean. It is a value
// that nobody changes.
type RayCluster struct {
	OAuth, MTLS bool
	// IngressDomain is "" where nobody configured one.
	IngressDomain                                       string
	OAuthProxyImage, CertGeneratorImage, AuthProxyImage string
	// SidecarResources and CertificateResources are those of containers of ours whose user sets none.
	SidecarResources, CertificateResources corev1.ResourceRequirements
	// Certificates is one of the constants above, CertificateKeyAlgorithm ECDSA or RSA.
	Certificates, CertificateKeyAlgorithm string
	CertManagerIssuer                     Issuer
	ClusterDomain                         string
	// KubeRayNamespaces and IngressNamespaces are empty where nobody configured them.
	KubeRayNamespaces, IngressNamespaces, MonitoringNamespaces []string
	// OpenToNamespace lets all pods of the namespace reach a head past its proxy.
	OpenToNamespace bool
	// Publish is one of the constants above.
	Publish, GatewayName, GatewayNamespace string
	// KubeRaySecurity is one of the constants above.
	KubeRaySecurity string
	// AllowPause lets the annotation of pause count on a RayCluster itself, whose editors can set it.
	AllowPause bool
}

// Issuer names an issuer of cert-manager; its Name is empty where there is none.
type Issuer struct{ Name, Kind, Group string }

// rayImages are the images that the environment names; empty where it names none.
type rayImages struct{ oauthProxy, certGenerator, authProxy string }

// DefaultRayCluster returns the settings that hold when nobody says anything.
func DefaultRayCluster() RayCluster {
	return RayCluster{
		OAuth: true, MTLS: true, OpenToNamespace: true,
		OAuthProxyImage: defaultOAuthProxyImage, CertGeneratorImage: defaultCertGeneratorImage, AuthProxyImage: defaultAuthProxyImage,
		SidecarResources: small("64Mi", "256Mi"), CertificateResources: small("32Mi", "128Mi"),
		Certificates: CertificatesByOperator, CertificateKeyAlgorithm: "ECDSA",
		CertManagerIssuer:    Issuer{Kind: "ClusterIssuer", Group: "cert-manager.io"},
		ClusterDomain:        "cluster.local",
		MonitoringNamespaces: []string{"openshift-monitoring", "openshift-user-workload-monitoring"},
		KubeRaySecurity:      KubeRaySecurityWarn,
		Publish:              PublishAuto, GatewayName: "data-science-gateway", GatewayNamespace: "openshift-ingress",
	}
}

// RayCluster returns the settings of the component raycluster: the defaults, over them those of the CodeFlare operator's
// ConfigMap when there is one, over them the section of the configuration file, and over the images what the environment
// names. Notes name keys that have no effect. An error names the key, its value, the cure, and where it stands.
func (c Config) RayCluster(older *OlderConfig) (RayCluster, []string, error) {
	settings := DefaultRayCluster()
	var notes []string
	if older != nil {
		var err error
		if notes, err = older.applyRay(&settings); err != nil {
			return RayCluster{}, nil, fmt.Errorf("%s: %w", older.Source, err)
		}
	}
	settings, err := c.readRayCluster(settings)
	if err != nil {
		return RayCluster{}, nil, err
	}
	settings.OAuthProxyImage = cmp.Or(c.rayImages.oauthProxy, settings.OAuthProxyImage)
	settings.CertGeneratorImage = cmp.Or(c.rayImages.certGenerator, settings.CertGeneratorImage)
	settings.AuthProxyImage = cmp.Or(c.rayImages.authProxy, settings.AuthProxyImage)
	return settings, notes, nil
}

// readRayCluster reads the section of the configuration file, which may be absent, over the settings.
func (c Config) readRayCluster(settings RayCluster) (RayCluster, error) {
	s := &section{tree: c.sections[rayClusterKey], path: rayClusterKey}
	s.kubeRay(&settings)
	s.image("oauthProxyImage", &settings.OAuthProxyImage)
	s.image("certGeneratorImage", &settings.CertGeneratorImage)
	s.image("authProxyImage", &settings.AuthProxyImage)
	s.resources("sidecarResources", &settings.SidecarResources)
	s.resources("certificateResources", &settings.CertificateResources)
	s.choice("certificates", &settings.Certificates, CertificatesByOperator, CertificatesByPod, CertificatesByCertManager)
	s.choice("certificateKeyAlgorithm", &settings.CertificateKeyAlgorithm, "ECDSA", "RSA")
	issuer, _ := s.child("certManagerIssuer")
	issuer.name("name", &settings.CertManagerIssuer.Name)
	issuer.choice("kind", &settings.CertManagerIssuer.Kind, "Issuer", "ClusterIssuer")
	issuer.name("group", &settings.CertManagerIssuer.Group)
	s.join(issuer)
	s.name("clusterDomain", &settings.ClusterDomain)
	s.namespaces("kubeRayNamespaces", &settings.KubeRayNamespaces)
	s.namespaces("ingressNamespaces", &settings.IngressNamespaces)
	s.namespaces("monitoringNamespaces", &settings.MonitoringNamespaces)
	s.boolean("openToNamespace", &settings.OpenToNamespace)
	s.choice("publish", &settings.Publish, PublishAuto, PublishOpen, PublishGateway, PublishNone)
	s.choice("kubeRaySecurity", &settings.KubeRaySecurity, KubeRaySecurityWarn, KubeRaySecurityTrust, KubeRaySecurityDeny)
	s.boolean("allowPause", &settings.AllowPause)
	s.name("gatewayName", &settings.GatewayName)
	s.name("gatewayNamespace", &settings.GatewayNamespace)
	if settings.Certificates == CertificatesByCertManager && settings.CertManagerIssuer.Name == "" {
		s.errs = append(s.errs, errors.New("raycluster.certificates is cert-manager and no issuer is named: set raycluster.certManagerIssuer.name"))
	}
	return settings, errors.Join(s.errs...)
}

// kubeRay reads what the CodeFlare operator knew.
func (s *section) kubeRay(settings *RayCluster) {
	s.boolean("rayDashboardOAuthEnabled", &settings.OAuth)
	s.boolean("mTLSEnabled", &settings.MTLS)
	s.name("ingressDomain", &settings.IngressDomain)
}

// name reads what may stand in a host name or be the name of an object; dots around it do not count.
func (s *section) name(key string, dst *string) {
	before := *dst
	s.text(key, dst)
	*dst = strings.Trim(strings.TrimSpace(*dst), ".")
	if *dst != "" && len(validation.IsDNS1123Subdomain(*dst)) > 0 {
		s.refuse(key, *dst, "at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
	}
	if *dst == "" {
		*dst = before
	}
}

func (s *section) image(key string, dst *string) {
	given := *dst
	s.text(key, &given)
	if err := image(&given)(given); err != nil {
		s.refuse(key, given, strings.TrimPrefix(err.Error(), "must be "))
		return
	}
	*dst = cmp.Or(given, *dst)
}

func (s *section) choice(key string, dst *string, allowed ...string) {
	given := ""
	s.text(key, &given)
	if given != "" && !slices.Contains(allowed, given) {
		s.refuse(key, given, "one of "+strings.Join(allowed, ", "))
		return
	}
	*dst = cmp.Or(given, *dst)
}

func (s *section) namespaces(key string, dst *[]string) {
	var list []any
	if readScalar(s, key, &list, "a list of namespaces", as[[]any]); list == nil {
		return
	}
	names := make([]string, 0, len(list))
	for _, item := range list {
		name, ok := item.(string)
		if !ok || checkNamespace(name) != nil {
			s.refuse(key, item, "a list of namespaces, each at most 63 of a-z, 0-9 and -")
			return
		}
		names = append(names, name)
	}
	*dst = names
}
