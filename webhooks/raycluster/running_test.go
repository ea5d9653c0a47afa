package raycluster

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// [R28] [R29] Injections follow the life of pods: a template must not differ from the running pods.
func TestTemplatesOfRunningClusters(t *testing.T) {
	s := onOpenShift()
	label, token := put("x", "metadata", "labels", "a"), func(o map[string]any) {
		put("token", "spec", "authOptions", "mode")(o)
		put("2.52.0", "spec", "rayVersion")(o)
	}
	group := func(o map[string]any) {
		groups := listAt(o, "spec", "workerGroupSpecs")
		at(o, "spec").(map[string]any)["workerGroupSpecs"] = append(groups, map[string]any{"groupName": "more", "template": map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "ray-worker"}}}}})
	}
	for name, test := range map[string]struct {
		stored, now Settings
		change      func(map[string]any)
		auth        raycluster.Auth
		mTLS        bool
	}{
		"a label, mTLS is new":               {s.with(noMTLS), s, label, raycluster.AuthOAuth, false},
		"workers, mTLS is new":               {s.with(noMTLS), s, group, raycluster.AuthOAuth, false},
		"the head, mTLS is new":              {s.with(noMTLS), s, changedHead, raycluster.AuthOAuth, true},
		"suspended, mTLS is new":             {s.with(noMTLS), s, put(true, "spec", "suspend"), raycluster.AuthOAuth, true},
		"a label, mTLS is off":               {s, s.with(noMTLS), label, raycluster.AuthOAuth, true},
		"workers, mTLS is off":               {s, s.with(noMTLS), group, raycluster.AuthOAuth, true},
		"the head, mTLS is off":              {s, s.with(noMTLS), changedHead, raycluster.AuthOAuth, false},
		"suspended, mTLS is off":             {s, s.with(noMTLS), put(true, "spec", "suspend"), raycluster.AuthOAuth, false},
		"a label, OAuth is off":              {s, s.with(noOAuth), label, raycluster.AuthOAuth, true},
		"the head, OAuth is off":             {s, s.with(noOAuth), changedHead, raycluster.AuthNone, true},
		"a label, OAuth is new":              {s.with(noOAuth), s, label, raycluster.AuthOAuth, true},
		"a token of Ray":                     {s, s, token, raycluster.AuthOAuth, true},
		"a token of Ray, KubeRay is trusted": {s, s.with(trusting), token, raycluster.AuthNone, true},
		"certificates of KubeRay":            {s, s, put(true, "spec", "tlsOptions", "enabled"), raycluster.AuthOAuth, false},
		"legacy form, mTLS disabled":         {s.with(original), s.with(noMTLS), label, raycluster.AuthOAuth, true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := applyDefaults(t, test.stored, parse(t, minimal), nil)
			got := applyDefaults(t, test.now, copyOf(stored, test.change), stored)
			if has := raycluster.View(got).Injected(); has.Sidecar != test.auth || has.MTLS != test.mTLS || has.PodIssued && test.stored.Certificates != config.CertificatesByPod {
				t.Errorf("the head has %+v", has)
			}
			for i := range listAt(got, "spec", "workerGroupSpecs") {
				pod := fieldPath{"spec", "workerGroupSpecs"}.child(strconv.Itoa(i), "template", "spec")
				if has := raycluster.View(got).InjectedInto(at(got, pod...)); has.MTLS != test.mTLS || has.Encrypted != test.mTLS {
					t.Errorf("workers have %+v", has)
				}
			}
			if response := validateObject(t, test.now, got, stored); !response.Allowed {
				t.Errorf("unexpected response.Result: %+v", response.Result)
			}
		})
	}
}

// [R29] Fields by which KubeRay's security replaces that of the operator cause a warning, or are rejected if an administrator denies them;
// stored fields are accepted.
func TestSecurityOfKubeRayIsWarnedOf(t *testing.T) {
	deny := func(s *Settings) { s.KubeRaySecurity = config.KubeRaySecurityDeny }
	for field, change := range map[string]func(map[string]any){
		"authOptions":   put("token", "spec", "authOptions", "mode"),
		"tlsOptions":    put(true, "spec", "tlsOptions", "enabled"),
		"networkPolicy": put(map[string]any{}, "spec", "networkPolicy"),
	} {
		t.Run(field, func(t *testing.T) {
			s := onOpenShift()
			warned := func(s Settings, old map[string]any) bool {
				t.Helper()
				response := validateObject(t, s, applyDefaults(t, s, parse(t, minimal, change), old), old)
				if !response.Allowed {
					t.Errorf("unexpected response.Result: %+v", response.Result)
				}
				return slices.ContainsFunc(response.Warnings, func(w string) bool { return strings.HasPrefix(w, "spec."+field+": ") })
			}
			plain, stored := applyDefaults(t, s, parse(t, minimal), nil), applyDefaults(t, s, parse(t, minimal, change), nil)
			got := []bool{warned(s, nil), warned(s, plain), warned(s, stored), warned(s.with(trusting), nil), warned(s.with(deny), stored)}
			if diff := cmp.Diff([]bool{true, true, false, false, false}, got); diff != "" {
				t.Errorf("new, later, stored, trusted, stored before it was denied: %s", diff)
			}
			for _, old := range []map[string]any{nil, plain} {
				denied := s.with(deny)
				expectRejected(t, denied, applyDefaults(t, denied, parse(t, minimal, change), old), old, "spec."+field+": Forbidden: "+kubeRayDenied)
			}
		})
	}
}

// [R30] A ServiceAccount of the head causes a warning that it is replaced, and how to keep it.
func TestAccountOfTheHeadIsWarnedOf(t *testing.T) {
	s := onOpenShift()
	keep := put("true", "metadata", "annotations", raycluster.AnnotationKeepServiceAccount)
	stored := applyDefaults(t, s, parse(t, full), nil)
	for name, test := range map[string]struct {
		s      Settings
		object map[string]any
		old    map[string]any
		want   bool
	}{
		"new":          {s, parse(t, full), nil, true},
		"kept":         {s, parse(t, full, keep), nil, false},
		"OAuth is off": {s.with(noOAuth), parse(t, full), nil, false},
		"no account":   {s, parse(t, minimal), nil, false},
		"stored":       {s, stored, stored, false},
		"another":      {s, copyOf(stored, put("other", in(headPod, "serviceAccountName")...)), stored, true},
	} {
		response := validateObject(t, test.s, applyDefaults(t, test.s, test.object, test.old), test.old)
		if got := strings.Contains(strings.Join(response.Warnings, ""), raycluster.AnnotationKeepServiceAccount); got != test.want {
			t.Errorf("%s: unexpected response.Warnings: %q", name, response.Warnings)
		}
	}
}

// The operator can add its finalizer to clusters that were stored without the webhook, regardless of their errors.
func TestStoredViolationsAreAccepted(t *testing.T) {
	s := onOpenShift()
	for name, fault := range map[string]func(map[string]any){
		"enableIngress":  put(true, "spec", "headGroupSpec", "enableIngress"),
		"malformed list": put("text", in(headPod, "volumes")...),
	} {
		before := parse(t, minimal, fault)
		after := parse(t, minimal, fault, put([]any{raycluster.Finalizer}, "metadata", "finalizers"))
		if response := validateObject(t, s, applyDefaults(t, s, after, before), before); !response.Allowed {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
		if response := validateObject(t, s, after, parse(t, minimal)); response.Allowed {
			t.Errorf("%s is allowed to come", name)
		}
	}
}

// The sidecar connects to the port of the head. Clusters of old releases keep the fixed port until their template changes.
func TestThePortOfTheDashboard(t *testing.T) {
	named := func(o map[string]any) {
		at(o, "spec", "headGroupSpec", "template", "spec", "containers", "0").(map[string]any)["ports"] = []any{map[string]any{"name": "dashboard", "containerPort": int64(8266)}}
	}
	for name, s := range map[string]Settings{"OpenShift": onOpenShift(), "Kubernetes": onOpenShift().with(plain)} {
		leadsTo := func(o map[string]any, port string) bool {
			text, err := json.Marshal(listAt(o, "spec", "headGroupSpec", "template", "spec", "containers")[1])
			return err == nil && strings.Contains(string(text), ":"+port)
		}
		legacyCluster := applyDefaults(t, s, parse(t, minimal), nil)
		if !leadsTo(legacyCluster, "8265") || !leadsTo(applyDefaults(t, s, copyOf(parse(t, minimal), named), nil), "8266") {
			t.Errorf("%s: the sidecar leads elsewhere", name)
		}
		named(legacyCluster)
		if kept := applyDefaults(t, s, copyOf(legacyCluster, put("x", "metadata", "labels", "a")), legacyCluster); !leadsTo(kept, "8265") {
			t.Errorf("%s: the template of a running cluster changes", name)
		}
		if changed := applyDefaults(t, s, copyOf(legacyCluster, changedHead), legacyCluster); !leadsTo(changed, "8266") {
			t.Errorf("%s: a changed template keeps the older sidecar", name)
		}
	}
}

// [A-13] [R34] The cookie secret leaves the command line with the next template, and running clusters are not changed.
func TestCookieSecretLeavesCommandLineWithNewTemplate(t *testing.T) {
	s := onOpenShift()
	const argument = "--cookie-secret=$(COOKIE_SECRET)"
	sidecarOf := func(o map[string]any) map[string]any {
		return find(listAt(o, in(headPod, "containers")...), "oauth-proxy")
	}
	original := applyDefaults(t, s, parse(t, minimal), nil)
	sidecar := sidecarOf(original)
	args, variable := sidecar["args"].([]any), listAt(sidecar, "env")[0].(map[string]any)
	if slices.Contains(args, any(argument)) || variable["name"] != "OAUTH2_PROXY_COOKIE_SECRET" {
		t.Fatalf("arguments %v, variable %v", args, variable)
	}
	sidecar["args"], variable["name"] = slices.Insert(args, 6, any(argument)), "COOKIE_SECRET"
	kept := applyDefaults(t, s, copyOf(original, put("x", "metadata", "labels", "a")), original)
	if diff := cmp.Diff(sidecar, sidecarOf(kept)); diff != "" {
		t.Errorf("the template of a running cluster changes (-want +got):\n%s", diff)
	}
	if changed := sidecarOf(applyDefaults(t, s, copyOf(original, changedHead), original)); slices.Contains(changed["args"].([]any), any(argument)) {
		t.Errorf("a changed template keeps %v", changed["args"])
	}
	variable["name"] = "OAUTH2_PROXY_COOKIE_SECRET" // then the key would be the text $(COOKIE_SECRET)
	if forged := sidecarOf(applyDefaults(t, s, copyOf(original), original)); slices.Contains(forged["args"].([]any), any(argument)) {
		t.Errorf("a sidecar with a known key is kept: %v", forged["args"])
	}
}
