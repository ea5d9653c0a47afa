package modelmesh

import (
	"fmt"
	"strconv"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

const (
	// autoscalerExternal is an autoscaler class of KServe that ModelMesh does not support.
	autoscalerExternal = "external"
	// unsetReplicas is the value of unset replicas in the types of KServe.
	unsetReplicas = pkgmodelmesh.MaxReplicas
)

// violation is an invalid field with the message for the user.
type violation struct {
	field   string
	message string
}

// validateEncoding returns the violation of a field that other clients cannot decode, or nil. Such a field makes their lists of all runtimes
// fail, so it is denied in single-model runtimes too.
func validateEncoding(malformed string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	if malformed != "" {
		return &violation{"spec", malformed + ": correct the value"}
	}
	if n := spec.Replicas; n != nil && (*n < 0 || *n > pkgmodelmesh.MaxReplicas) {
		return &violation{"spec.replicas", fmt.Sprintf("spec.replicas: Invalid value: %d: must be a number from 0 to %d: KServe cannot decode other values", *n, pkgmodelmesh.MaxReplicas)}
	}
	return nil
}

// validateAutoscaling returns the first violated autoscaling rule, in the order and with the messages of the legacy webhook, or nil. In
// contrast to that webhook, the class none is valid.
func validateAutoscaling(annotations map[string]string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	class, found := annotations[pkgmodelmesh.AnnotationAutoscalerClass]
	switch {
	case class == autoscalerExternal:
		return annotationViolation(pkgmodelmesh.AnnotationAutoscalerClass, "unknown autoscaler class [external]")
	case found && class != pkgmodelmesh.AutoscalerHPA && class != pkgmodelmesh.AutoscalerNone:
		return annotationViolation(pkgmodelmesh.AnnotationAutoscalerClass, "["+class+"] is not a supported autoscaler class type.\n")
	}
	isAutoscaled := class == pkgmodelmesh.AutoscalerHPA
	if metric, found := annotations[pkgmodelmesh.AnnotationMetric]; isAutoscaled && found && metric != pkgmodelmesh.MetricCPU && metric != pkgmodelmesh.MetricMemory {
		return annotationViolation(pkgmodelmesh.AnnotationMetric, "["+metric+"] is not a supported metric.\n")
	}
	if target, err := parseInt32(annotations, pkgmodelmesh.AnnotationTarget, 1); err != nil || target < 1 || target > 100 {
		return annotationViolation(pkgmodelmesh.AnnotationTarget, "The target utilization percentage should be a [1-100] integer.")
	}
	if !isAutoscaled {
		return nil
	}
	if spec.Replicas != nil && *spec.Replicas != unsetReplicas {
		return &violation{"spec.replicas", "Autoscaler is enabled and also replicas variable set. You can not set both."}
	}
	return validateScaleBounds(annotations)
}

// validateScaleBounds validates the minimum and maximum number of pods.
func validateScaleBounds(annotations map[string]string) *violation {
	minScale, err := parseInt32(annotations, pkgmodelmesh.AnnotationMinScale, 1)
	if err != nil {
		return annotationViolation(pkgmodelmesh.AnnotationMinScale, "The min replicas should be a integer.")
	}
	if minScale < 1 {
		return annotationViolation(pkgmodelmesh.AnnotationMinScale, "The min replicas should be more than 0")
	}
	maxScale, err := parseInt32(annotations, pkgmodelmesh.AnnotationMaxScale, 1)
	if err != nil {
		return annotationViolation(pkgmodelmesh.AnnotationMaxScale, "The max replicas should be a integer.")
	}
	if minScale > maxScale {
		return annotationViolation(pkgmodelmesh.AnnotationMaxScale, "The max replicas should be same or bigger than min replicas.")
	}
	return nil
}

func annotationViolation(annotation, message string) *violation {
	return &violation{"metadata.annotations[" + annotation + "]", message}
}

// parseInt32 returns an annotation as a 32-bit integer, or the default if it is not set.
func parseInt32(annotations map[string]string, key string, defaultValue int64) (int64, error) {
	value, found := annotations[key]
	if !found {
		return defaultValue, nil
	}
	return strconv.ParseInt(value, 10, 32)
}
