package settings

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func mapOf(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
}

// Resolve merges in the order of a Source: built-in, defaults, administrators, environment, namespace.
func TestResolve(t *testing.T) {
	defaults := mapOf("home", DefaultsName, DefaultsKey, "podsPerRuntime: 7\nmetrics: {enabled: true}")
	admin := mapOf("home", ConfigMapName, ConfigMapKey, "podsPerRuntime: 8\nodd: 1")
	space := mapOf("team", ConfigMapName, ConfigMapKey, "podsPerRuntime: 9")
	for name, tc := range map[string]struct {
		cfg     config.ModelMesh
		d       Documents
		pods    int32
		service string
		etcd    string
		notes   int
	}{
		"no documents":        {config.ModelMesh{}, Documents{}, 2, DefaultServiceName, DefaultEtcdSecret, 0},
		"defaults":            {config.ModelMesh{}, Documents{Defaults: defaults}, 7, DefaultServiceName, DefaultEtcdSecret, 0},
		"a file of defaults":  {config.ModelMesh{Defaults: "podsPerRuntime: 5", DefaultsFile: "f"}, Documents{}, 5, DefaultServiceName, DefaultEtcdSecret, 0},
		"administrators":      {config.ModelMesh{}, Documents{Defaults: defaults, Admin: admin}, 8, DefaultServiceName, DefaultEtcdSecret, 1},
		"the environment":     {config.ModelMesh{EtcdSecretName: "mine"}, Documents{}, 2, DefaultServiceName, "mine", 0},
		"a namespace":         {config.ModelMesh{}, Documents{Admin: admin, Namespace: space}, 9, DefaultServiceName, DefaultEtcdSecret, 1},
		"the usual etcd name": {config.ModelMesh{EtcdSecretName: DefaultEtcdSecret}, Documents{Admin: mapOf("home", ConfigMapName, ConfigMapKey, "{}")}, 2, DefaultServiceName, DefaultEtcdSecret, 0},
	} {
		s, notes, err := Resolve(tc.cfg, tc.d)
		if err != nil || s.PodsPerRuntime != tc.pods || s.ServiceName != tc.service || s.EtcdSecretName != tc.etcd || len(notes) != tc.notes {
			t.Errorf("%s: %d pods, Service %s, etcd %s, notes %q, %v", name, s.PodsPerRuntime, s.ServiceName, s.EtcdSecretName, notes, err)
		}
	}
	for want, d := range map[string]Documents{
		"ConfigMap home/" + DefaultsName + ": ":                     {Defaults: mapOf("home", DefaultsName, DefaultsKey, "podsPerRuntime: x")},
		"must contain a key named " + DefaultsKey:                   {Defaults: mapOf("home", DefaultsName, "other", "")},
		"ConfigMap home/" + ConfigMapName + ": podsPerRuntime":      {Admin: mapOf("home", ConfigMapName, ConfigMapKey, "podsPerRuntime: x")},
		"ConfigMap team/" + ConfigMapName + ": User ConfigMap must": {Namespace: mapOf("team", ConfigMapName, "other", "")},
		"inferenceServiceName cannot be set for a single namespace": {Namespace: mapOf("team", ConfigMapName, ConfigMapKey, "inferenceServiceName: a")},
		"ConfigMap team/" + ConfigMapName + ": podsPerRuntime":      {Namespace: mapOf("team", ConfigMapName, ConfigMapKey, "podsPerRuntime: x")},
	} {
		if _, _, err := Resolve(config.ModelMesh{}, d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
