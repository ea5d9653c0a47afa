package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
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
		CORSBaseURL:      c.MLflow.CORSBaseURL,
		SectionTitle:     c.MLflow.SectionTitle,
		Platform:         c.Enabled(platform.ComponentName),
		Version:          c.MLflow.Version,
	}
}

// AppWrapper are the settings of the controllers of AppWrappers.
func AppWrapper(c config.AppWrapper) appwrapper.Settings {
	settings := appwrapper.DefaultSettings()
	settings.SchedulerName, settings.SlackQueueName = c.SchedulerName, c.SlackQueueName
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

// older is a ConfigMap in the namespace of the manager as settings read it; nil when there is none.
func (e Env) older(name string, embedded bool) *config.OlderConfig {
	stored := e.configMap(e.Config.OperatorNamespace, name)
	if stored == nil {
		return nil
	}
	return &config.OlderConfig{Source: "ConfigMap " + e.Config.OperatorNamespace + "/" + name, Data: stored.Data, Embedded: embedded}
}

// mesh are the settings of ModelMesh in a namespace.
func (e Env) mesh(namespace string) (meshsettings.Settings, []string, error) {
	home := e.Config.ModelMesh.Namespace
	documents := meshsettings.Documents{
		Defaults: e.configMap(home, meshsettings.DefaultsName), Admin: e.configMap(home, meshsettings.ConfigMapName),
	}
	if namespace != home {
		documents.Namespace = e.configMap(namespace, meshsettings.ConfigMapName)
	}
	return meshsettings.Resolve(e.Config.ModelMesh, documents)
}

// placed gives an object without a namespace the one where kubectl would put it, and returns it.
func (e Env) placed(obj metav1.Object) string {
	if obj.GetNamespace() == "" {
		obj.SetNamespace(cmp.Or(e.Namespace, corev1.NamespaceDefault))
	}
	return obj.GetNamespace()
}
