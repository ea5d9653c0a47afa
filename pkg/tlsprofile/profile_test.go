package tlsprofile

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Go supports every cipher of the predefined profiles.
func TestPredefinedProfiles(t *testing.T) {
	for profileType, spec := range configv1.TLSProfiles {
		got, unknown, err := newProfile(profileType, spec)
		if err != nil || len(unknown) > 0 || got.Name != string(profileType) {
			t.Errorf("%s: got profile %+v, unknown ciphers %v, error %v", profileType, got, unknown, err)
		}
	}
	if len(configv1.TLSProfiles) < 3 {
		t.Errorf("got %d predefined profiles, want at least 3", len(configv1.TLSProfiles))
	}
}

func apiServer(profile map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "APIServer",
		"metadata": map[string]any{"name": "cluster"},
		"spec":     map[string]any{"tlsSecurityProfile": profile},
	}}
}

func custom(version string, ciphers ...any) map[string]any {
	return map[string]any{"type": "Custom", "custom": map[string]any{"minTLSVersion": version, "ciphers": ciphers}}
}

func TestFromAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		profile     map[string]any
		want        string
		wantVersion uint16
		wantSuites  []uint16 // nil: do not compare
		wantUnknown []string
		wantError   bool
	}{
		"no profile":   {want: "Intermediate", wantVersion: tls.VersionTLS12},
		"empty":        {profile: map[string]any{}, want: "Intermediate", wantVersion: tls.VersionTLS12},
		"unknown type": {profile: map[string]any{"type": "Tomorrow"}, want: "Intermediate", wantVersion: tls.VersionTLS12},
		"old":          {profile: map[string]any{"type": "Old", "old": map[string]any{}}, want: "Old", wantVersion: tls.VersionTLS10},
		"modern":       {profile: map[string]any{"type": "Modern"}, want: "Modern", wantVersion: tls.VersionTLS13},
		"custom": {profile: custom("VersionTLS11", "ECDHE-RSA-AES128-GCM-SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"),
			want: "Custom", wantVersion: tls.VersionTLS11,
			wantSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
		"custom with an unsupported cipher": {profile: custom("VersionTLS12", "DHE-RSA-AES128-GCM-SHA256", "AES128-SHA"),
			want: "Custom", wantVersion: tls.VersionTLS12,
			wantSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}, wantUnknown: []string{"DHE-RSA-AES128-GCM-SHA256"}},
		"custom with unsupported ciphers only": {profile: custom("VersionTLS12", "NONSENSE"), want: "Intermediate",
			wantVersion: tls.VersionTLS12, wantUnknown: []string{"NONSENSE"}, wantError: true},
		"custom TLS 1.3 without ciphers":                {profile: custom("VersionTLS13"), want: "Custom", wantVersion: tls.VersionTLS13},
		"custom without spec.tlsSecurityProfile.custom": {profile: map[string]any{"type": "Custom"}, want: "Intermediate", wantVersion: tls.VersionTLS12, wantError: true},
		"custom with an unknown version":                {profile: custom("SSLv3", "AES128-SHA"), want: "Intermediate", wantVersion: tls.VersionTLS12, wantError: true},
		"custom with ciphers of another type": {profile: map[string]any{"type": "Custom", "custom": map[string]any{"ciphers": "all"}},
			want: "Intermediate", wantVersion: tls.VersionTLS12, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown, err := FromAPIServer(apiServer(tc.profile))
			if (err != nil) != tc.wantError {
				t.Fatalf("got error %v, want one: %t", err, tc.wantError)
			}
			if got.Name != tc.want || got.MinVersion != tc.wantVersion {
				t.Errorf("got %s from version %#x, want %s from %#x", got.Name, got.MinVersion, tc.want, tc.wantVersion)
			}
			if tc.wantSuites != nil && !cmp.Equal(got.CipherSuites, tc.wantSuites) {
				t.Errorf("got suites %v, want %v", got.CipherSuites, tc.wantSuites)
			}
			if !cmp.Equal(unknown, tc.wantUnknown) {
				t.Errorf("got unknown ciphers %v, want %v", unknown, tc.wantUnknown)
			}
		})
	}
}

func TestFromFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		version, suites string
		want            Profile
		wantError       string
	}{
		"no flags":            {},
		"version only":        {version: "VersionTLS13", want: Profile{Name: Configured, MinVersion: tls.VersionTLS13}},
		"suites only":         {suites: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", want: Profile{Name: Configured, MinVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}}},
		"unknown version":     {version: "1.3", wantError: `--tls-min-version "1.3": choose VersionTLS12 or VersionTLS13`},
		"version too low":     {version: "VersionTLS11", wantError: "--tls-min-version"},
		"unknown suite":       {suites: "ECDHE-RSA-AES128-GCM-SHA256", wantError: "--tls-cipher-suites"},
		"suites with TLS 1.3": {version: "VersionTLS13", suites: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", wantError: "no effect on TLS 1.3"},
	} {
		got, err := FromFlags(tc.version, tc.suites)
		if tc.wantError != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("%s: got error %v, want it to contain %q", name, err, tc.wantError)
			}
			continue
		}
		if err != nil || !got.Equal(tc.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tc.want)
		}
	}
}

func TestForPods(t *testing.T) {
	for name, tc := range map[string]struct {
		policy any
		want   Profile
	}{
		"no opinion":     {want: Profile{}},
		"legacy":         {policy: "LegacyAdheringComponentsOnly", want: Profile{}},
		"strict":         {policy: "StrictAllComponents", want: Profile{Name: "Modern", MinVersion: tls.VersionTLS13}},
		"unknown policy": {policy: "StrictNextYear", want: Profile{Name: "Modern", MinVersion: tls.VersionTLS13}},
	} {
		object := apiServer(map[string]any{"type": "Modern"})
		if tc.policy != nil {
			object.Object["spec"].(map[string]any)["tlsAdherence"] = tc.policy
		}
		if got := ForPods(object); !got.Equal(tc.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestFlagsAndOpenSSL(t *testing.T) {
	modern, _, _ := newProfile(configv1.TLSProfileModernType, configv1.TLSProfiles[configv1.TLSProfileModernType])
	twoSuites := Profile{MinVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}}
	for name, tc := range map[string]struct {
		profile Profile
		flags   []string
		openSSL string
	}{
		"zero profile": {},
		"modern":       {profile: modern, flags: []string{"--tls-min-version=VersionTLS13"}, openSSL: "PSK-AES256-GCM-SHA384"},
		"two cipher suites": {
			profile: twoSuites,
			flags:   []string{"--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
			openSSL: "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305",
		},
	} {
		if diff := cmp.Diff(tc.flags, tc.profile.Flags()); diff != "" {
			t.Errorf("%s: Flags() differs (-want +got):\n%s", name, diff)
		}
		if got := tc.profile.OpenSSL(); got != tc.openSSL {
			t.Errorf("%s: got OpenSSL %q, want %q", name, got, tc.openSSL)
		}
	}
}
