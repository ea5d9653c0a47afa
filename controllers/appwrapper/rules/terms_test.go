package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// durations are the annotations whose values are limited to the range from 0 to 24 h.
var durations = map[string]struct {
	get          func(Terms) time.Duration
	defaultValue time.Duration
}{
	awv1beta2.AnnotationAdmissionGrace:    {func(t Terms) time.Duration { return t.AdmissionGrace }, time.Minute},
	awv1beta2.AnnotationWarmupGrace:       {func(t Terms) time.Duration { return t.WarmupGrace }, 5 * time.Minute},
	awv1beta2.AnnotationFailureGrace:      {func(t Terms) time.Duration { return t.FailureGrace }, time.Minute},
	awv1beta2.AnnotationRetryPause:        {func(t Terms) time.Duration { return t.RetryPause }, 90 * time.Second},
	awv1beta2.AnnotationForcefulDeletion:  {func(t Terms) time.Duration { return t.ForcefulDeletion }, 10 * time.Minute},
	awv1beta2.AnnotationDeletionOnFailure: {func(t Terms) time.Duration { return t.DeletionOnFailure }, 0},
}

// [appwrapper-16] [appwrapper-17] [appwrapper-18] [appwrapper-19] Each annotation sets its duration, within the bounds.
func TestDurationAnnotationsAreLimitedAndDefaulted(t *testing.T) {
	for key, duration := range durations {
		t.Run(strings.TrimPrefix(key, awv1beta2.AnnotationPrefix), func(t *testing.T) {
			for _, test := range []struct {
				value string
				want  time.Duration
			}{
				{"7s", 7 * time.Second},
				{"1h30m", 90 * time.Minute},
				{"0", 0},
				{"-5s", 0},
				{"24h", 24 * time.Hour},
				{"25h", 24 * time.Hour},
				{"222badTime", duration.defaultValue},
				{"", duration.defaultValue},
				{"10", duration.defaultValue},
				{"999999999h", duration.defaultValue},
			} {
				terms := TermsOf(map[string]string{key: test.value}, config.DefaultAppWrapper().FaultTolerance)
				if got := duration.get(terms); got != test.want {
					t.Errorf("%q: got %s, want %s", test.value, got, test.want)
				}
			}
			terms := TermsOf(nil, config.DefaultAppWrapper().FaultTolerance)
			if got := duration.get(terms); got != duration.defaultValue {
				t.Errorf("without the annotation: got %s, want %s", got, duration.defaultValue)
			}
		})
	}
}

// [appwrapper-16] Configured values apply without an annotation, and configured grace periods are limited by the ceiling too.
func TestConfigurationSetsTermsWithoutAnnotations(t *testing.T) {
	f := config.DefaultAppWrapper().FaultTolerance
	f.DeletionGracePeriod, f.RetryLimit, f.FailureGracePeriod = 48*time.Hour, 9, 3*time.Second
	terms := TermsOf(map[string]string{"example.com/retryLimit": "1"}, f)
	if terms.ForcefulDeletion != 24*time.Hour || terms.RetryLimit != 9 || terms.FailureGrace != 3*time.Second {
		t.Errorf("terms do not match the configuration: %+v", terms)
	}
	if terms.SuccessTTL != 168*time.Hour || terms.DeletionOnFailure != 0 || len(terms.TerminalExitCodes)+len(terms.RetryableExitCodes) != 0 {
		t.Errorf("terms do not match the configuration: %+v", terms)
	}
}

// [appwrapper-17] [appwrapper-18] Any 32-bit number is accepted, and other values are ignored.
func TestRetryLimitAnnotationOverridesDefault(t *testing.T) {
	for value, want := range map[string]int32{"101": 101, "0": 0, "-4": -4, "abc": 3, "1.5": 3, "": 3, "99999999999": 3} {
		terms := TermsOf(map[string]string{awv1beta2.AnnotationRetryLimit: value}, config.DefaultAppWrapper().FaultTolerance)
		if terms.RetryLimit != want {
			t.Errorf("%q: got %d, want %d", value, terms.RetryLimit, want)
		}
	}
}

// [appwrapper-19] The annotation can only shorten the configured time to live.
func TestSuccessTTLAnnotationShortensDefault(t *testing.T) {
	const configured = 168 * time.Hour
	for value, want := range map[string]time.Duration{
		"10m": 10 * time.Minute, "167h": 167 * time.Hour, "168h": configured, "1000h": configured,
		"0s": configured, "-1h": configured, "abc": configured,
	} {
		terms := TermsOf(map[string]string{awv1beta2.AnnotationSuccessTTL: value}, config.DefaultAppWrapper().FaultTolerance)
		if terms.SuccessTTL != want {
			t.Errorf("%q: got %s, want %s", value, terms.SuccessTTL, want)
		}
	}
}

// [appwrapper-20] [D25] Exit codes are comma-separated numbers. Spaces are allowed, invalid entries ignored.
func TestExitCodeAnnotationsIgnoreInvalidEntries(t *testing.T) {
	for _, test := range []struct {
		value string
		want  []int32
	}{
		{"3,10,abc,42", []int32{3, 10, 42}},
		{"x,10,20", []int32{10, 20}},
		{" 3 ,\t10, 42 ", []int32{3, 10, 42}},
		{"137", []int32{137}},
		{"1,1,1", []int32{1}},
		{"", nil},
		{",,", nil},
		{"1 2,3", []int32{3}},
		{"-1,256,4294967296", []int32{-1, 256}},
	} {
		for _, key := range []string{awv1beta2.AnnotationTerminalExitCodes, awv1beta2.AnnotationRetryableExitCodes} {
			terms := TermsOf(map[string]string{key: test.value}, config.DefaultAppWrapper().FaultTolerance)
			got, other := terms.TerminalExitCodes, terms.RetryableExitCodes
			if key == awv1beta2.AnnotationRetryableExitCodes {
				got, other = other, got
			}
			if !got.Equal(sets.New(test.want...)) || len(other) != 0 {
				t.Errorf("%s %q: got %v, want %v, and got %v for the other annotation", key, test.value, got, test.want, other)
			}
		}
	}
}
