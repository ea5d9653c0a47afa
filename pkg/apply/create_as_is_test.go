package apply

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func userObject(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "1"}}}
	u.SetGroupVersionKind(configMapKind)
	u.SetNamespace("ns")
	u.SetName("a")
	for _, change := range changes {
		change(u)
	}
	return u
}

func TestCreateAsIsAddsNothing(t *testing.T) {
	b := newTestApplier(t)
	object := userObject()
	b.must(b.CreateAsIs(t.Context(), object))
	live := b.get("a")
	if len(live.Labels) != 0 || live.Data["key"] != "1" || len(live.OwnerReferences) != 0 || object.GetResourceVersion() != live.ResourceVersion {
		t.Errorf("unexpected object: %+v", live)
	}
	if err := b.CreateAsIs(t.Context(), userObject()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v from the second call, want AlreadyExists", err)
	}
}

func TestDeleteHasUIDPrecondition(t *testing.T) {
	b := newTestApplier(t)
	b.must(b.CreateAsIs(t.Context(), userObject(func(u *unstructured.Unstructured) { u.SetUID("first") })))
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	b.must(b.Delete(t.Context(), configMapKind, name, b.get("a").UID, client.GracePeriodSeconds(0)))
	if b.exists("a") {
		t.Error("the object was not deleted")
	}
	if err := b.Delete(t.Context(), configMapKind, name, "first"); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for a deleted object, want NotFound", err)
	}
}
