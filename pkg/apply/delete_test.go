package apply

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// DeleteOwned deletes the object and its record. A missing object is no error.
func TestDeleteOwned(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.UID = "seen" }))
	a.expectApply(oneApply, newConfigMap("own", "1"))
	own := a.get("own")
	a.must(a.DeleteOwned(a.Context(), a.owner.UID, own))
	if a.exists("own") || !a.exists("a") {
		t.Error("the wrong object was removed")
	}
	a.must(a.DeleteOwned(a.Context(), a.owner.UID, own)) // already deleted
	a.expectApply(oneApply, newConfigMap("own", "1"))
	a.must(a.DeleteOwned(a.Context(), "", a.get("a"))) // without an owner
	if a.exists("a") {
		t.Error("the object was not deleted")
	}
}

func TestDeleteOwnedSkipsTerminatingObject(t *testing.T) {
	terminating := existingConfigMap(func(c *corev1.ConfigMap) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"test.opendatahub.io/hold"}
	})
	a := newTestApplier(t, terminating)
	a.must(a.DeleteOwned(a.Context(), "", a.get("a")))
	if a.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
}

// With Foreground, the object is deleted with foreground propagation.
func TestDeleteOwnedInForeground(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("own", "1"))
	own := a.get("own")
	a.must(a.DeleteOwned(a.Context(), a.owner.UID, own, Foreground))
	if a.exists("own") || a.policies[0] != metav1.DeletePropagationForeground {
		t.Errorf("exists: %v, propagation policies: %v, want foreground deletion", a.exists("own"), a.policies)
	}
	a.must(a.DeleteOwned(a.Context(), a.owner.UID, own, Foreground)) // already deleted
	a.expectApply(oneApply, newConfigMap("own", "1"))
	terminating := a.get("own")
	terminating.DeletionTimestamp = new(metav1.Now())
	clear(a.seen)
	a.must(a.DeleteOwned(a.Context(), a.owner.UID, terminating, Foreground))
	if a.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
	a.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "own", errors.New("another uid"))
	err := a.DeleteOwned(a.Context(), a.owner.UID, a.get("own"), Foreground)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Name != "own" || !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a Conflict that names the object", err)
	}
}

func TestDeleteOwnedErrors(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	a.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("another uid"))
	err := a.DeleteOwned(a.Context(), "", a.get("a"))
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Kind != "ConfigMap" || failed.Namespace != "ns" || failed.Name != "a" || !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a Conflict that names the object", err)
	}
	delete(a.failing, "delete")
	if a.DeleteOwned(t.Context(), "", &unregisteredObject{}) == nil {
		t.Error("DeleteOwned returned no error for an object whose kind is not in the scheme")
	}
}

// unregisteredObject is an object whose kind is not in the scheme.
type unregisteredObject struct{ corev1.ConfigMap }

// The records of a namespace are deleted for all owners.
func TestForgetNamespace(t *testing.T) {
	a := newTestApplier(t)
	keyIn := func(namespace, name string) Key {
		return Key{configMapKind, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for _, owner := range []types.UID{"one", "two"} {
		for _, namespace := range []string{"gone", "stays"} {
			a.records.Store(recordKey{owner, keyIn(namespace, "a")}, record{time: time.Unix(1, 0)})
			a.records.Store(recordKey{owner, keyIn(namespace, "b")}, record{time: time.Unix(1, 0)})
		}
	}
	a.ForgetNamespace("gone")
	for _, owner := range []types.UID{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			if _, found := a.records.get(owner, keyIn("gone", name)); found {
				t.Errorf("the record of %s of owner %s was not deleted", name, owner)
			}
			if _, found := a.records.get(owner, keyIn("stays", name)); !found {
				t.Errorf("the record of %s of owner %s was deleted", name, owner)
			}
		}
	}
}
