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

// [R28] [R29] An update that does not recreate the head pods neither adds nor removes certificates, because pods with and without
// certificates cannot communicate. It may add a sidecar, but does not remove one.
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
		stored, current Settings
		change          func(map[string]any)
		auth            raycluster.Auth
		mTLS            bool
	}{
		"label, mTLS enabled":           {s.with(withoutMTLS), s, label, raycluster.AuthOAuth, false},
		"workers, mTLS enabled":         {s.with(withoutMTLS), s, group, raycluster.AuthOAuth, false},
		"head, mTLS enabled":            {s.with(withoutMTLS), s, changedHead, raycluster.AuthOAuth, true},
		"suspended, mTLS enabled":       {s.with(withoutMTLS), s, put(true, "spec", "suspend"), raycluster.AuthOAuth, true},
		"label, mTLS disabled":          {s, s.with(withoutMTLS), label, raycluster.AuthOAuth, true},
		"workers, mTLS disabled":        {s, s.with(withoutMTLS), group, raycluster.AuthOAuth, true},
		"head, mTLS disabled":           {s, s.with(withoutMTLS), changedHead, raycluster.AuthOAuth, false},
		"suspended, mTLS disabled":      {s, s.with(withoutMTLS), put(true, "spec", "suspend"), raycluster.AuthOAuth, false},
		"label, OAuth disabled":         {s, s.with(withoutOAuth), label, raycluster.AuthOAuth, true},
		"head, OAuth disabled":          {s, s.with(withoutOAuth), changedHead, raycluster.AuthNone, true},
		"label, OAuth enabled":          {s.with(withoutOAuth), s, label, raycluster.AuthOAuth, true},
		"Ray token":                     {s, s, token, raycluster.AuthOAuth, true},
		"Ray token, KubeRay is trusted": {s, s.with(trustKubeRay), token, raycluster.AuthNone, true},
		"certificates of KubeRay":       {s, s, put(true, "spec", "tlsOptions", "enabled"), raycluster.AuthOAuth, false},
		"issued by pods, mTLS disabled": {s.with(issuedByPod), s.with(withoutMTLS), label, raycluster.AuthOAuth, true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := applyDefaults(t, test.stored, parse(t, minimal), nil)
			got := applyDefaults(t, test.current, copyOf(stored, test.change), stored)
			if injected := raycluster.View(got).Injected(); injected.Sidecar != test.auth || injected.MTLS != test.mTLS || injected.PodIssued && test.stored.Certificates != config.CertificatesByPod {
				t.Errorf("the head has injections %+v, want sidecar %q and mTLS %t", injected, test.auth, test.mTLS)
			}
			for i := range listAt(got, "spec", "workerGroupSpecs") {
				pod := fieldPath{"spec", "workerGroupSpecs"}.child(strconv.Itoa(i), "template", "spec")
				if injected := raycluster.View(got).InjectedInto(at(got, pod...)); injected.MTLS != test.mTLS || injected.Encrypted != test.mTLS {
					t.Errorf("worker group %d has injections %+v, want mTLS %t", i, injected, test.mTLS)
				}
			}
			if response := validateObject(t, test.current, got, stored); !response.Allowed {
				t.Errorf("unexpected response.Result: %+v", response.Result)
			}
		})
	}
}

// [R29] Newly set fields by which KubeRay secures a cluster cause a warning, unless an administrator trusts KubeRay, and are rejected if an
// administrator denies them. Stored fields are accepted without a warning.
func TestSecurityOfKubeRayCausesWarning(t *testing.T) {
	deny := func(s *Settings) { s.KubeRaySecurity = config.KubeRaySecurityDeny }
	for field, change := range map[string]func(map[string]any){
		"authOptions":   put("token", "spec", "authOptions", "mode"),
		"tlsOptions":    put(true, "spec", "tlsOptions", "enabled"),
		"networkPolicy": put(map[string]any{}, "spec", "networkPolicy"),
	} {
		t.Run(field, func(t *testing.T) {
			s := onOpenShift()
			warns := func(s Settings, old map[string]any) bool {
				t.Helper()
				response := validateObject(t, s, applyDefaults(t, s, parse(t, minimal, change), old), old)
				if !response.Allowed {
					t.Errorf("unexpected response.Result: %+v", response.Result)
				}
				return slices.ContainsFunc(response.Warnings, func(w string) bool { return strings.HasPrefix(w, "spec."+field+": ") })
			}
			plain, stored := applyDefaults(t, s, parse(t, minimal), nil), applyDefaults(t, s, parse(t, minimal, change), nil)
			got := []bool{warns(s, nil), warns(s, plain), warns(s, stored), warns(s.with(trustKubeRay), nil), warns(s.with(deny), stored)}
			if diff := cmp.Diff([]bool{true, true, false, false, false}, got); diff != "" {
				t.Errorf("warnings on creation, on update, if stored, if trusted, if stored and denied (-want +got):\n%s", diff)
			}
			for _, old := range []map[string]any{nil, plain} {
				denied := s.with(deny)
				expectRejected(t, denied, applyDefaults(t, denied, parse(t, minimal, change), old), old, "spec."+field+": Forbidden: "+kubeRayDenied)
			}
		})
	}
}

// [R30] A warning reports that the ServiceAccount of the head is replaced, and how to keep it.
func TestReplacedServiceAccountCausesWarning(t *testing.T) {
	s := onOpenShift()
	keep := put("true", "metadata", "annotations", raycluster.AnnotationKeepServiceAccount)
	stored := applyDefaults(t, s, parse(t, full), nil)
	for name, test := range map[string]struct {
		s      Settings
		object map[string]any
		old    map[string]any
		want   bool
	}{
		"created":                {s, parse(t, full), nil, true},
		"kept by annotation":     {s, parse(t, full, keep), nil, false},
		"OAuth disabled":         {s.with(withoutOAuth), parse(t, full), nil, false},
		"no ServiceAccount":      {s, parse(t, minimal), nil, false},
		"stored":                 {s, stored, stored, false},
		"changed ServiceAccount": {s, copyOf(stored, put("other", in(headPod, "serviceAccountName")...)), stored, true},
	} {
		response := validateObject(t, test.s, applyDefaults(t, test.s, test.object, test.old), test.old)
		if got := strings.Contains(strings.Join(response.Warnings, ""), raycluster.AnnotationKeepServiceAccount); got != test.want {
			t.Errorf("%s: unexpected response.Warnings: %q", name, response.Warnings)
		}
	}
}

// The finalizers of invalid clusters, which were stored without the webhook, can be changed.
func TestStoredViolationsAreAccepted(t *testing.T) {
	s := onOpenShift()
	for name, invalid := range map[string]func(map[string]any){
		"enableIngress":  put(true, "spec", "headGroupSpec", "enableIngress"),
		"malformed list": put("text", in(headPod, "volumes")...),
	} {
		before := parse(t, minimal, invalid)
		after := parse(t, minimal, invalid, put([]any{raycluster.Finalizer}, "metadata", "finalizers"))
		if response := validateObject(t, s, applyDefaults(t, s, after, before), before); !response.Allowed {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
		if response := validateObject(t, s, after, parse(t, minimal)); response.Allowed {
			t.Errorf("%s: want a rejection if the stored object is valid", name)
		}
	}
}

// The sidecar connects to the dashboard port that the head declares. Clusters of old releases keep the fixed port until their template changes.
func TestSidecarUsesDeclaredDashboardPort(t *testing.T) {
	declarePort := func(o map[string]any) {
		at(o, "spec", "headGroupSpec", "template", "spec", "containers", "0").(map[string]any)["ports"] = []any{map[string]any{"name": "dashboard", "containerPort": int64(8266)}}
	}
	for name, s := range map[string]Settings{"OpenShift": onOpenShift(), "Kubernetes": onOpenShift().with(plain)} {
		usesPort := func(o map[string]any, port string) bool {
			text, err := json.Marshal(listAt(o, "spec", "headGroupSpec", "template", "spec", "containers")[1])
			return err == nil && strings.Contains(string(text), ":"+port)
		}
		stored := applyDefaults(t, s, parse(t, minimal), nil)
		if !usesPort(stored, "8265") || !usesPort(applyDefaults(t, s, copyOf(parse(t, minimal), declarePort), nil), "8266") {
			t.Errorf("%s: the sidecar does not use the default or the declared port", name)
		}
		declarePort(stored)
		if kept := applyDefaults(t, s, copyOf(stored, put("x", "metadata", "labels", "a")), stored); !usesPort(kept, "8265") {
			t.Errorf("%s: the template of a running cluster was changed", name)
		}
		if changed := applyDefaults(t, s, copyOf(stored, changedHead), stored); !usesPort(changed, "8266") {
			t.Errorf("%s: a changed template keeps the sidecar with the fixed port", name)
		}
	}
}

// [A-13] [R34] The cookie secret is removed from the arguments when the template changes; running clusters are not changed.
func TestCookieSecretIsRemovedFromArgsWithNewTemplate(t *testing.T) {
	s := onOpenShift()
	const argument = "--cookie-secret=$(COOKIE_SECRET)"
	sidecarOf := func(o map[string]any) map[string]any {
		return find(listAt(o, in(headPod, "containers")...), "oauth-proxy")
	}
	stored := applyDefaults(t, s, parse(t, minimal), nil)
	sidecar := sidecarOf(stored)
	args, variable := sidecar["args"].([]any), listAt(sidecar, "env")[0].(map[string]any)
	if slices.Contains(args, any(argument)) || variable["name"] != "OAUTH2_PROXY_COOKIE_SECRET" {
		t.Fatalf("arguments %v, variable %v", args, variable)
	}
	sidecar["args"], variable["name"] = slices.Insert(args, 6, any(argument)), "COOKIE_SECRET"
	kept := applyDefaults(t, s, copyOf(stored, put("x", "metadata", "labels", "a")), stored)
	if diff := cmp.Diff(sidecar, sidecarOf(kept)); diff != "" {
		t.Errorf("the template of a running cluster was changed (-want +got):\n%s", diff)
	}
	if changed := sidecarOf(applyDefaults(t, s, copyOf(stored, changedHead), stored)); slices.Contains(changed["args"].([]any), any(argument)) {
		t.Errorf("a changed template keeps %v", changed["args"])
	}
	variable["name"] = "OAUTH2_PROXY_COOKIE_SECRET" // an undefined reference, which would make $(COOKIE_SECRET) itself the key
	if forged := sidecarOf(applyDefaults(t, s, copyOf(stored), stored)); slices.Contains(forged["args"].([]any), any(argument)) {
		t.Errorf("a sidecar with a predictable key was kept: %v", forged["args"])
	}
}
