package modelmesh

import (
	"fmt"
	"strconv"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

const (
	// autoscalerExternal is a class of KServe without effect in ModelMesh.
	autoscalerExternal = "external"
	// unsetReplicas is the value of unset replicas in the types of KServe.
	unsetReplicas = mm.MaxReplicas
)

// violation is an invalid field with the message for the user.
type violation struct {
	field   string
	message string
}

// validateEncoding returns a value that other clients cannot decode, or nil. One such object breaks their lists of all runtimes, so it is
// denied for runtimes of KServe too.
func validateEncoding(malformed string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	if malformed != "" {
		return &violation{"spec", malformed + ": correct the value"}
	}
	if n := spec.Replicas; n != nil && (*n < 0 || *n > mm.MaxReplicas) {
		return &violation{"spec.replicas", fmt.Sprintf("spec.replicas: Invalid value: %d: must be a number from 0 to %d: KServe cannot read others", *n, mm.MaxReplicas)}
	}
	return nil
}

// validateAutoscaling returns the first violated autoscaling rule, in the order and with the messages of the legacy webhook, or nil. In
// contrast to that webhook, the class none is valid.
func validateAutoscaling(annotations map[string]string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	class, found := annotations[mm.AnnotationAutoscalerClass]
	switch {
	case class == autoscalerExternal:
		return annotationViolation(mm.AnnotationAutoscalerClass, "unknown autoscaler class [external]")
	case found && class != mm.AutoscalerHPA && class != mm.AutoscalerNone:
		return annotationViolation(mm.AnnotationAutoscalerClass, "["+class+"] is not a supported autoscaler class type.\n")
	}
	scaled := class == mm.AutoscalerHPA
	if metric, found := annotations[mm.AnnotationMetric]; scaled && found && metric != mm.MetricCPU && metric != mm.MetricMemory {
		return annotationViolation(mm.AnnotationMetric, "["+metric+"] is not a supported metric.\n")
	}
	if target, err := parseInt32(annotations, mm.AnnotationTarget, 1); err != nil || target < 1 || target > 100 {
		return annotationViolation(mm.AnnotationTarget, "The target utilization percentage should be a [1-100] integer.")
	}
	if !scaled {
		return nil
	}
	if spec.Replicas != nil && *spec.Replicas != unsetReplicas {
		return &violation{"spec.replicas", "Autoscaler is enabled and also replicas variable set. You can not set both."}
	}
	return validateScaleBounds(annotations)
}

// validateScaleBounds validates the minimum and maximum number of pods.
func validateScaleBounds(annotations map[string]string) *violation {
	minScale, err := parseInt32(annotations, mm.AnnotationMinScale, 1)
	if err != nil {
		return annotationViolation(mm.AnnotationMinScale, "The min replicas should be a integer.")
	}
	if minScale < 1 {
		return annotationViolation(mm.AnnotationMinScale, "The min replicas should be more than 0")
	}
	maxScale, err := parseInt32(annotations, mm.AnnotationMaxScale, 1)
	if err != nil {
		return annotationViolation(mm.AnnotationMaxScale, "The max replicas should be a integer.")
	}
	if minScale > maxScale {
		return annotationViolation(mm.AnnotationMaxScale, "The max replicas should be same or bigger than min replicas.")
	}
	return nil
}

func annotationViolation(annotation, message string) *violation {
	return &violation{"metadata.annotations[" + annotation + "]", message}
}

// parseInt32 returns an annotation as a 32-bit integer, or the default if it is not set.
func parseInt32(annotations map[string]string, key string, defaultValue int64) (int64, error) {
	text, found := annotations[key]
	if !found {
		return defaultValue, nil
	}
	return strconv.ParseInt(text, 10, 32)
}
