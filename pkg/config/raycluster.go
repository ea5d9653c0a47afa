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

// RayCluster holds the settings of the component raycluster; see apis/config/v1alpha1 for what they mean. It is a value that is never
// changed after it has been read.
type RayCluster struct {
	OAuth bool `json:"rayDashboardOAuthEnabled"`
	MTLS  bool `json:"mTLSEnabled"`
	// IngressDomain is "" unless it is configured.
	IngressDomain      string `json:"ingressDomain"`
	OAuthProxyImage    string `json:"oauthProxyImage"`
	CertGeneratorImage string `json:"certGeneratorImage"`
	AuthProxyImage     string `json:"authProxyImage"`
	// SidecarResources and CertificateResources are those of containers of ours whose user sets none.
	SidecarResources     corev1.ResourceRequirements `json:"sidecarResources"`
	CertificateResources corev1.ResourceRequirements `json:"certificateResources"`
	// Certificates is one of the constants above, CertificateKeyAlgorithm ECDSA or RSA.
	Certificates            string `json:"certificates"`
	CertificateKeyAlgorithm string `json:"certificateKeyAlgorithm"`
	CertManagerIssuer       Issuer `json:"certManagerIssuer"`
	ClusterDomain           string `json:"clusterDomain"`
	// KubeRayNamespaces and IngressNamespaces are empty unless they are configured.
	KubeRayNamespaces    []string `json:"kubeRayNamespaces"`
	IngressNamespaces    []string `json:"ingressNamespaces"`
	MonitoringNamespaces []string `json:"monitoringNamespaces"`
	// OpenToNamespace lets all pods of the namespace reach a head past its proxy.
	OpenToNamespace bool `json:"openToNamespace"`
	// Publish is one of the constants above.
	Publish          string `json:"publish"`
	GatewayName      string `json:"gatewayName"`
	GatewayNamespace string `json:"gatewayNamespace"`
	// KubeRaySecurity is one of the constants above.
	KubeRaySecurity string `json:"kubeRaySecurity"`
	// AllowPause lets the annotation of pause count on a RayCluster itself, whose editors can set it.
	AllowPause bool `json:"allowPause"`
	// Exposure is that of all servers; see On.
	Exposure Exposure `json:"-"`
}

// On returns the settings as they take effect on a platform. Outside of OpenShift, the exposure of all servers decides what the
// settings of the component leave open.
func (r RayCluster) On(openShift bool) RayCluster {
	switch {
	case openShift:
		r.Exposure = Exposure{}
	case r.Exposure.Gateway() && r.Publish != PublishNone:
		r.Publish = PublishGateway
	case r.Exposure.Ingress():
		r.IngressDomain = cmp.Or(r.IngressDomain, r.Exposure.IngressDomain)
	}
	return r
}

// Issuer names an issuer of cert-manager; its Name is empty where there is none.
type Issuer struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Group string `json:"group"`
}

// rayImages are the images that the environment names; empty where it names none.
type rayImages struct{ oauthProxy, certGenerator, authProxy string }

// DefaultRayCluster returns the settings that hold without any configuration.
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
		Exposure: Exposure{Kind: ExposeAuto},
	}
}

// RayCluster returns the settings of the component raycluster: the defaults, over them those of the CodeFlare operator's
// ConfigMap when there is one, over them the section of the configuration file, and over the images what the environment
// names. Notes name keys that have no effect. An error names the key, its value, the fix, and the document.
func (c Config) RayCluster(older *OlderConfig) (RayCluster, []string, error) {
	settings := DefaultRayCluster()
	if settings.Exposure = c.Exposure; c.Exposure.Gateway() {
		settings.GatewayName, settings.GatewayNamespace = c.ModelRegistry.Gateway.Name, c.ModelRegistry.Gateway.Namespace
	}
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
	tree, err := c.section(rayClusterKey)
	if err != nil {
		return settings, err
	}
	for key, requirements := range map[string]*corev1.ResourceRequirements{
		"sidecarResources": &settings.SidecarResources, "certificateResources": &settings.CertificateResources,
	} {
		if err := readResources(tree[key], rayClusterKey+"."+key, requirements); err != nil {
			return settings, err
		}
		delete(tree, key)
	}
	if err := decode(tree, rayClusterKey, &settings); err != nil {
		return settings, err
	}
	if err := settings.check(rayClusterKey); err != nil {
		return settings, err
	}
	if settings.Certificates == CertificatesByCertManager && settings.CertManagerIssuer.Name == "" {
		return settings, errors.New("raycluster.certificates is cert-manager and no issuer is named: set raycluster.certManagerIssuer.name")
	}
	return settings, nil
}

// check refuses values of a section that cannot be what they should be.
func (r *RayCluster) check(path string) error {
	var errs []error
	refuse := func(key, value, want string) {
		errs = append(errs, fmt.Errorf("%s.%s %q: must be %s", path, key, value, want))
	}
	for key, name := range map[string]*string{
		"ingressDomain": &r.IngressDomain, "clusterDomain": &r.ClusterDomain, "gatewayName": &r.GatewayName, "gatewayNamespace": &r.GatewayNamespace,
		"certManagerIssuer.name": &r.CertManagerIssuer.Name, "certManagerIssuer.group": &r.CertManagerIssuer.Group,
	} {
		*name = strings.Trim(strings.TrimSpace(*name), ".") // dots around a domain do not count
		if *name != "" && len(validation.IsDNS1123Subdomain(*name)) > 0 {
			refuse(key, *name, "at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
		}
	}
	for key, value := range map[string]*string{
		"oauthProxyImage": &r.OAuthProxyImage, "certGeneratorImage": &r.CertGeneratorImage, "authProxyImage": &r.AuthProxyImage,
	} {
		if err := image(value)(*value); err != nil {
			refuse(key, *value, strings.TrimPrefix(err.Error(), "must be "))
		}
	}
	for _, choice := range []struct {
		key, value string
		allowed    []string
	}{
		{"certificates", r.Certificates, []string{CertificatesByOperator, CertificatesByPod, CertificatesByCertManager}},
		{"certificateKeyAlgorithm", r.CertificateKeyAlgorithm, []string{"ECDSA", "RSA"}},
		{"certManagerIssuer.kind", r.CertManagerIssuer.Kind, []string{"Issuer", "ClusterIssuer"}},
		{"publish", r.Publish, []string{PublishAuto, PublishOpen, PublishGateway, PublishNone}},
		{"kubeRaySecurity", r.KubeRaySecurity, []string{KubeRaySecurityWarn, KubeRaySecurityTrust, KubeRaySecurityDeny}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			refuse(choice.key, choice.value, "one of "+strings.Join(choice.allowed, ", "))
		}
	}
	for key, names := range map[string][]string{
		"kubeRayNamespaces": r.KubeRayNamespaces, "ingressNamespaces": r.IngressNamespaces, "monitoringNamespaces": r.MonitoringNamespaces,
	} {
		if i := slices.IndexFunc(names, func(name string) bool { return checkNamespace(name) != nil }); i >= 0 {
			refuse(key, names[i], "a list of namespaces, each at most 63 of a-z, 0-9 and -")
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
