package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func codeflarePtr(text string) *LegacyConfig {
	return new(codeflare(text))
}

// codeFlareConfig is a configuration of the CodeFlare operator with all sections, including those of earlier versions.
const codeFlareConfig = `
mcad: {enabled: true}
instascale: {enabled: false}
clientConnection: {qps: 50, burst: 100}
metrics: {bindAddress: ":8080"}
health: {bindAddress: ":8081", readinessEndpointName: readyz, livenessEndpointName: healthz}
leaderElection: {leaderElect: null, leaseDuration: 0s}
kuberay:
  rayDashboardOAuthEnabled: false
  mTLSEnabled: false
  ingressDomain: apps.example.org
  certGeneratorImage: quay.io/old/image
appwrapper:
  enabled: true
  Config: {faultTolerance: {warmupGracePeriod: 600000000000}}
`

// [R24] Both components read the same ConfigMap, and neither reports the keys of the other as unknown.
func TestBothComponentsReadOneConfigMap(t *testing.T) {
	cfg := mustLoad(t, inputs{})
	ray, warnings, err := cfg.RayCluster(codeflarePtr(codeFlareConfig))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("got error %v and warnings %q", err, warnings)
	}
	want := DefaultRayCluster()
	want.OAuth, want.MTLS, want.IngressDomain = false, false, "apps.example.org"
	if diff := cmp.Diff(want, ray); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	aw, warnings, err := cfg.AppWrapper(codeflare(codeFlareConfig))
	if err != nil || len(warnings) > 0 || aw.FaultTolerance.WarmupGracePeriod.Minutes() != 10 {
		t.Errorf("got warm-up period %s, error %v and warnings %q", aw.FaultTolerance.WarmupGracePeriod, err, warnings)
	}
}

// [raycluster-4] Features are enabled unless they are set to false. null counts as unset.
func TestFeaturesAreEnabledByDefault(t *testing.T) {
	for _, text := range []string{"", "{}", "kuberay: null", "kuberay: {}", "kuberay: {rayDashboardOAuthEnabled: null, mTLSEnabled: null, ingressDomain: null}", "KubeRay: {RAYDASHBOARDOAUTHENABLED: true}"} {
		ray, warnings, err := mustLoad(t, inputs{}).RayCluster(codeflarePtr(text))
		if diff := cmp.Diff(DefaultRayCluster(), ray); diff != "" || err != nil || len(warnings) > 0 {
			t.Errorf("%q: error %v, warnings %q (-want +got):\n%s", text, err, warnings, diff)
		}
	}
	if ray, _, err := mustLoad(t, inputs{}).RayCluster(nil); err != nil || !ray.OAuth || !ray.MTLS {
		t.Errorf("RayCluster without a ConfigMap returned %+v, error %v, want OAuth and mTLS", ray, err)
	}
}

func TestRayClusterPrecedence(t *testing.T) {
	g := inputs{env: map[string]string{"OAUTH_PROXY_IMAGE": "env/oauth:1", "CERT_GENERATOR_IMAGE": ""}}
	g = g.withFile("raycluster: {mTLSEnabled: true, ingressDomain: .file.example.org., oauthProxyImage: file/oauth:1, certGeneratorImage: file/cert:1}")
	ray, _, err := mustLoad(t, g).RayCluster(codeflarePtr("kuberay: {mTLSEnabled: false, rayDashboardOAuthEnabled: false, ingressDomain: map.example.org}"))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultRayCluster()
	want.OAuth, want.IngressDomain = false, "file.example.org"
	want.OAuthProxyImage, want.CertGeneratorImage = "env/oauth:1", "file/cert:1"
	if diff := cmp.Diff(want, ray); diff != "" {
		t.Errorf("environment over file over ConfigMap over default (-want +got):\n%s", diff)
	}
}

const everyRayKey = `raycluster:
  rayDashboardOAuthEnabled: false
  mTLSEnabled: false
  ingressDomain: apps.example.org
  oauthProxyImage: a/b:1
  certGeneratorImage: a/c:1
  authProxyImage: a/d:1
  sidecarResources: {requests: {cpu: 1m}, limits: {cpu: 2m}}
  certificateResources: {requests: {cpu: 3m}, limits: {cpu: 4m}}
  certificates: cert-manager
  certificateKeyAlgorithm: RSA
  certManagerIssuer: {name: team-ca, kind: Issuer, group: example.com}
  clusterDomain: cluster.example
  kubeRayNamespaces: [kuberay]
  ingressNamespaces: [edge]
  monitoringNamespaces: []
  openToNamespace: false
  publish: gateway
  kubeRaySecurity: trust
  allowPause: true
  gatewayName: front
  gatewayNamespace: edge
`

func TestEveryKeyOfRayIsRead(t *testing.T) {
	ray, _, err := mustLoad(t, inputs{}.withFile(everyRayKey)).RayCluster(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := RayCluster{
		IngressDomain: "apps.example.org", OAuthProxyImage: "a/b:1", CertGeneratorImage: "a/c:1", AuthProxyImage: "a/d:1",
		SidecarResources:     corev1.ResourceRequirements{Requests: sizes("cpu", "1m"), Limits: sizes("cpu", "2m")},
		CertificateResources: corev1.ResourceRequirements{Requests: sizes("cpu", "3m"), Limits: sizes("cpu", "4m")},
		Certificates:         CertificatesByCertManager, CertificateKeyAlgorithm: "RSA", CertManagerIssuer: Issuer{"team-ca", "Issuer", "example.com"},
		ClusterDomain: "cluster.example", KubeRayNamespaces: []string{"kuberay"}, IngressNamespaces: []string{"edge"}, MonitoringNamespaces: []string{},
		Publish: PublishGateway, KubeRaySecurity: KubeRaySecurityTrust, AllowPause: true, GatewayName: "front", GatewayNamespace: "edge",
		Exposure: Exposure{Kind: ExposeAuto},
	}
	if diff := cmp.Diff(want, ray); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, row := range rayClusterSettings(&RayCluster{}, RegistryGateway{}) {
		if last := row.key[strings.LastIndex(row.key, ".")+1:]; !strings.Contains(everyRayKey, last+":") {
			t.Errorf("the test does not set %s", row.key)
		}
	}
}

// [R24] An invalid setting is rejected with its key, value, fix and document.
func TestRayClusterErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"boolean":        {"kuberay: {mTLSEnabled: sure}", []string{`kuberay.mTLSEnabled "sure": must be true or false`}},
		"string":         {"kuberay: {ingressDomain: 5}", []string{"kuberay.ingressDomain 5: must be a string"}},
		"domain":         {"kuberay: {ingressDomain: http://x}", []string{`kuberay.ingressDomain "http://x"`, "letters or digits"}},
		"string section": {"kuberay: yes please", []string{`kuberay "yes please"`, "an object"}},
		"invalid YAML":   {"{", []string{"config.yaml", "not valid YAML"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := mustLoad(t, inputs{}).RayCluster(codeflarePtr(tc.text))
			if err == nil {
				t.Fatal("the configuration was not rejected")
			}
			for _, part := range append(tc.want, "ConfigMap ns/codeflare-operator-config") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
	two := &LegacyConfig{Source: "ConfigMap a/b", Data: map[string]string{"x": "", "y": ""}}
	if _, _, err := mustLoad(t, inputs{}).RayCluster(two); err == nil || !strings.Contains(err.Error(), "cannot resolve the configuration: it has 2 keys [x y]") {
		t.Errorf("got error %v for two keys, want that the configuration cannot be resolved", err)
	}
}

func TestRayClusterSectionOfFileIsValidated(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"unknown key":  {"raycluster: {mTLSenabled: true}", "did you mean mTLSEnabled?"},
		"choice":       {"raycluster: {certificates: vault}", `raycluster.certificates "vault": must be operator, pod or cert-manager`},
		"algorithm":    {"raycluster: {certificateKeyAlgorithm: DSA}", "ECDSA or RSA"},
		"publish":      {"raycluster: {publish: loudly}", "auto, open, gateway or none"},
		"image":        {"raycluster: {oauthProxyImage: https://x}", `raycluster.oauthProxyImage "https://x": must be an image reference`},
		"namespace":    {"raycluster: {kubeRayNamespaces: [UP]}", `raycluster.kubeRayNamespaces "UP": must be a list of namespaces`},
		"no issuer":    {"raycluster: {certificates: cert-manager}", "set raycluster.certManagerIssuer.name"},
		"gateway name": {"raycluster: {gatewayName: Front}", `raycluster.gatewayName "Front"`},
	} {
		if _, err := (inputs{}).withFile(tc.body).load(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := (inputs{env: map[string]string{"OAUTH_PROXY_IMAGE": "https://x"}}).load(); err == nil || !strings.Contains(err.Error(), "OAUTH_PROXY_IMAGE") {
		t.Errorf("got error %v for an invalid image in the environment, want one that names the variable", err)
	}
}

// [R24] Keys without effect are reported.
func TestUnknownKeysOfRay(t *testing.T) {
	_, warnings, err := mustLoad(t, inputs{}).RayCluster(codeflarePtr("mTLSEnabled: false\nodd: 1\nkuberay: {ingresDomain: x}"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(warnings)
	want := []string{
		"ConfigMap ns/codeflare-operator-config: kuberay.ingresDomain is unknown and has no effect: remove or correct it",
		"ConfigMap ns/codeflare-operator-config: mTLSEnabled is unknown and has no effect: remove or correct it",
		"ConfigMap ns/codeflare-operator-config: odd is unknown and has no effect: remove or correct it",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzRayConfig checks that any content of the ConfigMap is accepted, or rejected with its source.
func FuzzRayConfig(f *testing.F) {
	f.Add(codeFlareConfig)
	f.Add("kuberay: [1]")
	f.Add("kuberay: [{a: 1}]")
	f.Fuzz(func(t *testing.T, text string) {
		settings, _, err := Config{}.RayCluster(codeflarePtr(text))
		if err != nil && !strings.HasPrefix(err.Error(), "ConfigMap ns/codeflare-operator-config: ") {
			t.Errorf("error %v does not contain its source", err)
		}
		if err == nil && (settings.OAuthProxyImage == "" || settings.Publish == "") {
			t.Errorf("unexpected settings: %+v", settings)
		}
	})
}
