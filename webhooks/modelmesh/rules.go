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
	// noReplicas is the value of unset replicas in the types of KServe.
	noReplicas = mm.MaxReplicas
)

// violation is an invalid field with the message for the user.
type violation struct {
	field   string
	message string
}

// unreadable returns a value that other clients cannot decode, or nil. One such object breaks their lists of all runtimes, so it is denied
// for runtimes of KServe too.
func unreadable(malformed string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	if malformed != "" {
		return &violation{"spec", malformed + ": correct the value"}
	}
	if n := spec.Replicas; n != nil && (*n < 0 || *n > mm.MaxReplicas) {
		return &violation{"spec.replicas", fmt.Sprintf("spec.replicas: Invalid value: %d: must be a number from 0 to %d: KServe cannot read others", *n, mm.MaxReplicas)}
	}
	return nil
}

// contradiction returns the first violated rule of autoscaling, in the order and with the messages of the legacy webhook, or nil. Unlike
// there, the class none is valid.
func contradiction(annotations map[string]string, spec *v1alpha1.ServingRuntimeSpec) *violation {
	class, given := annotations[mm.AnnotationAutoscalerClass]
	switch {
	case class == autoscalerExternal:
		return about(mm.AnnotationAutoscalerClass, "unknown autoscaler class [external]")
	case given && class != mm.AutoscalerHPA && class != mm.AutoscalerNone:
		return about(mm.AnnotationAutoscalerClass, "["+class+"] is not a supported autoscaler class type.\n")
	}
	scaled := class == mm.AutoscalerHPA
	if metric, given := annotations[mm.AnnotationMetric]; scaled && given && metric != mm.MetricCPU && metric != mm.MetricMemory {
		return about(mm.AnnotationMetric, "["+metric+"] is not a supported metric.\n")
	}
	if target, err := number(annotations, mm.AnnotationTarget, 1); err != nil || target < 1 || target > 100 {
		return about(mm.AnnotationTarget, "The target utilization percentage should be a [1-100] integer.")
	}
	if !scaled {
		return nil
	}
	if spec.Replicas != nil && *spec.Replicas != noReplicas {
		return &violation{"spec.replicas", "Autoscaler is enabled and also replicas variable set. You can not set both."}
	}
	return scaleContradiction(annotations)
}

// scaleContradiction validates the minimum and maximum number of pods.
func scaleContradiction(annotations map[string]string) *violation {
	least, err := number(annotations, mm.AnnotationMinScale, 1)
	if err != nil {
		return about(mm.AnnotationMinScale, "The min replicas should be a integer.")
	}
	if least < 1 {
		return about(mm.AnnotationMinScale, "The min replicas should be more than 0")
	}
	most, err := number(annotations, mm.AnnotationMaxScale, 1)
	if err != nil {
		return about(mm.AnnotationMaxScale, "The max replicas should be a integer.")
	}
	if least > most {
		return about(mm.AnnotationMaxScale, "The max replicas should be same or bigger than min replicas.")
	}
	return nil
}

func about(annotation, message string) *violation {
	return &violation{"metadata.annotations[" + annotation + "]", message}
}

// number returns an annotation as a 32-bit integer, or the default if it is not set.
func number(annotations map[string]string, key string, otherwise int64) (int64, error) {
	text, given := annotations[key]
	if !given {
		return otherwise, nil
	}
	return strconv.ParseInt(text, 10, 32)
}
