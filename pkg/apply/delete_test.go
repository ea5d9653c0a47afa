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

// DeleteOwned deletes the object by UID, and its record.
func TestDeleteOwned(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.UID = "seen" }))
	b.expectApply(oneApply, newConfigMap("own", "1"))
	own := b.get("own")
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own))
	if b.exists("own") || !b.exists("a") {
		t.Error("the wrong object was removed")
	}
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own)) // already deleted
	b.expectApply(oneApply, newConfigMap("own", "1"))
	b.must(b.DeleteOwned(b.Context(), "", b.get("a"))) // without an existing owner
	if b.exists("a") {
		t.Error("the object was not deleted")
	}
}

func TestDeleteOwnedSkipsTerminatingObject(t *testing.T) {
	terminating := existingConfigMap(func(c *corev1.ConfigMap) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"test.opendatahub.io/hold"}
	})
	b := newTestApplier(t, terminating)
	b.must(b.DeleteOwned(b.Context(), "", b.get("a")))
	if b.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
}

// With Foreground, the object is deleted by UID with foreground propagation.
func TestDeleteOwnedInForeground(t *testing.T) {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("own", "1"))
	own := b.get("own")
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own, Foreground))
	if b.exists("own") || b.policies[0] != metav1.DeletePropagationForeground {
		t.Errorf("exists: %v, propagation policies: %v, want foreground deletion", b.exists("own"), b.policies)
	}
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own, Foreground)) // already deleted
	b.expectApply(oneApply, newConfigMap("own", "1"))
	terminating := b.get("own")
	terminating.DeletionTimestamp = new(metav1.Now())
	clear(b.seen)
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, terminating, Foreground))
	if b.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
	b.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "own", errors.New("another uid"))
	err := b.DeleteOwned(b.Context(), b.owner.UID, b.get("own"), Foreground)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Name != "own" || !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a Conflict that names the object", err)
	}
}

func TestDeleteOwnedErrors(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	b.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("another uid"))
	err := b.DeleteOwned(b.Context(), "", b.get("a"))
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Kind != "ConfigMap" || failed.Namespace != "ns" || failed.Name != "a" || !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a Conflict that names the object", err)
	}
}

// The records of a namespace are deleted for all owners.
func TestForgetNamespace(t *testing.T) {
	a := newTestApplier(t)
	m := &a.records
	keyIn := func(namespace, name string) Key {
		return Key{configMapKind, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for _, owner := range []types.UID{"one", "two"} {
		for _, namespace := range []string{"gone", "stays"} {
			m.Store(recordKey{owner, keyIn(namespace, "a")}, record{time: time.Unix(1, 0)})
			m.Store(recordKey{owner, keyIn(namespace, "b")}, record{time: time.Unix(1, 0)})
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
