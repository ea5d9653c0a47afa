package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// Older is a ConfigMap in the namespace of the manager as settings read it; nil when there is none.
func (e Env) Older(name string, embedded bool) *config.OlderConfig {
	stored := e.configMap(e.Config.OperatorNamespace, name)
	if stored == nil {
		return nil
	}
	return &config.OlderConfig{Source: "ConfigMap " + e.Config.OperatorNamespace + "/" + name, Data: stored.Data, Embedded: embedded}
}

// Mesh are the settings of ModelMesh in a namespace.
func (e Env) Mesh(namespace string) (meshsettings.Settings, []string, error) {
	home := e.Config.ModelMesh.Namespace
	documents := meshsettings.Documents{
		Defaults: e.configMap(home, meshsettings.DefaultsName), Admin: e.configMap(home, meshsettings.ConfigMapName),
	}
	if namespace != home {
		documents.Namespace = e.configMap(namespace, meshsettings.ConfigMapName)
	}
	return meshsettings.Resolve(e.Config.ModelMesh, documents)
}

// Placed gives an object without a namespace the one where kubectl would put it, and returns it.
func (e Env) Placed(obj metav1.Object) string {
	if obj.GetNamespace() == "" {
		obj.SetNamespace(cmp.Or(e.Namespace, corev1.NamespaceDefault))
	}
	return obj.GetNamespace()
}
