package modelmesh

import (
	"fmt"
	"math"
	"strconv"

	"github.com/kserve/kserve/pkg/constants"
)

// Annotations of runtimes by which their pods are scaled. KServe reads the same on its own resources.
var (
	AnnotationAutoscalerClass = constants.AutoscalerClass
	AnnotationMetric          = constants.AutoscalerMetrics
	AnnotationTarget          = constants.TargetUtilizationPercentage
	AnnotationMinScale        = constants.KServeAPIGroupName + "/min-scale"
	AnnotationMaxScale        = constants.KServeAPIGroupName + "/max-scale"
)

// Annotations of runtimes that users and the dashboard of Open Data Hub know. Yes turns them on.
const (
	// AnnotationRoute publishes the models of the runtime, AnnotationAuth has their callers checked.
	AnnotationRoute = "enable-route"
	AnnotationAuth  = "enable-auth"
	Enabled         = "true"
)

// The values that are understood.
const (
	AutoscalerHPA  = string(constants.AutoscalerClassHPA)
	AutoscalerNone = string(constants.AutoscalerClassNone)
	MetricCPU      = "cpu"
	MetricMemory   = "memory"
)

// Autoscale says how the pods of a runtime are scaled.
type Autoscale struct {
	// Enabled: by a HorizontalPodAutoscaler. The other fields have their defaults otherwise.
	Enabled bool
	// Metric is MetricCPU or MetricMemory.
	Metric string
	// Target is the wanted utilization in percent of what the pods request.
	Target int32
	// Min and Max bound the number of pods; Min is at least 1 and Max at least Min.
	Min, Max int32
}

// Autoscaling reads the annotations of a runtime. What cannot be understood counts as not said; the texts tell it.
func ParseAutoscaling(annotations map[string]string) (Autoscale, []string) {
	var notes []string
	a := Autoscale{Metric: MetricCPU, Target: 80, Min: 1, Max: 1}
	switch class := annotations[AnnotationAutoscalerClass]; class {
	case AutoscalerHPA:
		a.Enabled = true
	case "", AutoscalerNone:
		return a, nil
	default:
		return a, []string{fmt.Sprintf("annotation %s is %q: nothing scales the pods, choose %s or %s", AnnotationAutoscalerClass, class, AutoscalerHPA, AutoscalerNone)}
	}
	if metric, given := annotations[AnnotationMetric]; given {
		if metric == MetricCPU || metric == MetricMemory {
			a.Metric = metric
		} else {
			notes = append(notes, fmt.Sprintf("annotation %s is %q: %s is used, choose it or %s", AnnotationMetric, metric, MetricCPU, MetricMemory))
		}
	}
	number := func(key string, otherwise, from, to int32) int32 {
		text, given := annotations[key]
		if !given {
			return otherwise
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || int32(n) < from || int32(n) > to {
			notes = append(notes, fmt.Sprintf("annotation %s is %q: %d is used, write a whole number from %d to %d", key, text, otherwise, from, to))
			return otherwise
		}
		return int32(n)
	}
	a.Target = number(AnnotationTarget, a.Target, 1, 100)
	a.Min = number(AnnotationMinScale, a.Min, 1, math.MaxInt32)
	a.Max = max(a.Min, number(AnnotationMaxScale, a.Max, 1, math.MaxInt32))
	return a, notes
}
