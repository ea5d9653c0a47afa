package settings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// finding is what is wrong with one document, which is nil for the file of defaults.
type finding struct {
	about *document
	notes []string
	err   error
}

// layers lays the documents of the administrators and the environment over each other. It ends at the first document that is bad.
func layers(cfg config.ModelMesh, defaults, admin *document) (Settings, []finding, error) {
	settings, f := Default(), finding{about: defaults}
	switch {
	case defaults != nil:
		settings, f.notes, f.err = defaults.over(builtIn(), DefaultsKey, Read)
	case cfg.Defaults != "":
		if settings, f.notes, f.err = Read(builtIn(), cfg.Defaults); f.err != nil {
			f.err = fmt.Errorf("%s: %w", cfg.DefaultsFile, f.err)
		}
	}
	all := []finding{f}
	if f.err != nil {
		return Settings{}, all, f.err
	}
	settings.takeImages(cfg)
	if admin != nil {
		f = finding{about: admin}
		settings, f.notes, f.err = admin.over(settings, ConfigMapKey, Read)
		all = append(all, f)
	}
	if cfg.EtcdSecretName != "" && cfg.EtcdSecretName != DefaultEtcdSecret {
		settings.EtcdSecretName = cfg.EtcdSecretName // of the two, the environment counts
	}
	return settings, all, f.err
}

// takeImages takes the images of the environment.
func (s *Settings) takeImages(cfg config.ModelMesh) {
	for dst, image := range map[*Image]string{
		&s.ModelMeshImage: cfg.Images.ModelMesh, &s.RESTProxy.Image: cfg.Images.RESTProxy, &s.StorageHelper.Image: cfg.Images.RuntimeAdapter,
		&s.AuthProxy.Image: cfg.Images.OAuthProxy, &s.AuthProxy.RBACImage: cfg.Images.KubeRBACProxy,
	} {
		if image != "" {
			*dst = ParseImage(image)
		}
	}
}

// Documents are the ConfigMaps that settings come from; nil for those that do not exist.
type Documents struct {
	// Defaults is DefaultsName and Admin ConfigMapName in the manager's namespace, Namespace is ConfigMapName in the namespace
	// whose settings are wanted, if that is another one.
	Defaults, Admin, Namespace *corev1.ConfigMap
}

// Resolve returns the settings that a Source would have for a namespace as the first ones, without a cluster. Notes name what has no
// effect. An error names what is wrong, and where it stands, also in the document of the namespace, which a Source would leave out.
func Resolve(cfg config.ModelMesh, d Documents) (Settings, []string, error) {
	settings, all, err := layers(cfg, documentOf(d.Defaults), documentOf(d.Admin))
	if own := documentOf(d.Namespace); err == nil && own != nil {
		var f finding
		settings, f.notes, err = own.over(settings, ConfigMapKey, ReadOverride)
		all = append(all, f)
	}
	if err != nil {
		return Settings{}, nil, err
	}
	var notes []string
	for _, f := range all {
		notes = append(notes, f.notes...)
	}
	return settings, notes, nil
}
