package apply

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// terminateOwner deletes the owner with orphan propagation and removes the owner references of the child, as the garbage collector does.
// The owner in testApplier keeps its earlier state, as in a stale cache.
func (a *testApplier) terminateOwner(child string) {
	a.Helper()
	live := a.get("owner")
	live.Finalizers = []string{metav1.FinalizerOrphanDependents}
	a.must(a.server.Update(a.Context(), live))
	a.must(a.server.Delete(a.Context(), live))
	a.removeOwnerReferences(child)
}

func (a *testApplier) removeOwnerReferences(child string) {
	a.Helper()
	object := a.get(child)
	object.OwnerReferences = nil
	a.must(a.server.Update(a.Context(), object, client.FieldOwner("garbage-collector")))
}

func TestApplyKeepsOrphanOfTerminatingOwner(t *testing.T) {
	for name, ownership := range map[string]Ownership{"controlled": Controlled, "owned": Owned} {
		for change, value := range map[string]string{"unchanged": "1", "changed": "2"} {
			t.Run(name+", "+change, func(t *testing.T) {
				a := newTestApplier(t)
				desired := func(value string) Object {
					o := newConfigMap("a", value)
					o.Ownership = ownership
					return o
				}
				a.expectApply(oneApply, desired("1"))
				a.terminateOwner("a")
				a.expectApply(oneRead, desired(value))
				a.expectApply(oneRead, desired(value)) // no record was stored
				if got := a.get("a"); len(got.OwnerReferences) > 0 || got.Data["key"] != "1" {
					t.Errorf("the object was written for a terminating owner: %v", got)
				}
			})
		}
	}
}

func TestApplyRestoresOwnerReference(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.removeOwnerReferences("a")
	a.expectApply(readAndApply, newConfigMap("a", "2"))
	if got := a.get("a"); len(got.OwnerReferences) != 1 || got.Data["key"] != "2" {
		t.Errorf("the owner reference was not restored: %v", got)
	}
	if a.seen["list"] != 1 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
	a.expectApply(noRequests, newConfigMap("a", "2"))
	if a.seen["list"] != 0 {
		t.Errorf("the owner was read, although its reference exists: %v", a.seen)
	}
}

func TestDeletedOwnerCountsAsTerminating(t *testing.T) {
	for name, owner := range map[string]*corev1.ConfigMap{
		"deleted": newOwnerObject("deleted", "x"), "recreated with the same name": newOwnerObject("owner", "earlier-uid"),
		"in another namespace": {ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "owner", UID: "owner-uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			o := newOwner(owner, a.Client.Scheme())
			if terminating, err := a.ownerTerminating(t.Context(), o.GetNamespace(), o.reference()); err != nil || !terminating {
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
			a := newTestApplier(t)
			a.Finalizer = "test/finalizer"
			a.owner.Finalizers = []string{tc.finalizer}
			unowned := newConfigMap("a", "1")
			unowned.Ownership = Unowned
			a.seen = map[string]int{}
			a.must(a.Apply(t.Context(), a.owner, Desired{unowned}))
			if a.get("a"); a.seen["list"] != tc.lists {
				t.Errorf("unexpected requests: %v", a.seen)
			}
			a.must(a.server.Delete(t.Context(), a.get("a")))
			a.must(a.Apply(t.Context(), a.owner, Desired{unowned}))
			if a.seen["list"] != tc.lists+1 {
				t.Errorf("the owner was not read before the object was recreated: %v", a.seen)
			}
		})
	}
}

// The owner is not read to adopt an object, which never had the reference, or to update an Unowned one.
func TestApplyDoesNotReadOwnerToAdoptOrUpdate(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	data := newConfigMap("data", "1")
	data.Ownership = Unowned
	a.expectApply(oneApply, data)
	a.failing["list"] = errors.New("no")
	adopted := newConfigMap("a", "1")
	adopted.AdoptIf = func(*unstructured.Unstructured) bool { return true }
	a.expectApply(readAndApply, adopted)
	changed := newConfigMap("data", "2")
	changed.Ownership = Unowned
	a.expectApply(oneApply, changed)
}

func TestApplyFailsWhenOwnerCannotBeRead(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.removeOwnerReferences("a")
	a.failing["list"] = errors.New("no")
	err := a.tryApply(oneRead, newConfigMap("a", "1"))
	if want := "applying ConfigMap ns/a: checking whether ConfigMap owner is being deleted: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	delete(a.failing, "list")
	a.expectApply(readAndApply, newConfigMap("a", "1"))
}

func TestPatchExistingSkipsTerminatingOwner(t *testing.T) {
	adopt := func(a *testApplier, live *corev1.ConfigMap) error {
		return a.PatchExisting(t.Context(), live, func() { live.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)} })
	}
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	a.must(adopt(a, a.get("a")))
	if refs := a.get("a").OwnerReferences; len(refs) != 1 || a.seen["list"] != 1 {
		t.Errorf("unexpected owners %v or requests %v", refs, a.seen)
	}
	a.must(adopt(a, a.get("a"))) // it already has the reference
	if a.seen["list"] != 1 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
	a.terminateOwner("a")
	a.must(adopt(a, a.get("a")))
	if refs := a.get("a").OwnerReferences; len(refs) != 0 {
		t.Errorf("unexpected owners %v", refs)
	}
	a.failing["list"] = errors.New("no")
	if failed, ok := errors.AsType[*Error](adopt(a, a.get("a"))); !ok || failed.Name != "a" {
		t.Errorf("got %v, want an error that names the object", failed)
	}
	live := a.get("a")
	err := a.PatchExisting(t.Context(), live, func() {
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
	for name, deleteOwner := range map[string]func(a *testApplier){
		"deleted":     func(a *testApplier) { a.must(a.server.Delete(a.Context(), a.get("owner"))) },
		"terminating": func(a *testApplier) { a.terminateOwner("owner") },
		"recreated":   func(a *testApplier) { a.owner = newOwnerObject("owner", "another uid") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			deleteOwner(a)
			a.must(a.Apply(t.Context(), a.owner, Desired{unowned}))
			a.must(a.Create(t.Context(), a.owner, unowned))
			if a.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil {
				t.Error("an object without an owner reference was created for a deleted owner, so nothing would delete it")
			}
			a.must(a.Apply(t.Context(), a.owner, Desired{newConfigMap("b", "1")}))
			a.get("b")
		})
	}
	a := newTestApplier(t)
	a.failing["list"] = errors.New("unreachable")
	if a.Apply(t.Context(), a.owner, Desired{unowned}) == nil || a.Create(t.Context(), a.owner, unowned) == nil {
		t.Error("want errors while the existence of the owner is unknown")
	}
	delete(a.failing, "list")
	a.seen = map[string]int{}
	second := unowned
	second.Config = newConfigMap("second", "1").Config
	a.must(a.Apply(t.Context(), a.owner, Desired{unowned, second}))
	a.get("a")
	if a.get("second"); a.seen["list"] != 1 {
		t.Errorf("the owner was read more than once for the objects of one call: %v", a.seen)
	}
	inNamespace := unowned
	a.seen = map[string]int{}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns-uid"}}
	inNamespace.Config = newConfigMap("c", "1").Config
	a.must(a.Apply(t.Context(), namespace, Desired{inNamespace}))
	if a.get("c"); a.seen["list"] != 0 {
		t.Errorf("the owner was read, although deleting a namespace deletes its objects: %v", a.seen)
	}
}

// An object of a deleted owner is garbage-collected. Events of the deletion must not recreate it.
func TestApplySkipsRecreateForDeletedOwner(t *testing.T) {
	exists := func(a *testApplier) bool {
		return a.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}) == nil
	}
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.must(a.server.Delete(t.Context(), a.get("a")))
	a.expectApply(readAndApply, newConfigMap("a", "1"))
	if a.seen["list"] != 1 {
		t.Errorf("the owner was not read before the object was recreated: %v", a.seen)
	}
	a.must(a.server.Delete(t.Context(), a.get("owner")))
	a.must(a.server.Delete(t.Context(), a.get("a")))
	for range 2 {
		if a.expectApply(oneRead, newConfigMap("a", "1")); exists(a) {
			t.Error("the object was recreated for a deleted owner")
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
			a := newTestApplier(t)
			a.owner.CreationTimestamp = metav1.NewTime(a.clock.Now().Add(-tc.age))
			if tc.deleted {
				a.must(a.server.Delete(t.Context(), a.get("owner")))
			}
			a.must(a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "1"), newConfigMap("b", "1")}))
			if lists := a.seen["list"]; lists != tc.lists {
				t.Errorf("the owner was read %d times, want %d", lists, tc.lists)
			}
			a.must(a.Create(t.Context(), a.owner, newConfigMap("c", "1")))
			for _, object := range []string{"a", "b", "c"} {
				found := a.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: object}, &corev1.ConfigMap{}) == nil
				if found != tc.written {
					t.Errorf("%s exists: %t, want %t", object, found, tc.written)
				}
			}
		})
	}
}
