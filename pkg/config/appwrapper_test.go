package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allSettings sets each setting except slackQueueName, which has no effect in legacy ConfigMaps, to a value other than its default.
// Durations are in nanoseconds, as in these ConfigMaps.
const allSettings = `
userRBACAdmissionCheck: false
schedulerName: packed
defaultQueueName: team-queue
autopilot:
  injectAntiAffinities: false
  monitorNodes: false
  preferNoScheduleWeight: 7
  resourceTaints:
    example.com/card:
    - {key: health, value: bad, effect: NoExecute}
faultTolerance:
  admissionGracePeriod: 1000000000
  warmupGracePeriod: 2000000000
  failureGracePeriod: 3000000000
  resetPause: 4000000000
  retryLimit: 5
  deletionGracePeriod: 6000000000
  gracePeriodCeiling: 7000000000
  successTTLCeiling: 8000000000
`

func expectedAllSettings() AppWrapper {
	settings := DefaultAppWrapper()
	settings.UserRBACAdmissionCheck, settings.SchedulerName, settings.DefaultQueueName = false, "packed", "team-queue"
	settings.Autopilot.InjectAntiAffinities, settings.Autopilot.MonitorNodes = false, false
	settings.Autopilot.PreferNoScheduleWeight = 7
	settings.Autopilot.ResourceTaints["example.com/card"] = []NodeTaint{{Key: "health", Value: "bad", Effect: "NoExecute"}}
	settings.FaultTolerance = FaultTolerance{
		AdmissionGracePeriod: time.Second, WarmupGracePeriod: 2 * time.Second, FailureGracePeriod: 3 * time.Second,
		ResetPause: 4 * time.Second, RetryLimit: 5, DeletionGracePeriod: 6 * time.Second,
		GracePeriodCeiling: 7 * time.Second, SuccessTTLCeiling: 8 * time.Second,
	}
	return settings
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

func codeflare(text string) LegacyConfig {
	return LegacyConfig{Source: "ConfigMap ns/codeflare-operator-config", Embedded: true, Data: map[string]string{"config.yaml": text}}
}

func standalone(text string) LegacyConfig {
	return LegacyConfig{Source: "ConfigMap ns/appwrapper-operator-config", Data: map[string]string{"any-name": text}}
}

// [appwrapper-21] The defaults are valid, and all forms of documents with the same settings have the same result.
func TestAppWrapperDocuments(t *testing.T) {
	withQueue := expectedAllSettings()
	withQueue.SlackQueueName = "slack"
	for name, tc := range map[string]struct {
		file   string
		legacy []LegacyConfig
		want   AppWrapper
	}{
		"no configuration":     {want: DefaultAppWrapper()},
		"file":                 {file: "appwrapper:\n" + indent(allSettings+"slackQueueName: slack", "  "), want: withQueue},
		"embedded":             {legacy: []LegacyConfig{codeflare("appwrapper:\n  enabled: true\n  Config:\n" + indent(allSettings, "    "))}, want: expectedAllSettings()},
		"embedded, lower case": {legacy: []LegacyConfig{codeflare("appwrapper:\n  config:\n" + indent(allSettings, "    "))}, want: expectedAllSettings()},
		"standalone":           {legacy: []LegacyConfig{standalone("appwrapper:\n" + indent(allSettings, "  "))}, want: expectedAllSettings()},
		"keys in other cases": {legacy: []LegacyConfig{standalone("AppWrapper:\n" +
			indent(strings.ReplaceAll(strings.ReplaceAll(allSettings, "Period", "period"), "userRBAC", "UserRbac"), "  "))}, want: expectedAllSettings()},
		"ConfigMap without the section": {legacy: []LegacyConfig{codeflare("kuberay: {ingressDomain: kind}")}, want: DefaultAppWrapper()},
		"empty section":                 {legacy: []LegacyConfig{codeflare("appwrapper:\n  enabled: true"), standalone("appwrapper: {}")}, want: DefaultAppWrapper()},
		"null scalars are ignored":      {legacy: []LegacyConfig{standalone("appwrapper: {schedulerName: null, faultTolerance: {retryLimit: null, resetPause: null}, userRBACAdmissionCheck: null}")}, want: DefaultAppWrapper()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, inputs{}.withFile(tc.file))
			got, warnings, err := cfg.AppWrapper(tc.legacy...)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("got error %v and warnings %q", err, warnings)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppWrapperPrecedence(t *testing.T) {
	cfg := mustLoad(t, inputs{}.withFile("appwrapper: {faultTolerance: {retryLimit: 9}}"))
	got, _, err := cfg.AppWrapper(
		codeflare("appwrapper: {Config: {schedulerName: first, defaultQueueName: first, faultTolerance: {retryLimit: 7, resetPause: 5s}}}"),
		standalone("appwrapper: {defaultQueueName: second}"))
	if err != nil {
		t.Fatal(err)
	}
	if got.SchedulerName != "first" || got.DefaultQueueName != "second" || got.FaultTolerance.RetryLimit != 9 || got.FaultTolerance.ResetPause != 5*time.Second {
		t.Errorf("got %+v, want the file to override the ConfigMaps, and the AppWrapper ConfigMap to override the CodeFlare ConfigMap", got)
	}
	// A later call does not return the values of these ConfigMaps.
	again, _, err := cfg.AppWrapper()
	if err != nil || again.SchedulerName != "" || again.FaultTolerance.RetryLimit != 9 {
		t.Errorf("AppWrapper without ConfigMaps returned %+v, error %v, want only the value of the file", again, err)
	}
}

func TestAutopilotDocuments(t *testing.T) {
	read := func(texts ...string) *Autopilot {
		t.Helper()
		var legacy []LegacyConfig
		for _, text := range texts {
			legacy = append(legacy, standalone(text))
		}
		got, _, err := mustLoad(t, inputs{}).AppWrapper(legacy...)
		if err != nil {
			t.Fatal(err)
		}
		return got.Autopilot
	}
	if got := read("appwrapper: {autopilot: null}"); got != nil {
		t.Errorf("got %+v for null, want nil", got)
	}
	if got := read("appwrapper: {autopilot: null}", "appwrapper: {autopilot: {monitorNodes: false}}"); got == nil || got.MonitorNodes || !got.InjectAntiAffinities {
		t.Errorf("got %+v for null and a later section, want the section with defaults", got)
	}
	if got := read("appwrapper: {autopilot: {preferNoScheduleWeight: null}}"); got.PreferNoScheduleWeight != 1 {
		t.Errorf("got weight %d for null, want 1", got.PreferNoScheduleWeight)
	}
	if got := read("appwrapper: {autopilot: {}}"); got.PreferNoScheduleWeight != 50 {
		t.Errorf("got weight %d without a setting, want 50", got.PreferNoScheduleWeight)
	}
	if got := read("appwrapper: {autopilot: {resourceTaints: {}}}"); len(got.ResourceTaints["nvidia.com/gpu"]) != 3 {
		t.Errorf("got taints %v for an empty map, want the default", got.ResourceTaints)
	}
	got := read("appwrapper: {autopilot: {resourceTaints: {nvidia.com/gpu: [], example.com/card: [{key: a, value: b, effect: NoSchedule}]}}}")
	if taints, ok := got.ResourceTaints["nvidia.com/gpu"]; !ok || len(taints) != 0 || len(got.ResourceTaints["example.com/card"]) != 1 {
		t.Errorf("got taints %v, want entries replaced by resource", got.ResourceTaints)
	}
}

// [appwrapper-21] Durations in legacy ConfigMaps are nanoseconds; durations with units are equivalent.
func TestDurationsWithUnitsAndInNanoseconds(t *testing.T) {
	for _, text := range []string{"600000000000", `"10m"`, "10m0s", "600s"} {
		for name, legacy := range map[string]LegacyConfig{
			"embedded":   codeflare("appwrapper: {Config: {faultTolerance: {warmupGracePeriod: " + text + "}}}"),
			"standalone": standalone("appwrapper: {faultTolerance: {warmupGracePeriod: " + text + "}}"),
		} {
			got, _, err := mustLoad(t, inputs{}).AppWrapper(legacy)
			if err != nil || got.FaultTolerance.WarmupGracePeriod != 10*time.Minute {
				t.Errorf("%s %s: got %s and error %v, want 10m", name, text, got.FaultTolerance.WarmupGracePeriod, err)
			}
		}
		cfg := mustLoad(t, inputs{}.withFile("appwrapper: {faultTolerance: {warmupGracePeriod: "+text+"}}"))
		if got, _, err := cfg.AppWrapper(); err != nil || got.FaultTolerance.WarmupGracePeriod != 10*time.Minute {
			t.Errorf("file %s: got %s and error %v, want 10m", text, got.FaultTolerance.WarmupGracePeriod, err)
		}
	}
}

// Old keys exist in many ConfigMaps and are not reported; other keys without effect are.
func TestKeysWithoutEffect(t *testing.T) {
	old := "enableKueueIntegrations: true\nkueueJobReconciller: {manageJobsWithoutQueueName: true, waitForPodsReady: {enable: true}}\nslackQueueName: \"\""
	for name, tc := range map[string]struct {
		legacy LegacyConfig
		want   []string // parts of each warning
	}{
		"old keys, embedded":   {codeflare("mcad: {}\ninstascale: {}\nappwrapper:\n  enabled: true\n  externalController: true\n  Config:\n" + indent(old, "    ")), nil},
		"old keys, standalone": {standalone("controllerManager: {}\nappwrapper:\n" + indent(old, "  ")), nil},
		"slack queue":          {standalone("appwrapper: {slackQueueName: slack}"), []string{"appwrapper.slackQueueName has no effect"}},
		"wrong level":          {codeflare("appwrapper: {schedulerName: a}"), []string{"appwrapper.schedulerName is unknown and has no effect: remove or correct it"}},
		"unknown":              {standalone("appwrapper: {shedulerName: a}"), []string{"ConfigMap ns/appwrapper-operator-config: appwrapper.shedulerName is unknown"}},
		"unknown nested key": {codeflare("appwrapper: {Config: {autopilot: {x: 1, resourceTaints: {r: [{key: a, effect: NoExecute, odd: 2}]}}, faultTolerance: {z: 3}}}"), []string{
			"appwrapper.Config.autopilot.x", "appwrapper.Config.autopilot.resourceTaints.r[0].odd", "appwrapper.Config.faultTolerance.z",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := mustLoad(t, inputs{}).AppWrapper(tc.legacy)
			if err != nil || len(warnings) != len(tc.want) {
				t.Fatalf("got error %v and warnings %q", err, warnings)
			}
			slices.Sort(warnings)
			slices.Sort(tc.want)
			for i, want := range tc.want {
				if !slices.ContainsFunc(warnings, func(note string) bool { return strings.Contains(note, want) }) {
					t.Errorf("no warning contains %q (%d): %q", want, i, warnings)
				}
			}
		})
	}
}

// [appwrapper-21] An invalid setting is rejected with its key, value, fix and document.
func TestAppWrapperErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		legacy LegacyConfig
		want   []string
	}{
		"two keys":             {LegacyConfig{Source: "ConfigMap a/b", Data: map[string]string{"x": "", "y": ""}}, []string{"ConfigMap a/b", "cannot resolve", "2 keys [x y]", "leave exactly one"}},
		"no key":               {LegacyConfig{Source: "ConfigMap a/b"}, []string{"0 keys"}},
		"invalid YAML":         {standalone("{"), []string{"any-name", "not valid YAML"}},
		"list":                 {standalone("[]"), []string{"must hold one YAML object"}},
		"string section":       {standalone("appwrapper: yes please"), []string{"appwrapper", `"yes please"`, "an object"}},
		"boolean":              {standalone("appwrapper: {userRBACAdmissionCheck: 1}"), []string{"appwrapper.userRBACAdmissionCheck 1: must be true or false"}},
		"string":               {codeflare("appwrapper: {Config: {schedulerName: 5}}"), []string{"appwrapper.Config.schedulerName 5: must be a string"}},
		"number":               {standalone("appwrapper: {faultTolerance: {retryLimit: many}}"), []string{`appwrapper.faultTolerance.retryLimit "many": must be a whole number`}},
		"number exceeds int32": {standalone("appwrapper: {faultTolerance: {retryLimit: 99999999999}}"), []string{`retryLimit "99999999999": must be a whole number`}},
		"duration":             {standalone("appwrapper: {faultTolerance: {resetPause: soon}}"), []string{`resetPause "soon"`, `"5m"`, "nanoseconds"}},
		"decimal duration":     {standalone("appwrapper: {faultTolerance: {resetPause: 1.5}}"), []string{"resetPause 1.5: must be", "whole number of nanoseconds"}},
		"no unit":              {standalone(`appwrapper: {faultTolerance: {resetPause: "60"}}`), []string{`resetPause "60"`, "nanoseconds"}},
		"boolean duration":     {standalone("appwrapper: {faultTolerance: {resetPause: true}}"), []string{"resetPause true: must be a duration"}},
		"taints":               {standalone("appwrapper: {autopilot: {resourceTaints: {r: text}}}"), []string{"autopilot.resourceTaints", "must be a list"}},
		"taint":                {standalone("appwrapper: {autopilot: {resourceTaints: {r: [text]}}}"), []string{"autopilot.resourceTaints", "must be a list of key, value and effect"}},
		"effect":               {standalone("appwrapper: {autopilot: {resourceTaints: {r: [{key: a, effect: Evict}]}}}"), []string{"appwrapper.autopilot.resourceTaints", `r[0].effect "Evict"`, "PreferNoSchedule"}},
		"autopilot":            {standalone("appwrapper: {autopilot: true}"), []string{"appwrapper.autopilot true: must be an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := mustLoad(t, inputs{}).AppWrapper(tc.legacy)
			if err == nil {
				t.Fatal("the configuration was not rejected")
			}
			for _, part := range append(tc.want, tc.legacy.Source) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

// An invalid section in the configuration file is an error at the start.
func TestAppWrapperSectionOfFileIsValidated(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"unknown key":      {"appwrapper: {schedulername: a}", "did you mean schedulerName?"},
		"unknown deep key": {"appwrapper: {faultTolerance: {pause: 1}}", `unknown key "pause" in appwrapper.faultTolerance`},
		"type":             {"appwrapper: {userRBACAdmissionCheck: 1}", "must be true or false"},
		"duration":         {"appwrapper: {faultTolerance: {resetPause: soon}}", `appwrapper.faultTolerance.resetPause "soon": must be a duration`},
		"effect":           {"appwrapper: {autopilot: {resourceTaints: {r: [{key: a, effect: Evict}]}}}", "NoExecute, NoSchedule or PreferNoSchedule"},
	} {
		if _, err := (inputs{}).withFile(tc.body).load(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// FuzzLegacyConfig checks that any content of a ConfigMap is accepted, or rejected with its source.
func FuzzLegacyConfig(f *testing.F) {
	f.Add("appwrapper:\n  enabled: true\n  Config:\n"+indent(allSettings, "    "), true)
	f.Add("appwrapper:\n"+indent(allSettings, "  "), false)
	f.Add("appwrapper: {autopilot: {resourceTaints: {r: [1, {}, null]}}}", false)
	f.Fuzz(func(t *testing.T, text string, embedded bool) {
		settings, _, err := Config{}.AppWrapper(LegacyConfig{Source: "s", Data: map[string]string{"k": text}, Embedded: embedded})
		if err != nil && !strings.HasPrefix(err.Error(), "s: ") {
			t.Errorf("error %v does not contain its source", err)
		}
		if err == nil && settings.FaultTolerance.GracePeriodCeiling == 0 && !strings.Contains(text, "0") {
			t.Errorf("unexpected settings: %+v", settings)
		}
	})
}
