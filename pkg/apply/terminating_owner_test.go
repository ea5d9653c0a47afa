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

// terminateOwner deletes the owner with orphan propagation and removes its reference from the child, as the garbage collector does. The
// owner in testApplier keeps its earlier state, as in a stale cache.
func (b *testApplier) terminateOwner(child string) {
	b.Helper()
	live := b.get("owner")
	live.Finalizers = []string{metav1.FinalizerOrphanDependents}
	b.must(b.server.Update(b.Context(), live))
	b.must(b.server.Delete(b.Context(), live))
	b.removeOwnerReferences(child)
}

func (b *testApplier) removeOwnerReferences(child string) {
	b.Helper()
	object := b.get(child)
	object.OwnerReferences = nil
	b.must(b.server.Update(b.Context(), object, client.FieldOwner("garbage-collector")))
}

func TestApplyKeepsOrphanOfTerminatingOwner(t *testing.T) {
	for name, ownership := range map[string]Ownership{"controlled": Controlled, "owned": Owned} {
		for change, value := range map[string]string{"unchanged": "1", "changed": "2"} {
			t.Run(name+", "+change, func(t *testing.T) {
				b := newTestApplier(t)
				desired := func(value string) Object {
					o := newConfigMap("a", value)
					o.Ownership = ownership
					return o
				}
				b.expectApply(oneApply, desired("1"))
				b.terminateOwner("a")
				b.expectApply(oneRead, desired(value))
				b.expectApply(oneRead, desired(value)) // no record was stored
				if got := b.get("a"); len(got.OwnerReferences) > 0 || got.Data["key"] != "1" {
					t.Errorf("the object was written for a terminating owner: %v", got)
				}
			})
		}
	}
}

func TestApplyRestoresOwnerReference(t *testing.T) {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	b.removeOwnerReferences("a")
	b.expectApply(readAndApply, newConfigMap("a", "2"))
	if got := b.get("a"); len(got.OwnerReferences) != 1 || got.Data["key"] != "2" {
		t.Errorf("the owner reference was not restored: %v", got)
	}
	if b.seen["list"] != 1 {
		t.Errorf("unexpected requests: %v", b.seen)
	}
	b.expectApply(noRequests, newConfigMap("a", "2"))
	if b.seen["list"] != 0 {
		t.Errorf("the owner was read, although its reference exists: %v", b.seen)
	}
}

func TestApplyAddsNoReferenceToDeletedOwner(t *testing.T) {
	for name, owner := range map[string]*corev1.ConfigMap{
		"deleted": newOwnerObject("deleted", "x"), "recreated with the same name": newOwnerObject("owner", "earlier-uid"),
		"in another namespace": {ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "owner", UID: "owner-uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.Labels = names.Labels("test") }))
			o := newOwner(owner, b.Client.Scheme())
			if terminating, err := b.ownerTerminating(t.Context(), o.GetNamespace(), o.reference()); err != nil || !terminating {
				t.Errorf("ownerTerminating returned %t, error %v, want true", terminating, err)
			}
		})
	}
}

// A new owner with the finalizer of the component cannot be deleted before the component has deleted its Unowned objects.
func TestApplyTrustsItsFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizer string
		lists     int
	}{"own finalizer": {"test/finalizer", 0}, "foreign finalizer": {"other/finalizer", 1}} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			b.Finalizer = "test/finalizer"
			b.owner.Finalizers = []string{tc.finalizer}
			unowned := newConfigMap("a", "1")
			unowned.Ownership = Unowned
			b.seen = map[string]int{}
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			if b.get("a"); b.seen["list"] != tc.lists {
				t.Errorf("unexpected requests: %v", b.seen)
			}
			b.must(b.server.Delete(t.Context(), b.get("a")))
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			if b.seen["list"] != tc.lists+1 {
				t.Errorf("the owner was not read before the object was recreated: %v", b.seen)
			}
		})
	}
}

// The owner is read only to create an Unowned object, and never for a foreign object, which never had the reference.
func TestApplyReadsOwnerOnlyForLostReferences(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	data := newConfigMap("data", "1")
	data.Ownership = Unowned
	b.expectApply(oneApply, data)
	b.failing["list"] = errors.New("no")
	adopted := newConfigMap("a", "1")
	adopted.AdoptIf = func(*unstructured.Unstructured) bool { return true }
	b.expectApply(readAndApply, adopted)
	changed := newConfigMap("data", "2")
	changed.Ownership = Unowned
	b.expectApply(oneApply, changed)
}

func TestApplyFailsWhenOwnerCannotBeRead(t *testing.T) {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	b.removeOwnerReferences("a")
	b.failing["list"] = errors.New("no")
	err := b.tryApply(oneRead, newConfigMap("a", "1"))
	if want := "applying ConfigMap ns/a: checking whether ConfigMap owner is being deleted: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	delete(b.failing, "list")
	b.expectApply(readAndApply, newConfigMap("a", "1"))
}

func TestPatchExistingSkipsTerminatingOwner(t *testing.T) {
	adopt := func(b *testApplier, live *corev1.ConfigMap) error {
		return b.PatchExisting(t.Context(), live, func() { live.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)} })
	}
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	b.must(adopt(b, b.get("a")))
	if refs := b.get("a").OwnerReferences; len(refs) != 1 || b.seen["list"] != 1 {
		t.Errorf("unexpected owners %v or requests %v", refs, b.seen)
	}
	b.must(adopt(b, b.get("a"))) // it already has the reference
	if b.seen["list"] != 1 {
		t.Errorf("unexpected requests: %v", b.seen)
	}
	b.terminateOwner("a")
	b.must(adopt(b, b.get("a")))
	if refs := b.get("a").OwnerReferences; len(refs) != 0 {
		t.Errorf("unexpected owners %v", refs)
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

// A stale cache may show an owner that was deleted or recreated. Unowned objects are not created for it. Other objects are garbage-collected.
func TestApplySkipsUnownedCreateForDeletedOwner(t *testing.T) {
	unowned := newConfigMap("a", "1")
	unowned.Ownership = Unowned
	for name, deleteOwner := range map[string]func(b *testApplier){
		"deleted":     func(b *testApplier) { b.must(b.server.Delete(b.Context(), b.get("owner"))) },
		"terminating": func(b *testApplier) { b.terminateOwner("owner") },
		"replaced":    func(b *testApplier) { b.owner = newOwnerObject("owner", "another uid") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			deleteOwner(b)
			b.must(b.Apply(t.Context(), b.owner, Desired{unowned}))
			b.must(b.Create(t.Context(), b.owner, unowned))
			if b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil {
				t.Error("an object without an owner reference was created for a terminating owner, so nothing would delete it")
			}
			b.must(b.Apply(t.Context(), b.owner, Desired{newConfigMap("b", "1")}))
			b.get("b")
		})
	}
	b := newTestApplier(t)
	b.failing["list"] = errors.New("unreachable")
	if b.Apply(t.Context(), b.owner, Desired{unowned}) == nil || b.Create(t.Context(), b.owner, unowned) == nil {
		t.Error("want errors while the existence of the owner is unknown")
	}
	delete(b.failing, "list")
	b.seen = map[string]int{}
	second := unowned
	second.Config = newConfigMap("second", "1").Config
	b.must(b.Apply(t.Context(), b.owner, Desired{unowned, second}))
	b.get("a")
	if b.get("second"); b.seen["list"] != 1 {
		t.Errorf("the owner was read more than once for the objects of one call: %v", b.seen)
	}
	inNamespace := unowned
	b.seen = map[string]int{}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns-uid"}}
	inNamespace.Config = newConfigMap("c", "1").Config
	b.must(b.Apply(t.Context(), namespace, Desired{inNamespace}))
	if b.get("c"); b.seen["list"] != 0 {
		t.Errorf("the owner was read, although deleting a namespace deletes its objects: %v", b.seen)
	}
}

// An object of a deleted owner is garbage-collected. Events of the deletion must not recreate it.
func TestApplySkipsRecreateForDeletedOwner(t *testing.T) {
	exists := func(b *testApplier) bool {
		return b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil
	}
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	b.must(b.server.Delete(t.Context(), b.get("a")))
	b.expectApply(readAndApply, newConfigMap("a", "1"))
	if b.seen["list"] != 1 {
		t.Errorf("the owner was not read before the object was recreated: %v", b.seen)
	}
	b.must(b.server.Delete(t.Context(), b.get("owner")))
	b.must(b.server.Delete(t.Context(), b.get("a")))
	for range 2 {
		if b.expectApply(oneRead, newConfigMap("a", "1")); exists(b) {
			t.Error("the object was recreated for a terminating owner")
		}
	}
}

// After a restart there are no records, and the caches may be stale.
func TestApplyReadsOwnerCreatedBeforeStart(t *testing.T) {
	for name, tc := range map[string]struct {
		age              time.Duration
		deleted, written bool
		lists            int
	}{
		"older": {time.Hour, false, true, 1}, "older and deleted": {time.Hour, true, false, 1}, "younger": {-time.Second, false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			b.owner.CreationTimestamp = metav1.NewTime(b.clock.Now().Add(-tc.age))
			if tc.deleted {
				b.must(b.server.Delete(t.Context(), b.get("owner")))
			}
			b.must(b.Apply(t.Context(), b.owner, Desired{newConfigMap("a", "1"), newConfigMap("b", "1")}))
			if lists := b.seen["list"]; lists != tc.lists {
				t.Errorf("the owner was read %d times, want %d", lists, tc.lists)
			}
			b.must(b.Create(t.Context(), b.owner, newConfigMap("c", "1")))
			for _, object := range []string{"a", "b", "c"} {
				found := b.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: object}, &corev1.ConfigMap{}) == nil
				if found != tc.written {
					t.Errorf("%s exists: %t, want %t", object, found, tc.written)
				}
			}
		})
	}
}
