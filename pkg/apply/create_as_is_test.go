package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func described(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "1"}}}
	u.SetGroupVersionKind(configMapKind)
	u.SetNamespace("ns")
	u.SetName("a")
	for _, change := range changes {
		change(u)
	}
	return u
}

func TestCreateAsIsAddsOnlyAControllerReference(t *testing.T) {
	b := newBench(t)
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "friend-uid"}
	object := described(func(u *unstructured.Unstructured) { u.SetOwnerReferences([]metav1.OwnerReference{other}) })
	b.must(b.CreateAsIs(t.Context(), b.owner, object))
	live := b.get("a")
	if len(live.Labels) != 0 || live.Data["key"] != "1" || !metav1.IsControlledBy(live, b.owner) || len(live.OwnerReferences) != 2 {
		t.Errorf("created: %+v", live)
	}
	if ref := metav1.GetControllerOf(live); ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
		t.Errorf("reference: %+v", ref)
	}
	if err := b.CreateAsIs(t.Context(), b.owner, described()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second time: %v", err)
	}
}

func TestCreateAsIsRefusesWhatItCannotOwn(t *testing.T) {
	b := newBench(t)
	for name, object := range map[string]*unstructured.Unstructured{
		"another namespace": described(func(u *unstructured.Unstructured) { u.SetNamespace("elsewhere") }),
		"another controller": described(func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "other", Controller: new(true)}})
		}),
	} {
		if err := b.CreateAsIs(t.Context(), b.owner, object); !errors.Is(err, ErrCannotOwn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b.exists("a") {
		t.Error("it was created all the same")
	}
}

func TestDeleteIsBoundToTheUID(t *testing.T) {
	b := newBench(t)
	b.must(b.CreateAsIs(t.Context(), b.owner, described(func(u *unstructured.Unstructured) { u.SetUID("first") })))
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	b.must(b.Delete(t.Context(), configMapKind, name, b.get("a").UID, new(int64(0))))
	if b.exists("a") {
		t.Error("it still exists")
	}
	if err := b.Delete(t.Context(), configMapKind, name, "first", nil); !apierrors.IsNotFound(err) {
		t.Errorf("what is gone: %v", err)
	}
}
