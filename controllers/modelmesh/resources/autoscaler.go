package resources

import (
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Labels of autoscalers.
const (
	LabelInferenceService = "serving.kserve.io/inferenceservice"
	labelComponent        = "component"
	predictorComponent    = "predictor"
)

// BuildAutoscaler renders the HorizontalPodAutoscaler of a runtime. Labels are those of the runtime itself.
func BuildAutoscaler(in RuntimeInputs, labels map[string]string, a mm.Autoscale) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	name := in.deploymentName()
	return autoscalingv2ac.HorizontalPodAutoscaler(name, in.Namespace).
		WithLabels(labels).
		WithLabels(map[string]string{
			LabelInferenceService: names.Truncate(in.Name, validation.LabelValueMaxLength), labelComponent: predictorComponent,
		}).
		WithAnnotations(scalingAnnotations(in.Annotations)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(name)).
			WithMinReplicas(a.Min).
			WithMaxReplicas(a.Max).
			WithBehavior(autoscalingv2ac.HorizontalPodAutoscalerBehavior()).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceName(a.Metric)).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).
						WithAverageUtilization(a.Target)))))
}

// scalingAnnotations are those that say how the runtime is scaled. Others of the runtime have no meaning on an autoscaler.
func scalingAnnotations(annotations map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, "serving.kserve.io/") {
			all[key] = value
		}
	}
	return all
}
