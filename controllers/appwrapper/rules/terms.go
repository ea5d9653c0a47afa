package rules

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Terms are what holds for one AppWrapper: its annotations where they can be read, the configuration elsewhere, both held
// to the configured bounds.
type Terms struct {
	// AdmissionGrace is how long components and pods may take to appear.
	AdmissionGrace time.Duration
	// WarmupGrace is how long pods that exist may take to run.
	WarmupGrace time.Duration
	// FailureGrace is how long the controller of a failed pod may take to replace it.
	FailureGrace time.Duration
	// RetryPause is the pause between clearing away and trying again.
	RetryPause time.Duration
	// ForcefulDeletion is how long deletion may take before it is forced.
	ForcefulDeletion time.Duration
	// DeletionOnFailure is for how long the objects of a failed workload are kept.
	DeletionOnFailure time.Duration
	// SuccessTTL is for how long the objects of a successful workload are kept.
	SuccessTTL time.Duration
	// RetryLimit is how often a failed workload is tried again; 0 and less mean never.
	RetryLimit int32
	// TerminalExitCodes end the workload without another try.
	TerminalExitCodes sets.Set[int32]
	// RetryableExitCodes, unless empty, are the only ones that allow another try.
	RetryableExitCodes sets.Set[int32]
}

// TermsOf reads the annotations of an AppWrapper. What cannot be read counts as absent; admission warns about it.
func TermsOf(annotations map[string]string, f config.FaultTolerance) Terms {
	r := annotationReader{annotations: annotations, ceiling: f.GracePeriodCeiling}
	return Terms{
		AdmissionGrace:     r.period(awv1beta2.AnnotationAdmissionGrace, f.AdmissionGracePeriod),
		WarmupGrace:        r.period(awv1beta2.AnnotationWarmupGrace, f.WarmupGracePeriod),
		FailureGrace:       r.period(awv1beta2.AnnotationFailureGrace, f.FailureGracePeriod),
		RetryPause:         r.period(awv1beta2.AnnotationRetryPause, f.ResetPause),
		ForcefulDeletion:   r.period(awv1beta2.AnnotationForcefulDeletion, f.DeletionGracePeriod),
		DeletionOnFailure:  r.period(awv1beta2.AnnotationDeletionOnFailure, 0),
		SuccessTTL:         r.ttl(awv1beta2.AnnotationSuccessTTL, f.SuccessTTLCeiling),
		RetryLimit:         r.int32Value(awv1beta2.AnnotationRetryLimit, f.RetryLimit),
		TerminalExitCodes:  r.int32Values(awv1beta2.AnnotationTerminalExitCodes),
		RetryableExitCodes: r.int32Values(awv1beta2.AnnotationRetryableExitCodes),
	}
}

type annotationReader struct {
	annotations map[string]string
	ceiling     time.Duration
}

// duration is the annotation's value, or the other one where there is none to be read.
func (r annotationReader) duration(key string, otherwise time.Duration) time.Duration {
	value, err := time.ParseDuration(r.annotations[key])
	if err != nil {
		return otherwise
	}
	return value
}

// period is a duration between zero and the ceiling.
func (r annotationReader) period(key string, configured time.Duration) time.Duration {
	return max(0, min(r.duration(key, configured), r.ceiling))
}

// timeToLive can only shorten what is configured.
func (r annotationReader) ttl(key string, configured time.Duration) time.Duration {
	if value := r.duration(key, configured); value > 0 && value < configured {
		return value
	}
	return configured
}

func (r annotationReader) int32Value(key string, configured int32) int32 {
	value, err := strconv.ParseInt(r.annotations[key], 10, 32)
	if err != nil {
		return configured
	}
	return int32(value)
}

// numbers reads a list with commas. Blanks around a number are fine (D25); what is no number is ignored.
func (r annotationReader) int32Values(key string) sets.Set[int32] {
	found := sets.New[int32]()
	for entry := range strings.SplitSeq(r.annotations[key], ",") {
		if value, err := strconv.ParseInt(strings.TrimSpace(entry), 10, 32); err == nil {
			found.Insert(int32(value))
		}
	}
	return found
}
