package kinds

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// CodeFlareConfig is the ConfigMap of the CodeFlare operator, in the namespace of the manager.
const CodeFlareConfig = "codeflare-operator-config"

// OlderConfigs are the ConfigMaps of the operators that had AppWrappers before, in the manager's own namespace. The later one counts
// more. Embedded ones hold the settings of AppWrappers as one section among others.
var OlderConfigs = []struct {
	Name     string
	Embedded bool
}{
	{CodeFlareConfig, true},
	{"appwrapper-operator-config", false},
}

// MLflow are the settings of the component mlflow.
func MLflow(c config.Config) mlflow.Settings {
	return mlflow.Settings{
		Namespace:        c.Namespace,
		Image:            c.MLflow.Image,
		GatewayName:      c.MLflow.GatewayName,
		GatewayNamespace: c.MLflow.GatewayNamespace,
		ExternalURL:      c.MLflow.ExternalURL,
		SectionTitle:     c.MLflow.SectionTitle,
		Platform:         c.Enabled(platform.ComponentName),
		Version:          c.MLflow.Version,
		Authors:          c.Authors,
	}
}

// AppWrapper are the settings of the controllers of AppWrappers.
func AppWrapper(c config.AppWrapper) appwrapper.Settings {
	settings := appwrapper.DefaultSettings()
	settings.SchedulerName, settings.SlackQueueName = c.SchedulerName, c.SlackQueueName
	settings.ReviewAccess = c.UserRBACAdmissionCheck
	f := c.FaultTolerance
	settings.FaultTolerance = appwrapper.FaultTolerance{
		AdmissionGrace: f.AdmissionGracePeriod, WarmupGrace: f.WarmupGracePeriod, FailureGrace: f.FailureGracePeriod,
		RetryPause: f.ResetPause, RetryLimit: f.RetryLimit, DeletionGrace: f.DeletionGracePeriod,
		GraceCeiling: f.GracePeriodCeiling, SuccessTTL: f.SuccessTTLCeiling,
	}
	settings.Autopilot = nil
	if a := c.Autopilot; a != nil {
		settings.Autopilot = &appwrapper.Autopilot{
			InjectAntiAffinities: a.InjectAntiAffinities, MonitorNodes: a.MonitorNodes,
			PreferNoScheduleWeight: a.PreferNoScheduleWeight, ResourceTaints: map[corev1.ResourceName][]corev1.Taint{},
		}
		for resource, taints := range a.ResourceTaints {
			settings.Autopilot.ResourceTaints[corev1.ResourceName(resource)] = nodeTaints(taints)
		}
	}
	return settings
}

func nodeTaints(taints []config.NodeTaint) []corev1.Taint {
	out := make([]corev1.Taint, 0, len(taints))
	for _, t := range taints {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}
