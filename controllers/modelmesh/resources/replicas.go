package resources

import (
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// ReplicaInputs is what the number of pods of a runtime depends on.
type ReplicaInputs struct {
	// Wanted is the number in the spec; nil leaves it to PodsPerRuntime.
	SpecReplicas   *int64
	PodsPerRuntime int32
	ScaleToZero    meshsettings.ScaleToZero
	Autoscale      mm.Autoscale
	// Live is the number of pods that the Deployment asks for; nil when there is no Deployment.
	CurrentReplicas *int32
	// Needed: there is a model that the runtime may serve.
	Needed bool
	// IdleSince is when the last such model was seen to be gone; zero when that is not known.
	IdleSince time.Time
	Now       time.Time
}

// Replicas is the number of pods of a runtime.
type Replicas struct {
	Count int32
	// Autoscaled: a HorizontalPodAutoscaler continues from Count.
	Autoscaled bool
	// IdleSince is to be remembered; zero while the runtime is needed.
	IdleSince time.Time
	// Again is when to look again, if nothing happens before; 0 is never.
	RequeueAfter time.Duration
}

// DecideReplicas takes a runtime down when no model has needed it for the grace period. A runtime that is down, or that is new,
// stays down until the first model comes; one whose history is not known, because the program has just started, has the whole
// period before it.
func DecideReplicas(in ReplicaInputs) Replicas {
	r := Replicas{Count: in.configuredReplicas()}
	if in.ScaleToZero.Enabled && !in.Needed {
		if in.CurrentReplicas == nil || *in.CurrentReplicas == 0 {
			return Replicas{IdleSince: in.idleSince()}
		}
		r.IdleSince = in.idleSince()
		if r.RequeueAfter = in.ScaleToZero.GracePeriod - in.Now.Sub(r.IdleSince); r.RequeueAfter <= 0 {
			return Replicas{IdleSince: r.IdleSince}
		}
	}
	if r.Count > 0 && in.Autoscale.Enabled {
		r.Autoscaled = true
		r.Count = in.Autoscale.Min
		if in.CurrentReplicas != nil && *in.CurrentReplicas > 0 {
			r.Count = min(max(*in.CurrentReplicas, in.Autoscale.Min), in.Autoscale.Max)
		}
	}
	return r
}

func (in ReplicaInputs) configuredReplicas() int32 {
	if in.SpecReplicas == nil {
		return max(0, in.PodsPerRuntime)
	}
	return int32(min(max(0, *in.SpecReplicas), mm.MaxReplicas))
}

// idleSince starts the period, unless it runs.
func (in ReplicaInputs) idleSince() time.Time {
	if in.IdleSince.IsZero() {
		return in.Now
	}
	return in.IdleSince
}

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
