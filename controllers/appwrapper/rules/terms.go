package rules

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Terms are the parameters of one AppWrapper: from valid annotations, or else the configuration, limited by the configured bounds.
type Terms struct {
	// AdmissionGrace is the maximum time until components and pods are created.
	AdmissionGrace time.Duration
	// WarmupGrace is the maximum time until existing pods run.
	WarmupGrace time.Duration
	// FailureGrace is the maximum time for which a workload may be unhealthy, or unready after it was ready.
	FailureGrace time.Duration
	// RetryPause is the pause before a retry.
	RetryPause time.Duration
	// ForcefulDeletion is the maximum time of deletion before it is forced.
	ForcefulDeletion time.Duration
	// DeletionOnFailure is how long the objects of a failed workload are retained.
	DeletionOnFailure time.Duration
	// SuccessTTL is how long the objects of a successful workload are retained.
	SuccessTTL time.Duration
	// RetryLimit is the maximum number of retries; none for 0 or less.
	RetryLimit int32
	// TerminalExitCodes forbid a retry.
	TerminalExitCodes sets.Set[int32]
	// RetryableExitCodes, unless empty, are the only exit codes that allow a retry.
	RetryableExitCodes sets.Set[int32]
}

// TermsOf returns the terms of an AppWrapper. Invalid annotations count as unset; admission warns about them.
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

// duration returns the value of the annotation, or the default if it is invalid.
func (r annotationReader) duration(key string, defaultValue time.Duration) time.Duration {
	value, err := time.ParseDuration(r.annotations[key])
	if err != nil {
		return defaultValue
	}
	return value
}

// period returns a duration between 0 and the ceiling.
func (r annotationReader) period(key string, configured time.Duration) time.Duration {
	return max(0, min(r.duration(key, configured), r.ceiling))
}

// ttl returns the value of the annotation if it is positive and below the configured duration, and otherwise the configured duration.
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

// int32Values parses a comma-separated list. Spaces around a number are allowed [D25]; invalid entries are ignored.
func (r annotationReader) int32Values(key string) sets.Set[int32] {
	values := sets.New[int32]()
	for entry := range strings.SplitSeq(r.annotations[key], ",") {
		if value, err := strconv.ParseInt(strings.TrimSpace(entry), 10, 32); err == nil {
			values.Insert(int32(value))
		}
	}
	return values
}
