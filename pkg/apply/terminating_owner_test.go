package apply

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// terminateOwner deletes the owner with orphan propagation and removes its reference from the child like the garbage collector. The owner
// in testApplier keeps its earlier state, as in a stale cache.
func (b *testApplier) terminateOwner(child string) {
	b.Helper()
	live := b.get("owner")
	live.Finalizers = []string{metav1.FinalizerOrphanDependents}
	b.must(b.server.Update(b.Context(), live))
	b.must(b.server.Delete(b.Context(), live))
	b.strip(child)
}

func (b *testApplier) strip(child string) {
	b.Helper()
	object := b.get(child)
	object.OwnerReferences = nil
	b.must(b.server.Update(b.Context(), object, client.FieldOwner("garbage-collector")))
}

func TestApplyKeepsOrphanOfTerminatingOwner(t *testing.T) {
	for name, ownership := range map[string]Ownership{"controlled": Controlled, "owned": Owned} {
		for change, value := range map[string]string{"the same is wanted": "1", "something else is wanted": "2"} {
			t.Run(name+", "+change, func(t *testing.T) {
				b := newTestApplier(t)
				as := func(value string) Object {
					o := settings("a", value)
					o.Ownership = ownership
					return o
				}
				b.applies(blind, as("1"))
				b.terminateOwner("a")
				b.applies(looks, as(value))
				b.applies(looks, as(value)) // nothing is remembered of it
				if got := b.get("a"); len(got.OwnerReferences) > 0 || got.Data["key"] != "1" {
					t.Errorf("the object was written for a terminating owner: %v", got)
				}
			})
		}
	}
}

func TestApplyRestoresOwnerReference(t *testing.T) {
	b := newTestApplier(t)
	b.applies(blind, settings("a", "1"))
	b.strip("a")
	b.applies(both, settings("a", "2"))
	if got := b.get("a"); len(got.OwnerReferences) != 1 || got.Data["key"] != "2" {
		t.Errorf("not taken back: %v", got)
	}
	if b.seen["list"] != 1 {
		t.Errorf("requests: %v", b.seen)
	}
	b.applies(quiet, settings("a", "2"))
	if b.seen["list"] != 0 {
		t.Errorf("the owner is checked when nothing was lost: %v", b.seen)
	}
}

func TestApplyAddsNoReferenceToDeletedOwner(t *testing.T) {
	for name, owner := range map[string]*corev1.ConfigMap{
		"deleted": newOwnerObject("never-was", "x"), "replaced by another of the name": newOwnerObject("owner", "earlier-uid"),
		"in another namespace": {ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "owner", UID: "owner-uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.Labels = names.Labels("test") }))
			o := newOwner(owner, b.Client.Scheme())
			if leaves, err := b.ownerTerminating(t.Context(), o.GetNamespace(), o.reference()); err != nil || !leaves {
				t.Errorf("leaving %t, error %v", leaves, err)
			}
		})
	}
}

// A new owner with the finalizer of the component cannot be deleted before the component has deleted its Unowned objects.
func TestApplyTrustsItsFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizer string
		lists     int
	}{"its own": {"test/finalizer", 0}, "another": {"other/finalizer", 1}} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			b.Finalizer = "test/finalizer"
			b.owner.Finalizers = []string{tc.finalizer}
			unowned := settings("a", "1")
			unowned.Ownership = Unowned
			b.seen = map[string]int{}
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			if b.get("a"); b.seen["list"] != tc.lists {
				t.Errorf("requests: %v", b.seen)
			}
			b.must(b.server.Delete(t.Context(), b.get("a")))
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			if b.seen["list"] != tc.lists+1 {
				t.Errorf("the owner is not read before an object is created again: %v", b.seen)
			}
		})
	}
}

// The owner is read only to create an Unowned object, and never for a foreign object, which never had the reference.
func TestApplyReadsOwnerOnlyForLostReferences(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	data := settings("data", "1")
	data.Ownership = Unowned
	b.applies(blind, data)
	b.failing["list"] = errors.New("no")
	adopted := settings("a", "1")
	adopted.AdoptIf = func(*unstructured.Unstructured) bool { return true }
	b.applies(both, adopted)
	changed := settings("data", "2")
	changed.Ownership = Unowned
	b.applies(blind, changed)
}

func TestApplyFailsWhenOwnerCannotBeRead(t *testing.T) {
	b := newTestApplier(t)
	b.applies(blind, settings("a", "1"))
	b.strip("a")
	b.failing["list"] = errors.New("no")
	err := b.expect(looks, settings("a", "1"))
	if want := "applying ConfigMap ns/a: checking whether ConfigMap owner is being deleted: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	delete(b.failing, "list")
	b.applies(both, settings("a", "1"))
}

func TestPatchExistingSkipsTerminatingOwner(t *testing.T) {
	adopt := func(b *testApplier, live *corev1.ConfigMap) error {
		return b.PatchExisting(t.Context(), live, func() { live.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)} })
	}
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	b.must(adopt(b, b.get("a")))
	if refs := b.get("a").OwnerReferences; len(refs) != 1 || b.seen["list"] != 1 {
		t.Errorf("owners %v, requests %v", refs, b.seen)
	}
	b.must(adopt(b, b.get("a"))) // it has it already
	if b.seen["list"] != 1 {
		t.Errorf("requests %v", b.seen)
	}
	b.terminateOwner("a")
	b.must(adopt(b, b.get("a")))
	if refs := b.get("a").OwnerReferences; len(refs) != 0 {
		t.Errorf("owners %v", refs)
	}
	b.failing["list"] = errors.New("no")
	if failed, ok := errors.AsType[*Error](adopt(b, b.get("a"))); !ok || failed.Name != "a" {
		t.Errorf("got %v, want an error that names the object", failed)
	}
	live := b.get("a")
	err := b.PatchExisting(t.Context(), live, func() {
		live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Nothing", Name: "x", UID: "x"}}
	})
	if err == nil {
		t.Error("want an error for an owner of an unknown kind")
	}
}

// A stale cache may show an owner that was deleted or recreated. Unowned objects are not created for it; others are collected anyway.
func TestApplySkipsUnownedCreateForDeletedOwner(t *testing.T) {
	unowned := settings("a", "1")
	unowned.Ownership = Unowned
	for name, end := range map[string]func(b *testApplier){
		"deleted":     func(b *testApplier) { b.must(b.server.Delete(b.Context(), b.get("owner"))) },
		"terminating": func(b *testApplier) { b.terminateOwner("owner") },
		"replaced":    func(b *testApplier) { b.owner = newOwnerObject("owner", "another uid") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			end(b)
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			b.must(b.Create(t.Context(), b.owner, unowned))
			if b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil {
				t.Error("an object without an owner reference was created for a terminating owner, so nothing would delete it")
			}
			b.must(b.Apply(t.Context(), b.owner, Desired{settings("b", "1")}))
			b.get("b")
		})
	}
	b := newTestApplier(t)
	b.failing["list"] = errors.New("not now")
	if b.Apply(t.Context(), b.owner, Desired{unowned}) == nil || b.Create(t.Context(), b.owner, unowned) == nil {
		t.Error("want errors while the existence of the owner is unknown")
	}
	delete(b.failing, "list")
	b.seen = map[string]int{}
	second := unowned
	second.Config = settings("second", "1").Config
	b.must(b.Apply(t.Context(), b.owner, Desired{unowned, second}))
	b.get("a")
	if b.get("second"); b.seen["list"] != 1 {
		t.Errorf("one look at the owner is enough for all that one call creates: %v", b.seen)
	}
	inside := unowned
	b.seen = map[string]int{}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns-uid"}}
	inside.Config = settings("c", "1").Config
	b.must(b.Apply(t.Context(), namespace, Desired{inside}))
	if b.get("c"); b.seen["list"] != 0 {
		t.Errorf("a namespace takes along what is in it, and needs no look: %v", b.seen)
	}
}

// An object of a deleted owner is collected, and must not be recreated by each event of its deletion.
func TestApplySkipsRecreateForDeletedOwner(t *testing.T) {
	exists := func(b *testApplier) bool {
		return b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil
	}
	b := newTestApplier(t)
	b.applies(blind, settings("a", "1"))
	b.must(b.server.Delete(t.Context(), b.get("a")))
	b.applies(both, settings("a", "1"))
	if b.seen["list"] != 1 {
		t.Errorf("one look at the owner, since the object was there before: %v", b.seen)
	}
	b.must(b.server.Delete(t.Context(), b.get("owner")))
	b.must(b.server.Delete(t.Context(), b.get("a")))
	for range 2 {
		if b.applies(looks, settings("a", "1")); exists(b) {
			t.Error("the object was recreated for a terminating owner")
		}
	}
}

// After a restart there are no records, and the caches may be stale.
func TestApplyReadsOwnerCreatedBeforeStart(t *testing.T) {
	for name, tc := range map[string]struct {
		age         time.Duration
		gone, wrote bool
		lists       int
	}{
		"older": {time.Hour, false, true, 1}, "older and gone": {time.Hour, true, false, 1}, "younger": {-time.Second, false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			b.owner.CreationTimestamp = metav1.NewTime(b.clock.Now().Add(-tc.age))
			if tc.gone {
				b.must(b.server.Delete(t.Context(), b.get("owner")))
			}
			b.must(b.Apply(t.Context(), b.owner, Desired{settings("a", "1"), settings("b", "1")}))
			if lists := b.seen["list"]; lists != tc.lists {
				t.Errorf("%d looks at the owner, want %d", lists, tc.lists)
			}
			b.must(b.Create(t.Context(), b.owner, settings("c", "1")))
			for _, object := range []string{"a", "b", "c"} {
				found := b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: object}, &corev1.ConfigMap{}) == nil
				if found != tc.wrote {
					t.Errorf("%s exists: %t, want %t", object, found, tc.wrote)
				}
			}
		})
	}
}
