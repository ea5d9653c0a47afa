package modelregistry

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

func TestSplitByOwnership(t *testing.T) {
	controlledObject := apply.Object{Config: corev1ac.Service("a", "ns")}
	unownedObject := apply.Object{Config: corev1ac.Service("b", "ns"), Ownership: apply.Unowned}
	owned, unowned := splitByOwnership(apply.Desired{controlledObject, unownedObject, controlledObject})
	if len(owned) != 2 || len(unowned) != 1 || unowned[0].Ownership != apply.Unowned {
		t.Errorf("got %d owned and %d unowned objects, want 2 and 1", len(owned), len(unowned))
	}
}

// [D30] Legacy objects are adopted if their labels identify the registry.
func TestAdoptable(t *testing.T) {
	m := newRegistry("demo")
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
