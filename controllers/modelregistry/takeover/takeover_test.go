package takeover

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
)

// [D30] Legacy objects are adopted if their labels identify the registry.
func TestAdoptable(t *testing.T) {
	m := &v1beta1.ModelRegistry{}
	m.Namespace, m.Name = "ns", "demo"
	legacyLabels := map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: "demo"}
	with := func(key, value string) map[string]string {
		all := map[string]string{key: value}
		for k, v := range legacyLabels {
			if k != key {
				all[k] = v
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"of the legacy operator": {legacyLabels, true},
		"of the same namespace":  {with(resources.LabelNamespace, "ns"), true},
		"of another namespace":   {with(resources.LabelNamespace, "elsewhere"), false},
		"of another registry":    {with(resources.LabelApp, "other"), false},
		"of another client":      {with(resources.LabelCreatedBy, "me"), false},
		"without labels":         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{}
			live.SetLabels(test.labels)
			if got := adoptable(m)(live); got != test.want {
				t.Errorf("adoptable returned %t, want %t", got, test.want)
			}
		})
	}
}
