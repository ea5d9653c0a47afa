package resources

import (
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// ReplicaInputs are the inputs for the replica count of a runtime.
type ReplicaInputs struct {
	// SpecReplicas is the replica count in the spec; nil selects PodsPerRuntime.
	SpecReplicas   *int64
	PodsPerRuntime int32
	ScaleToZero    meshsettings.ScaleToZero
	Autoscale      modelmesh.Autoscale
	// CurrentReplicas is spec.replicas of the live Deployment; nil if it does not exist.
	CurrentReplicas *int32
	// Needed is true if a model exists that the runtime supports.
	Needed bool
	// IdleSince is the time at which the runtime was first seen without such a model; zero if unknown.
	IdleSince time.Time
	Now       time.Time
}

// Replicas is the decision about the replica count of a runtime.
type Replicas struct {
	Count int32
	// Autoscaled is true if a HorizontalPodAutoscaler changes the replica count, which starts at Count.
	Autoscaled bool
	// IdleSince is the input of the next decision; zero if the runtime is needed or ScaleToZero is disabled.
	IdleSince time.Time
	// RequeueAfter is the remaining grace period, or 0.
	RequeueAfter time.Duration
}

// DecideReplicas decides the replica count of a runtime. If ScaleToZero is enabled, the runtime is scaled to zero when no model has needed
// it for the grace period, and a new runtime, or one at zero, has no pods until a model needs it. The grace period restarts when the
// operator restarts.
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
	return int32(min(max(0, *in.SpecReplicas), modelmesh.MaxReplicas))
}

// idleSince returns the start of the grace period, or now if the period has not started.
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

// BuildAutoscaler builds the HorizontalPodAutoscaler of a runtime. labels are those of the runtime.
func BuildAutoscaler(in RuntimeInputs, labels map[string]string, a modelmesh.Autoscale) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
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
			WithBehavior(defaultBehavior()).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceName(a.Metric)).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).
						WithAverageUtilization(a.Target)))))
}

// defaultBehavior returns the defaults of the API server for the empty behavior that the legacy operator applied. An empty object would
// differ from the stored one in each comparison.
func defaultBehavior() *autoscalingv2ac.HorizontalPodAutoscalerBehaviorApplyConfiguration {
	policy := func(kind autoscalingv2.HPAScalingPolicyType, value int32) *autoscalingv2ac.HPAScalingPolicyApplyConfiguration {
		return autoscalingv2ac.HPAScalingPolicy().WithType(kind).WithValue(value).WithPeriodSeconds(15)
	}
	rules := func() *autoscalingv2ac.HPAScalingRulesApplyConfiguration {
		return autoscalingv2ac.HPAScalingRules().WithSelectPolicy(autoscalingv2.MaxChangePolicySelect)
	}
	return autoscalingv2ac.HorizontalPodAutoscalerBehavior().
		WithScaleUp(rules().WithStabilizationWindowSeconds(0).
			WithPolicies(policy(autoscalingv2.PodsScalingPolicy, 4), policy(autoscalingv2.PercentScalingPolicy, 100))).
		WithScaleDown(rules().WithPolicies(policy(autoscalingv2.PercentScalingPolicy, 100)))
}

// scalingAnnotations returns the annotations of KServe. Other annotations of the runtime have no meaning on an autoscaler.
func scalingAnnotations(annotations map[string]string) map[string]string {
	scaling := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, "serving.kserve.io/") {
			scaling[key] = value
		}
	}
	return scaling
}
