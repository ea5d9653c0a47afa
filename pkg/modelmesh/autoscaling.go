package modelmesh

import (
	"fmt"
	"math"
	"strconv"

	"github.com/kserve/kserve/pkg/constants"
)

// Annotations of runtimes for autoscaling.
var (
	AnnotationAutoscalerClass = constants.AutoscalerClass
	AnnotationMetric          = constants.AutoscalerMetrics
	AnnotationTarget          = constants.TargetUtilizationPercentage
	AnnotationMinScale        = constants.KServeAPIGroupName + "/min-scale"
	AnnotationMaxScale        = constants.KServeAPIGroupName + "/max-scale"
)

// Annotations of runtimes that the dashboard of Open Data Hub sets to Enabled.
const (
	// AnnotationRoute exposes the models of the runtime, AnnotationAuth requires authentication of clients.
	AnnotationRoute = "enable-route"
	AnnotationAuth  = "enable-auth"
	Enabled         = "true"
)

// Valid values of AnnotationAutoscalerClass and AnnotationMetric.
const (
	AutoscalerHPA  = string(constants.AutoscalerClassHPA)
	AutoscalerNone = string(constants.AutoscalerClassNone)
	MetricCPU      = "cpu"
	MetricMemory   = "memory"
)

// Autoscale is the autoscaling configuration of a runtime.
type Autoscale struct {
	// Enabled is true if a HorizontalPodAutoscaler scales the Deployment. The other fields have defaults otherwise.
	Enabled bool
	// Metric is MetricCPU or MetricMemory.
	Metric string
	// Target is the target utilization in percent of the requests.
	Target int32
	// Min and Max limit the number of replicas; Min is at least 1 and Max at least Min.
	Min, Max int32
}

// ParseAutoscaling parses the annotations of a runtime. Invalid annotations are ignored; the strings describe them.
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
	if metric, found := annotations[AnnotationMetric]; found {
		if metric == MetricCPU || metric == MetricMemory {
			a.Metric = metric
		} else {
			notes = append(notes, fmt.Sprintf("annotation %s is %q: %s is used, set it to %s or %s", AnnotationMetric, metric, MetricCPU, MetricCPU, MetricMemory))
		}
	}
	parseInt := func(key string, defaultValue, minimum, maximum int32) int32 {
		text, found := annotations[key]
		if !found {
			return defaultValue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || int32(n) < minimum || int32(n) > maximum {
			notes = append(notes, fmt.Sprintf("annotation %s is %q: %d is used, write a whole number from %d to %d", key, text, defaultValue, minimum, maximum))
			return defaultValue
		}
		return int32(n)
	}
	a.Target = parseInt(AnnotationTarget, a.Target, 1, 100)
	a.Min = parseInt(AnnotationMinScale, a.Min, 1, math.MaxInt32)
	a.Max = max(a.Min, parseInt(AnnotationMaxScale, a.Max, 1, math.MaxInt32))
	return a, notes
}
