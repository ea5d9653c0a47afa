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

// The object is deleted by uid, and its record too.
func TestDeleteOwned(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.UID = "seen" }))
	b.applies(blind, settings("own", "1"))
	own := b.get("own")
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own))
	if b.exists("own") || !b.exists("a") {
		t.Error("the wrong object was removed")
	}
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own)) // gone already
	b.applies(blind, settings("own", "1"))
	b.must(b.DeleteOwned(b.Context(), "", b.get("a"))) // of no owner that is left
	if b.exists("a") {
		t.Error("the object was not deleted")
	}
}

func TestDeleteOwnedSkipsTerminatingObject(t *testing.T) {
	going := existingConfigMap(func(c *corev1.ConfigMap) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"test.opendatahub.io/hold"}
	})
	b := newTestApplier(t, going)
	b.must(b.DeleteOwned(b.Context(), "", b.get("a")))
	if b.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
}

// An object that will be recreated is deleted in the foreground by uid, and its record too.
func TestDeleteOwnedInForeground(t *testing.T) {
	b := newTestApplier(t)
	b.applies(blind, settings("own", "1"))
	own := b.get("own")
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own, Foreground))
	if b.exists("own") || b.policies[0] != metav1.DeletePropagationForeground {
		t.Errorf("exists %v, deleted by %v", b.exists("own"), b.policies)
	}
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, own, Foreground)) // gone already
	b.applies(blind, settings("own", "1"))
	going := b.get("own")
	going.DeletionTimestamp = new(metav1.Now())
	clear(b.seen)
	b.must(b.DeleteOwned(b.Context(), b.owner.UID, going, Foreground))
	if b.seen["delete"] != 0 {
		t.Error("a terminating object was deleted again")
	}
	b.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "own", errors.New("another uid"))
	err := b.DeleteOwned(b.Context(), b.owner.UID, b.get("own"), Foreground)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Name != "own" || !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
}

func TestDeleteOwnedErrors(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	b.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("another uid"))
	err := b.DeleteOwned(b.Context(), "", b.get("a"))
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Kind != "ConfigMap" || failed.Namespace != "ns" || failed.Name != "a" || !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
}

// The records of a namespace are deleted for all owners.
func TestForgetNamespace(t *testing.T) {
	a := newTestApplier(t)
	m := &a.records
	at := func(namespace, name string) Key {
		return Key{configMapKind, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for _, owner := range []types.UID{"one", "two"} {
		for _, namespace := range []string{"gone", "stays"} {
			m.Store(recordKey{owner, at(namespace, "a")}, record{time: time.Unix(1, 0)})
			m.Store(recordKey{owner, at(namespace, "b")}, record{time: time.Unix(1, 0)})
		}
	}
	a.ForgetNamespace("gone")
	for _, owner := range []types.UID{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			if _, known := a.records.get(owner, at("gone", name)); known {
				t.Errorf("%s of %s is remembered", name, owner)
			}
			if _, known := a.records.get(owner, at("stays", name)); !known {
				t.Errorf("%s of %s was forgotten", name, owner)
			}
		}
	}
}
