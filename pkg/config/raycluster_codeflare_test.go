package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Keys of the CodeFlare configuration are accepted without a warning. Each changes only its setting of Ray or AppWrapper, or none. The
// other keys of appwrapper.Config are in allSettings.
func TestCodeFlareKeysAreAccepted(t *testing.T) {
	unchanged := func(*RayCluster, *AppWrapper) {}
	for text, want := range map[string]func(*RayCluster, *AppWrapper){
		// Keys outside of kuberay and appwrapper have no effect: they are obsolete or set by flags of the manager.
		"clientConnection: {qps: 12.5}":                                      unchanged,
		"clientConnection: {burst: 7}":                                       unchanged,
		"metrics: {bindAddress: '0'}":                                        unchanged,
		"health: {bindAddress: ''}":                                          unchanged,
		"health: {readinessEndpointName: ready}":                             unchanged,
		"health: {livenessEndpointName: alive}":                              unchanged,
		"leaderElection: {leaderElect: true, resourceName: x}":               unchanged,
		"leaderElection: {resourceNamespace: ns, resourceLock: leases}":      unchanged,
		"leaderElection: {leaseDuration: 15s, renewDeadline: 10s}":           unchanged,
		"leaderElection: {retryPeriod: 2s}":                                  unchanged,
		"kuberay: {rayDashboardOAuthEnabled: false}":                         func(r *RayCluster, _ *AppWrapper) { r.OAuth = false },
		"kuberay: {rayDashboardOAuthEnabled: true}":                          unchanged,
		"kuberay: {mTLSEnabled: false}":                                      func(r *RayCluster, _ *AppWrapper) { r.MTLS = false },
		"kuberay: {mTLSEnabled: true}":                                       unchanged,
		"kuberay: {ingressDomain: kind}":                                     func(r *RayCluster, _ *AppWrapper) { r.IngressDomain = "kind" },
		"kuberay: {ingressDomain: ''}":                                       unchanged,
		"appwrapper: {enabled: true}":                                        unchanged,
		"appwrapper: {Config: {userRBACAdmissionCheck: false}}":              func(_ *RayCluster, a *AppWrapper) { a.UserRBACAdmissionCheck = false },
		"appwrapper: {Config: {schedulerName: packed}}":                      func(_ *RayCluster, a *AppWrapper) { a.SchedulerName = "packed" },
		"appwrapper: {Config: {defaultQueueName: q}}":                        func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"appwrapper: {Config: {autopilot: null}}":                            func(_ *RayCluster, a *AppWrapper) { a.Autopilot = nil },
		"appwrapper: {Config: {autopilot: {monitorNodes: false}}}":           func(_ *RayCluster, a *AppWrapper) { a.Autopilot.MonitorNodes = false },
		"appwrapper: {Config: {faultTolerance: {retryLimit: 9}}}":            func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.RetryLimit = 9 },
		"appwrapper: {Config: {faultTolerance: {resetPause: 90000000000}}}":  func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.ResetPause = 90 * time.Second },
		"appwrapper: {Config: {faultTolerance: {successTTLCeiling: 1}}}":     func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.SuccessTTLCeiling = 1 },
		"appwrapper: {Config: {faultTolerance: {warmupGracePeriod: '10m'}}}": func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.WarmupGracePeriod = 10 * time.Minute },
		// Other spellings, and keys of earlier versions.
		"appwrapper: {config: {defaultQueueName: q}}":                    func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"AppWrapper: {CONFIG: {DefaultQueueName: q}}":                    func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"KUBERAY: {mtlsenabled: false}":                                  func(r *RayCluster, _ *AppWrapper) { r.MTLS = false },
		"mcad: {enabled: true, nested: [1, {a: b}]}":                     unchanged,
		"instascale: {enabled: true, maxScaleoutAllowed: 3}":             unchanged,
		"kuberay: {certGeneratorImage: quay.io/modh/ray:2.35}":           unchanged,
		"appwrapper: {externalController: true}":                         unchanged,
		"appwrapper: {Config: {enableKueueIntegrations: true}}":          unchanged,
		"appwrapper: {Config: {kueueJobReconciller: {a: {b: [1]}}}}":     unchanged,
		"appwrapper: {Config: {slackQueueName: ''}}":                     unchanged,
		"MCAD: null\nInstaScale: null\nkuberay: null\nappwrapper: null":  unchanged,
		"appwrapper: {Config: {faultTolerance: {retryLimit: null}}}":     unchanged,
		"clientConnection: null\nmetrics: 5\nhealth: text\nmcad: [1, 2]": unchanged, // these sections are ignored
	} {
		t.Run(text, func(t *testing.T) {
			cfg := mustLoad(t, inputs{})
			ray, warnings, err := cfg.RayCluster(codeflarePtr(text))
			if err != nil || len(warnings) > 0 {
				t.Errorf("Ray: got error %v and warnings %q", err, warnings)
			}
			wrapper, warnings, err := cfg.AppWrapper(codeflare(text))
			if err != nil || len(warnings) > 0 {
				t.Errorf("AppWrapper: got error %v and warnings %q", err, warnings)
			}
			wantRay, wantWrapper := DefaultRayCluster(), DefaultAppWrapper()
			want(&wantRay, &wantWrapper)
			if diff := cmp.Diff(wantRay, ray); diff != "" {
				t.Errorf("Ray (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantWrapper, wrapper); diff != "" {
				t.Errorf("AppWrapper (-want +got):\n%s", diff)
			}
		})
	}
}

// The only key of the ConfigMap is read, regardless of its name. A ConfigMap with no key or several keys is an error.
func TestCodeFlareConfigMapMayUseAnyKey(t *testing.T) {
	for _, name := range []string{"config.yaml", "config", "x", "codeflare.json"} {
		legacy := &LegacyConfig{Source: "ConfigMap a/b", Embedded: true, Data: map[string]string{name: `{"kuberay": {"mTLSEnabled": false}}`}}
		if ray, _, err := mustLoad(t, inputs{}).RayCluster(legacy); err != nil || ray.MTLS || !ray.OAuth {
			t.Errorf("%s: unexpected ray %+v, error %v", name, ray, err)
		}
	}
	for _, data := range []map[string]string{nil, {}, {"a": "", "b": ""}} {
		legacy := &LegacyConfig{Source: "ConfigMap a/b", Embedded: true, Data: data}
		if _, _, err := mustLoad(t, inputs{}).RayCluster(legacy); err == nil || !strings.HasPrefix(err.Error(), "ConfigMap a/b: cannot resolve the configuration: it has ") {
			t.Errorf("%v: got error %v, want one that starts with 'ConfigMap a/b: cannot resolve the configuration: it has '", data, err)
		}
	}
}

// raySources are the sources of settings, each with its own values.
var raySources = []struct {
	name      string
	configure func(g *inputs, legacy *string)
}{
	{"environment", func(g *inputs, _ *string) {
		g.env = map[string]string{"OAUTH_PROXY_IMAGE": "env/oauth:1", "CERT_GENERATOR_IMAGE": "env/cert:1"}
	}},
	{"file", func(g *inputs, _ *string) {
		*g = g.withFile("raycluster: {oauthProxyImage: file/oauth:1, certGeneratorImage: file/cert:1, ingressDomain: file.example.org, mTLSEnabled: true}")
	}},
	{"ConfigMap", func(_ *inputs, legacy *string) {
		*legacy = "kuberay: {certGeneratorImage: map/cert:1, ingressDomain: map.example.org, mTLSEnabled: false}"
	}},
}

// For every combination of sources, each setting has the value of the source with the highest precedence that sets it.
func TestPrecedenceOfEverySource(t *testing.T) {
	for mask := range 1 << len(raySources) {
		var g inputs
		legacyConfig := ""
		isSet := map[string]bool{}
		for i, source := range raySources {
			if mask&(1<<i) != 0 {
				source.configure(&g, &legacyConfig)
				isSet[source.name] = true
			}
		}
		got, _, err := mustLoad(t, g).RayCluster(codeflarePtr(legacyConfig))
		if err != nil {
			t.Fatal(err)
		}
		want := DefaultRayCluster()
		if isSet["ConfigMap"] { // certGeneratorImage has no effect in the ConfigMap
			want.IngressDomain, want.MTLS = "map.example.org", false
		}
		if isSet["file"] {
			want.IngressDomain, want.MTLS = "file.example.org", true
			want.OAuthProxyImage, want.CertGeneratorImage = "file/oauth:1", "file/cert:1"
		}
		if isSet["environment"] {
			want.OAuthProxyImage, want.CertGeneratorImage = "env/oauth:1", "env/cert:1"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", isSet, diff)
		}
	}
}

// An error in the section of one component does not affect the other component.
func TestErrorsAreLimitedToTheirSection(t *testing.T) {
	cfg := mustLoad(t, inputs{})
	const invalidAppWrapper = "kuberay: {mTLSEnabled: false}\nappwrapper: {Config: {faultTolerance: {warmupGracePeriod: soon}}}"
	if ray, _, err := cfg.RayCluster(codeflarePtr(invalidAppWrapper)); err != nil || ray.MTLS {
		t.Errorf("Ray: got %+v and error %v", ray, err)
	}
	if _, _, err := cfg.AppWrapper(codeflare(invalidAppWrapper)); err == nil || !strings.Contains(err.Error(), `warmupGracePeriod "soon"`) {
		t.Errorf("AppWrapper: got error %v", err)
	}
	const invalidRay = "kuberay: {mTLSEnabled: 1}\nappwrapper: {Config: {schedulerName: packed}}"
	if _, _, err := cfg.RayCluster(codeflarePtr(invalidRay)); err == nil || !strings.Contains(err.Error(), "kuberay.mTLSEnabled 1: must be true or false") {
		t.Errorf("Ray: got error %v", err)
	}
	if wrapper, _, err := cfg.AppWrapper(codeflare(invalidRay)); err != nil || wrapper.SchedulerName != "packed" {
		t.Errorf("AppWrapper: got %+v and error %v", wrapper, err)
	}
}

// Repeated calls return the same settings, and leave the defaults unchanged. Invalid values of section raycluster are reported together.
func TestRepeatedCallsReturnSameSettings(t *testing.T) {
	cfg := mustLoad(t, inputs{}.withFile(everyRayKey))
	first, _, err := cfg.RayCluster(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", first)
	for range 3 {
		if again, _, err := cfg.RayCluster(codeflarePtr("kuberay: {mTLSEnabled: true}")); err != nil || fmt.Sprintf("%+v", again) != before {
			t.Errorf("RayCluster called again returned %+v, error %v, want the same settings", again, err)
		}
	}
	defaults, _, err := mustLoad(t, inputs{}).RayCluster(codeflarePtr("{}"))
	if diff := cmp.Diff(DefaultRayCluster(), defaults); diff != "" || err != nil {
		t.Errorf("unexpected error %v or settings (-want +got):\n%s", err, diff)
	}
	_, err = (inputs{}).withFile("raycluster: {publish: loudly, certificates: vault, ingressNamespaces: [UP], clusterDomain: -x-}").load()
	for _, key := range []string{"raycluster.publish", "raycluster.certificates", "raycluster.ingressNamespaces", "raycluster.clusterDomain"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("error %v does not contain %s", err, key)
		}
	}
}
