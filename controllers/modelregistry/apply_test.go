package modelregistry

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

func TestSplitByOwnership(t *testing.T) {
	controlled := apply.Object{Config: corev1ac.Service("a", "ns")}
	published := apply.Object{Config: corev1ac.Service("b", "ns"), Ownership: apply.Unowned}
	own, others := splitByOwnership(apply.Desired{controlled, published, controlled})
	if len(own) != 2 || len(others) != 1 || others[0].Ownership != apply.Unowned {
		t.Errorf("%d own, %d published", len(own), len(others))
	}
}

// [D30] Legacy objects of this registry are adopted, as far as their labels identify it.
func TestAdoptable(t *testing.T) {
	m := newRegistry("demo")
	managed := map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: "demo"}
	with := func(key, value string) map[string]string {
		all := map[string]string{key: value}
		for k, v := range managed {
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
		"of the legacy operator": {managed, true},
		"with its namespace":     {with(resources.LabelNamespace, "ns"), true},
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
