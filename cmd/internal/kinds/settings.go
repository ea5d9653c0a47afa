package kinds

import (
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
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
		Exposure:         c.Exposure,
	}
}

// AppWrapper are the settings of the component appwrapper, with those of former operators in the cluster.
func AppWrapper(env render.Env) (config.AppWrapper, error) {
	var older []config.OlderConfig
	for _, o := range OlderConfigs {
		if found := env.Older(o.Name, o.Embedded); found != nil {
			older = append(older, *found)
		}
	}
	settings, _, err := env.Config.AppWrapper(older...)
	return settings, err
}
