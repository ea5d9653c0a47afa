package settings

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// document is a ConfigMap of settings, reduced to the fields that Events and settings need. It is replaced, with its resourceVersion, only
// if UID or data change: Kubernetes aggregates Events with the same object, resourceVersion and reason, and shows the first message.
type document struct {
	*corev1.ConfigMap
	lastMessage string // of the last Event
}

// newDocument returns the document of a ConfigMap, or nil for nil.
func newDocument(stored *corev1.ConfigMap) *document {
	if stored == nil {
		return nil
	}
	data := maps.Clone(stored.Data)
	maps.DeleteFunc(data, func(key, _ string) bool { return key != ConfigMapKey && key != DefaultsKey })
	return &document{ConfigMap: &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID, ResourceVersion: stored.ResourceVersion},
		Data:       data,
	}}
}

// fromUnstructured returns the document of an object from a watch, or nil for nil.
func fromUnstructured(object *unstructured.Unstructured) *document {
	if object == nil {
		return nil
	}
	stored := &corev1.ConfigMap{}
	stored.Namespace, stored.Name, stored.UID, stored.ResourceVersion = object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()
	stored.Data, _, _ = unstructured.NestedStringMap(object.Object, "data") // the API server validates the type
	return newDocument(stored)
}

// equals reports whether two documents are the same object with the same data.
func (d *document) equals(other *document) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.UID == other.UID && maps.Equal(d.Data, other.Data)
}

// mergeInto merges the text of a key into settings with Read or ReadOverride. A nil document changes nothing. A missing key is an error: the
// ConfigMap has another purpose or the key is misspelt. Errors name the ConfigMap.
func (d *document) mergeInto(settings Settings, key string, read func(Settings, string) (Settings, []string, error)) (Settings, []string, error) {
	if d == nil {
		return settings, nil, nil
	}
	text, ok := d.Data[key]
	if !ok { // the message of the legacy controller
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: User ConfigMap must contain a key named %s", client.ObjectKeyFromObject(d), key)
	}
	settings, notes, err := read(settings, text)
	if err != nil {
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: %w", client.ObjectKeyFromObject(d), err)
	}
	return settings, notes, nil
}

// baseSettings returns the settings without those of administrators: the built-in ones, the defaults, and images and TLS profile of cfg.
func baseSettings(cfg config.ModelMesh, defaults *document) (settings Settings, notes []string, err error) {
	settings = Default()
	switch {
	case defaults != nil:
		settings, notes, err = defaults.mergeInto(builtIn(), DefaultsKey, Read)
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

// adminSettings merges the document of the administrators into the base settings.
func adminSettings(cfg config.ModelMesh, base Settings, admin *document) (Settings, []string, error) {
	settings, notes, err := admin.mergeInto(base, ConfigMapKey, Read)
	if cfg.EtcdSecretName != "" && cfg.EtcdSecretName != DefaultEtcdSecret {
		settings.EtcdSecretName = cfg.EtcdSecretName // the operator's configuration takes precedence
	}
	return settings, notes, err
}

// Documents are the ConfigMaps of settings; nil for those that do not exist.
type Documents struct {
	// Defaults is DefaultsName and Admin is ConfigMapName in the operator's namespace. Namespace is ConfigMapName in the namespace of the
	// requested settings, if that is another namespace.
	Defaults, Admin, Namespace *corev1.ConfigMap
}

// Resolve returns the settings that a new Source would return for a namespace, without a cluster. The notes are those of Read.
// Unlike a Source, it returns an error for an invalid document of the namespace.
func Resolve(cfg config.ModelMesh, d Documents) (Settings, []string, error) {
	settings, notes, err := baseSettings(cfg, newDocument(d.Defaults))
	if err != nil {
		return Settings{}, nil, err
	}
	settings, adminNotes, err := adminSettings(cfg, settings, newDocument(d.Admin))
	if err != nil {
		return Settings{}, nil, err
	}
	settings, namespaceNotes, err := newDocument(d.Namespace).mergeInto(settings, ConfigMapKey, ReadOverride)
	return settings, slices.Concat(notes, adminNotes, namespaceNotes), err
}
