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
	a := newTestApplier(t)
	object := userObject()
	a.must(a.CreateAsIs(t.Context(), object))
	live := a.get("a")
	if len(live.Labels) != 0 || live.Data["key"] != "1" || len(live.OwnerReferences) != 0 || object.GetResourceVersion() != live.ResourceVersion {
		t.Errorf("unexpected object: %+v", live)
	}
	if err := a.CreateAsIs(t.Context(), userObject()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v from the second call, want AlreadyExists", err)
	}
}

func TestDeleteHasUIDPrecondition(t *testing.T) {
	a := newTestApplier(t)
	a.must(a.CreateAsIs(t.Context(), userObject(func(u *unstructured.Unstructured) { u.SetUID("first") })))
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	if err := a.Delete(t.Context(), configMapKind, name, "second"); !apierrors.IsConflict(err) || !a.exists("a") {
		t.Errorf("got error %v with another UID, object exists: %v, want Conflict and an existing object", err, a.exists("a"))
	}
	a.must(a.Delete(t.Context(), configMapKind, name, a.get("a").UID, client.GracePeriodSeconds(0)))
	if a.exists("a") {
		t.Error("the object was not deleted")
	}
	if err := a.Delete(t.Context(), configMapKind, name, "first"); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for a deleted object, want NotFound", err)
	}
}
