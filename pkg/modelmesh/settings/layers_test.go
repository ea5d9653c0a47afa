package settings

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func configMapWithKey(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
}

// Resolve merges the documents in the order of a Source. The environment takes precedence for a custom etcd Secret.
func TestResolve(t *testing.T) {
	defaults := configMapWithKey("home", DefaultsName, DefaultsKey, "podsPerRuntime: 7\nmetrics: {enabled: true}")
	admin := configMapWithKey("home", ConfigMapName, ConfigMapKey, "podsPerRuntime: 8\nodd: 1")
	tenant := configMapWithKey("team", ConfigMapName, ConfigMapKey, "podsPerRuntime: 9")
	for name, tc := range map[string]struct {
		cfg     config.ModelMesh
		d       Documents
		pods    int32
		service string
		etcd    string
		notes   int
	}{
		"no documents":                           {config.ModelMesh{}, Documents{}, 2, DefaultServiceName, DefaultEtcdSecret, 0},
		"defaults":                               {config.ModelMesh{}, Documents{Defaults: defaults}, 7, DefaultServiceName, DefaultEtcdSecret, 0},
		"defaults file":                          {config.ModelMesh{Defaults: "podsPerRuntime: 5", DefaultsFile: "f"}, Documents{}, 5, DefaultServiceName, DefaultEtcdSecret, 0},
		"administrators":                         {config.ModelMesh{}, Documents{Defaults: defaults, Admin: admin}, 8, DefaultServiceName, DefaultEtcdSecret, 1},
		"environment":                            {config.ModelMesh{EtcdSecretName: "custom-etcd"}, Documents{Admin: configMapWithKey("home", ConfigMapName, ConfigMapKey, "etcdSecretName: by-key")}, 2, DefaultServiceName, "custom-etcd", 0},
		"namespace":                              {config.ModelMesh{}, Documents{Admin: admin, Namespace: tenant}, 9, DefaultServiceName, DefaultEtcdSecret, 1},
		"default etcd Secret in the environment": {config.ModelMesh{EtcdSecretName: DefaultEtcdSecret}, Documents{Admin: configMapWithKey("home", ConfigMapName, ConfigMapKey, "etcdSecretName: by-key")}, 2, DefaultServiceName, "by-key", 0},
	} {
		s, notes, err := Resolve(tc.cfg, tc.d)
		if err != nil || s.PodsPerRuntime != tc.pods || s.ServiceName != tc.service || s.EtcdSecretName != tc.etcd || len(notes) != tc.notes {
			t.Errorf("%s: got %d pods, Service %s, etcd Secret %s, notes %q, error %v, want %d, %s, %s and %d notes", name, s.PodsPerRuntime, s.ServiceName,
				s.EtcdSecretName, notes, err, tc.pods, tc.service, tc.etcd, tc.notes)
		}
	}
	for want, d := range map[string]Documents{
		"ConfigMap home/" + DefaultsName + ": ":                     {Defaults: configMapWithKey("home", DefaultsName, DefaultsKey, "podsPerRuntime: x")},
		"must contain a key named " + DefaultsKey:                   {Defaults: configMapWithKey("home", DefaultsName, "other", "")},
		"ConfigMap home/" + ConfigMapName + ": podsPerRuntime":      {Admin: configMapWithKey("home", ConfigMapName, ConfigMapKey, "podsPerRuntime: x")},
		"ConfigMap team/" + ConfigMapName + ": User ConfigMap must": {Namespace: configMapWithKey("team", ConfigMapName, "other", "")},
		"inferenceServiceName cannot be set for a single namespace": {Namespace: configMapWithKey("team", ConfigMapName, ConfigMapKey, "inferenceServiceName: a")},
		"ConfigMap team/" + ConfigMapName + ": podsPerRuntime":      {Namespace: configMapWithKey("team", ConfigMapName, ConfigMapKey, "podsPerRuntime: x")},
	} {
		if _, _, err := Resolve(config.ModelMesh{}, d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to contain %q", err, want)
		}
	}
}
