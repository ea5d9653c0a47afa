package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestCreateAsIsAddsOnlyAControllerReference(t *testing.T) {
	b := newTestApplier(t)
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "friend-uid"}
	object := userObject(func(u *unstructured.Unstructured) { u.SetOwnerReferences([]metav1.OwnerReference{other}) })
	b.must(b.CreateAsIs(t.Context(), b.owner, object))
	live := b.get("a")
	if len(live.Labels) != 0 || live.Data["key"] != "1" || !metav1.IsControlledBy(live, b.owner) || len(live.OwnerReferences) != 2 {
		t.Errorf("created: %+v", live)
	}
	if ref := metav1.GetControllerOf(live); ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
		t.Errorf("reference: %+v", ref)
	}
	if err := b.CreateAsIs(t.Context(), b.owner, userObject()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second time: %v", err)
	}
}

func TestCreateAsIsFailsForOtherController(t *testing.T) {
	b := newTestApplier(t)
	for name, object := range map[string]*unstructured.Unstructured{
		"another namespace": userObject(func(u *unstructured.Unstructured) { u.SetNamespace("elsewhere") }),
		"another controller": userObject(func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "other", Controller: new(true)}})
		}),
	} {
		if err := b.CreateAsIs(t.Context(), b.owner, object); !errors.Is(err, ErrCannotOwn) {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
	if b.exists("a") {
		t.Error("the object was created")
	}
}

func TestDeleteHasUIDPrecondition(t *testing.T) {
	b := newTestApplier(t)
	b.must(b.CreateAsIs(t.Context(), b.owner, userObject(func(u *unstructured.Unstructured) { u.SetUID("first") })))
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	b.must(b.Delete(t.Context(), configMapKind, name, b.get("a").UID, client.GracePeriodSeconds(0)))
	if b.exists("a") {
		t.Error("the object was not deleted")
	}
	if err := b.Delete(t.Context(), configMapKind, name, "first"); !apierrors.IsNotFound(err) {
		t.Errorf("what is gone: %v", err)
	}
}

func TestAdoptAsIsAddsOnlyAControllerReference(t *testing.T) {
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "friend-uid"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "other", Controller: new(true)}
	for name, tc := range map[string]struct {
		live func(*unstructured.Unstructured)
		want error
	}{
		"equal":             {func(*unstructured.Unstructured) {}, nil},
		"with additions":    {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"of": "a-backup"}) }, nil},
		"of a friend":       {func(u *unstructured.Unstructured) { u.SetOwnerReferences([]metav1.OwnerReference{friend}) }, nil},
		"another value":     {func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"key": "2"} }, ErrNotAdoptable},
		"without the value": {func(u *unstructured.Unstructured) { delete(u.Object, "data") }, ErrNotAdoptable},
		"controlled":        {func(u *unstructured.Unstructured) { u.SetOwnerReferences([]metav1.OwnerReference{foreign}) }, ErrNotAdoptable},
		"leaving": {func(u *unstructured.Unstructured) {
			u.SetFinalizers([]string{"example.com/hold"})
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1700000000, 0)})
		}, ErrNotAdoptable},
	} {
		t.Run(name, func(t *testing.T) {
			live := userObject(tc.live)
			live.SetUID("restored")
			b := newTestApplier(t, live)
			before := b.get("a")
			object := userObject(func(u *unstructured.Unstructured) { u.SetGenerateName("a-") })
			if err := b.AdoptAsIs(t.Context(), b.owner, object); !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			after := b.get("a")
			if metav1.IsControlledBy(after, b.owner) != (tc.want == nil) || tc.want == nil && object.GetUID() != "restored" {
				t.Errorf("adopted: %+v", after)
			}
			if tc.want == nil && len(after.OwnerReferences) != len(before.OwnerReferences)+1 {
				t.Errorf("references %+v", after.OwnerReferences)
			}
			after.OwnerReferences, after.ResourceVersion, after.ManagedFields = before.OwnerReferences, before.ResourceVersion, before.ManagedFields
			if !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("more was written: %+v", after)
			}
		})
	}
}

// concurrentWriter is a client that modifies the object before each patch.
type concurrentWriter struct {
	client.Client

	change func()
}

func (c concurrentWriter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.change()
	return c.Client.Patch(ctx, o, p, opts...)
}

func TestAdoptAsIsConflictsWithConcurrentWrite(t *testing.T) {
	b := newTestApplier(t, userObject())
	b.Client = concurrentWriter{b.Client, func() {
		b.must(b.server.Update(t.Context(), userObject(func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"new": "1"}) })))
	}}
	if err := b.AdoptAsIs(t.Context(), b.owner, userObject()); !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
	if metav1.IsControlledBy(b.get("a"), b.owner) {
		t.Error("the foreign object was adopted")
	}
}
