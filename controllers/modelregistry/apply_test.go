package modelregistry

import (
	"testing"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

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
