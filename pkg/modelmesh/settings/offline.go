package settings

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Documents are the ConfigMaps that settings come from; nil for those that do not exist.
type Documents struct {
	// Defaults is DefaultsName and Admin ConfigMapName in the manager's namespace, Namespace is ConfigMapName in the namespace
	// whose settings are asked for, if that is another one.
	Defaults, Admin, Namespace *corev1.ConfigMap
}

// Resolve returns the settings that a Source would have for a namespace as the first ones, without a cluster. Notes name what has no
// effect. An error names what is wrong, and where it stands, also in the document of the namespace, which a Source would leave out.
func Resolve(cfg config.ModelMesh, d Documents) (Settings, []string, error) {
	base, notes, err := baseOf(cfg, documentOf(d.Defaults))
	if err != nil {
		return Settings{}, nil, err
	}
	settings, more, err := adminOver(base, documentOf(d.Admin))
	if err != nil {
		return Settings{}, nil, err
	}
	notes = append(notes, more...)
	if cfg.EtcdSecretName != "" && cfg.EtcdSecretName != DefaultEtcdSecret {
		settings.EtcdSecretName = cfg.EtcdSecretName
	}
	own := documentOf(d.Namespace)
	if own == nil {
		return settings, notes, nil
	}
	text, err := own.text(ConfigMapKey, noKey)
	if err != nil {
		return Settings{}, nil, at(own, err)
	}
	settings, more, err = ReadOverride(settings, text)
	return settings, append(notes, more...), at(own, err)
}
