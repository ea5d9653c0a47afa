package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each key of the CodeFlare configuration changes its settings of Ray and AppWrapper and no other ones, and is not reported as unknown.
func TestEveryCodeFlareKeyIsRead(t *testing.T) {
	nothing := func(*RayCluster, *AppWrapper) {}
	for text, want := range map[string]func(*RayCluster, *AppWrapper){
		// Flags of the manager have replaced these keys.
		"clientConnection: {qps: 12.5}":                                      nothing,
		"clientConnection: {burst: 7}":                                       nothing,
		"metrics: {bindAddress: '0'}":                                        nothing,
		"health: {bindAddress: ''}":                                          nothing,
		"health: {readinessEndpointName: ready}":                             nothing,
		"health: {livenessEndpointName: alive}":                              nothing,
		"leaderElection: {leaderElect: true, resourceName: x}":               nothing,
		"leaderElection: {resourceNamespace: ns, resourceLock: leases}":      nothing,
		"leaderElection: {leaseDuration: 15s, renewDeadline: 10s}":           nothing,
		"leaderElection: {retryPeriod: 2s}":                                  nothing,
		"kuberay: {rayDashboardOAuthEnabled: false}":                         func(r *RayCluster, _ *AppWrapper) { r.OAuth = false },
		"kuberay: {rayDashboardOAuthEnabled: true}":                          nothing,
		"kuberay: {mTLSEnabled: false}":                                      func(r *RayCluster, _ *AppWrapper) { r.MTLS = false },
		"kuberay: {mTLSEnabled: true}":                                       nothing,
		"kuberay: {ingressDomain: kind}":                                     func(r *RayCluster, _ *AppWrapper) { r.IngressDomain = "kind" },
		"kuberay: {ingressDomain: ''}":                                       nothing,
		"appwrapper: {enabled: true}":                                        nothing,
		"appwrapper: {Config: {userRBACAdmissionCheck: false}}":              func(_ *RayCluster, a *AppWrapper) { a.UserRBACAdmissionCheck = false },
		"appwrapper: {Config: {schedulerName: packed}}":                      func(_ *RayCluster, a *AppWrapper) { a.SchedulerName = "packed" },
		"appwrapper: {Config: {defaultQueueName: q}}":                        func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"appwrapper: {Config: {autopilot: null}}":                            func(_ *RayCluster, a *AppWrapper) { a.Autopilot = nil },
		"appwrapper: {Config: {autopilot: {monitorNodes: false}}}":           func(_ *RayCluster, a *AppWrapper) { a.Autopilot.MonitorNodes = false },
		"appwrapper: {Config: {faultTolerance: {retryLimit: 9}}}":            func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.RetryLimit = 9 },
		"appwrapper: {Config: {faultTolerance: {resetPause: 90000000000}}}":  func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.ResetPause = 90 * time.Second },
		"appwrapper: {Config: {faultTolerance: {successTTLCeiling: 1}}}":     func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.SuccessTTLCeiling = 1 },
		"appwrapper: {Config: {faultTolerance: {warmupGracePeriod: '10m'}}}": func(_ *RayCluster, a *AppWrapper) { a.FaultTolerance.WarmupGracePeriod = 10 * time.Minute },
		// The surprises: spellings, and keys of older versions that must not break loading.
		"appwrapper: {config: {defaultQueueName: q}}":                    func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"AppWrapper: {CONFIG: {DefaultQueueName: q}}":                    func(_ *RayCluster, a *AppWrapper) { a.DefaultQueueName = "q" },
		"KUBERAY: {mtlsenabled: false}":                                  func(r *RayCluster, _ *AppWrapper) { r.MTLS = false },
		"mcad: {enabled: true, nested: [1, {a: b}]}":                     nothing,
		"instascale: {enabled: true, maxScaleoutAllowed: 3}":             nothing,
		"kuberay: {certGeneratorImage: quay.io/modh/ray:2.35}":           nothing,
		"appwrapper: {externalController: true}":                         nothing,
		"appwrapper: {Config: {enableKueueIntegrations: true}}":          nothing,
		"appwrapper: {Config: {kueueJobReconciller: {a: {b: [1]}}}}":     nothing,
		"appwrapper: {Config: {slackQueueName: ''}}":                     nothing,
		"MCAD: null\nInstaScale: null\nkuberay: null\nappwrapper: null":  nothing,
		"appwrapper: {Config: {faultTolerance: {retryLimit: null}}}":     nothing,
		"clientConnection: null\nmetrics: 5\nhealth: text\nmcad: [1, 2]": nothing, // they are not read
	} {
		t.Run(text, func(t *testing.T) {
			cfg := mustLoad(t, given{})
			ray, notes, err := cfg.RayCluster(rayMap(text))
			if err != nil || len(notes) > 0 {
				t.Errorf("Ray: error %v, notes %q", err, notes)
			}
			wrapper, notes, err := cfg.AppWrapper(codeflare(text))
			if err != nil || len(notes) > 0 {
				t.Errorf("AppWrapper: error %v, notes %q", err, notes)
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

// The only key of the ConfigMap is read, regardless of its name; maps are merged over defaults.
func TestCodeFlareConfigMapMayUseAnyKey(t *testing.T) {
	for _, name := range []string{"config.yaml", "config", "x", "codeflare.json"} {
		older := &LegacyConfig{Source: "ConfigMap a/b", Embedded: true, Data: map[string]string{name: `{"kuberay": {"mTLSEnabled": false}}`}}
		if ray, _, err := mustLoad(t, given{}).RayCluster(older); err != nil || ray.MTLS || !ray.OAuth {
			t.Errorf("%s: unexpected ray %+v, error %v", name, ray, err)
		}
	}
	for _, data := range []map[string]string{nil, {}, {"a": "", "b": ""}} {
		older := &LegacyConfig{Source: "ConfigMap a/b", Embedded: true, Data: data}
		if _, _, err := mustLoad(t, given{}).RayCluster(older); err == nil || !strings.HasPrefix(err.Error(), "ConfigMap a/b: cannot resolve the configuration: it has ") {
			t.Errorf("%v: got error %v, want one containing 'ConfigMap a/b: cannot resolve the configuration: it has '", data, err)
		}
	}
}

// raySources are the sources of a setting, in their order of precedence; each has its own value.
var raySources = []struct {
	name string
	say  func(g *given, older *string)
}{
	{"environment", func(g *given, _ *string) {
		g.env = map[string]string{"OAUTH_PROXY_IMAGE": "env/oauth:1", "CERT_GENERATOR_IMAGE": "env/cert:1"}
	}},
	{"file", func(g *given, _ *string) {
		*g = g.withFile("raycluster: {oauthProxyImage: file/oauth:1, certGeneratorImage: file/cert:1, ingressDomain: file.example.org, mTLSEnabled: true}")
	}},
	{"map", func(_ *given, older *string) {
		*older = "kuberay: {certGeneratorImage: map/cert:1, ingressDomain: map.example.org, mTLSEnabled: false}"
	}},
}

// For every combination of sources, each setting has the value of the source with the highest precedence that sets it.
func TestPrecedenceOfEverySource(t *testing.T) {
	for mask := range 1 << len(raySources) {
		var g given
		legacyConfig := ""
		isSet := map[string]bool{}
		for i, source := range raySources {
			if mask&(1<<i) != 0 {
				source.say(&g, &legacyConfig)
				isSet[source.name] = true
			}
		}
		got, _, err := mustLoad(t, g).RayCluster(rayMap(legacyConfig))
		if err != nil {
			t.Fatal(err)
		}
		want := DefaultRayCluster()
		if isSet["map"] { // the image has had no effect there for long
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

// A mistake in one section is reported by the component whose section it is; the other works.
func TestErrorsAreLimitedToTheirSection(t *testing.T) {
	cfg := mustLoad(t, given{})
	const wrapperWrong = "kuberay: {mTLSEnabled: false}\nappwrapper: {Config: {faultTolerance: {warmupGracePeriod: soon}}}"
	if ray, _, err := cfg.RayCluster(rayMap(wrapperWrong)); err != nil || ray.MTLS {
		t.Errorf("Ray: %+v, %v", ray, err)
	}
	if _, _, err := cfg.AppWrapper(codeflare(wrapperWrong)); err == nil || !strings.Contains(err.Error(), `warmupGracePeriod "soon"`) {
		t.Errorf("AppWrapper: %v", err)
	}
	const rayWrong = "kuberay: {mTLSEnabled: 1}\nappwrapper: {Config: {schedulerName: packed}}"
	if _, _, err := cfg.RayCluster(rayMap(rayWrong)); err == nil || !strings.Contains(err.Error(), "kuberay.mTLSEnabled 1: must be true or false") {
		t.Errorf("Ray: %v", err)
	}
	if wrapper, _, err := cfg.AppWrapper(codeflare(rayWrong)); err != nil || wrapper.SchedulerName != "packed" {
		t.Errorf("AppWrapper: %+v, %v", wrapper, err)
	}
}

// All errors are reported together, and reading modifies neither the defaults nor earlier results.
func TestSettingsOfRayAreValues(t *testing.T) {
	cfg := mustLoad(t, given{}.withFile(everyRayKey))
	first, _, err := cfg.RayCluster(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", first)
	for range 3 {
		if again, _, err := cfg.RayCluster(rayMap("kuberay: {mTLSEnabled: true}")); err != nil || fmt.Sprintf("%+v", again) != before {
			t.Errorf("RayCluster called again returned %+v, error %v, want the same settings", again, err)
		}
	}
	defaults, _, err := mustLoad(t, given{}).RayCluster(rayMap("{}"))
	if diff := cmp.Diff(DefaultRayCluster(), defaults); diff != "" || err != nil {
		t.Errorf("unexpected error %v or settings (-want +got):\n%s", err, diff)
	}
	_, err = (given{}).withFile("raycluster: {publish: loudly, certificates: vault, ingressNamespaces: [UP], clusterDomain: -x-}").load()
	for _, key := range []string{"raycluster.publish", "raycluster.certificates", "raycluster.ingressNamespaces", "raycluster.clusterDomain"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v lacks %s", err, key)
		}
	}
}
