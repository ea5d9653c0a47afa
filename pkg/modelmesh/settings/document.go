package settings

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// document is what is kept of a ConfigMap: what an Event on it names, and the key that counts, if it has that. The version is that of when
// it began to say this: Events on one object with one reason are counted, and show the words of the first.
type document struct {
	*corev1.ConfigMap
	lastMessage string // text of the last Event
}

func newDocument(meta metav1.Object, data map[string]string) *document {
	maps.DeleteFunc(data, func(key, _ string) bool { return key != ConfigMapKey && key != DefaultsKey })
	return &document{ConfigMap: &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion(),
		},
		Data: data,
	}}
}

// documentOf is the document of a ConfigMap, nil of none.
func fromConfigMap(stored *corev1.ConfigMap) *document {
	if stored == nil {
		return nil
	}
	return newDocument(stored, maps.Clone(stored.Data))
}

// looseDocument is the document of a ConfigMap in the form in which watches bring it.
func fromUnstructured(object *unstructured.Unstructured) *document {
	if object == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data") // the API server stores nothing else
	return newDocument(object, data)
}

// same tells whether two documents say the same, and are one object.
func (d *document) equals(other *document) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.UID == other.UID && maps.Equal(d.Data, other.Data)
}

// over lays the text under a key over settings; read is Read or ReadOverride. No document says nothing. Without the key the ConfigMap was
// meant for something else, or its key is misspelt. An error names the ConfigMap.
func (d *document) applyTo(below Settings, key string, read func(Settings, string) (Settings, []string, error)) (Settings, []string, error) {
	if d == nil {
		return below, nil, nil
	}
	text, ok := d.Data[key]
	if !ok { // in the words of the original
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: User ConfigMap must contain a key named %s", client.ObjectKeyFromObject(d), key)
	}
	settings, notes, err := read(below, text)
	if err != nil {
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: %w", client.ObjectKeyFromObject(d), err)
	}
	return settings, notes, nil
}

// base are the settings without those of the administrators: what the program knows, the defaults, the images of the environment.
func baseSettings(cfg config.ModelMesh, defaults *document) (settings Settings, notes []string, err error) {
	settings = Default()
	switch {
	case defaults != nil:
		settings, notes, err = defaults.applyTo(builtIn(), DefaultsKey, Read)
	case cfg.Defaults != "":
		if settings, notes, err = Read(builtIn(), cfg.Defaults); err != nil {
			err = fmt.Errorf("%s: %w", cfg.DefaultsFile, err)
		}
	}
	settings.AuthProxy.TLS = cfg.TLS
	for dst, image := range map[*Image]string{
		&settings.ModelMeshImage: cfg.Images.ModelMesh, &settings.RESTProxy.Image: cfg.Images.RESTProxy,
		&settings.StorageHelper.Image: cfg.Images.RuntimeAdapter,
		&settings.AuthProxy.Image:     cfg.Images.OAuthProxy, &settings.AuthProxy.RBACImage: cfg.Images.KubeRBACProxy,
	} {
		if image != "" {
			*dst = ParseImage(image)
		}
	}
	return settings, notes, err
}

// administered lays the document of the administrators over the base.
func adminSettings(cfg config.ModelMesh, below Settings, admin *document) (Settings, []string, error) {
	settings, notes, err := admin.applyTo(below, ConfigMapKey, Read)
	if cfg.EtcdSecretName != "" && cfg.EtcdSecretName != DefaultEtcdSecret {
		settings.EtcdSecretName = cfg.EtcdSecretName // of the two, the environment counts
	}
	return settings, notes, err
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
	settings, all, err := baseSettings(cfg, fromConfigMap(d.Defaults))
	var notes []string
	if err == nil {
		settings, notes, err = adminSettings(cfg, settings, fromConfigMap(d.Admin))
		all = append(all, notes...)
	}
	if err == nil {
		settings, notes, err = fromConfigMap(d.Namespace).applyTo(settings, ConfigMapKey, ReadOverride)
		all = append(all, notes...)
	}
	if err != nil {
		return Settings{}, nil, err
	}
	return settings, all, nil
}
