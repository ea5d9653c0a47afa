package apply

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Successful writes are counted in the changes of their context.
func TestRecordChanges(t *testing.T) {
	a := newTestApplier(t)
	expectChanges := func(name string, created, updated, deleted int, write func(context.Context)) {
		t.Helper()
		ctx, changes := RecordChanges(t.Context())
		write(ctx)
		if changes.Created != created || changes.Updated != updated || changes.Deleted != deleted {
			t.Errorf("%s: got %d created, %d updated and %d deleted, want %d, %d and %d", name, changes.Created, changes.Updated, changes.Deleted, created, updated, deleted)
		}
	}
	expectChanges("two new objects", 2, 0, 0, func(ctx context.Context) {
		a.must(a.Apply(ctx, a.owner, Desired{newConfigMap("a", "1"), newConfigMap("b", "1")}))
	})
	expectChanges("one changed object", 0, 1, 0, func(ctx context.Context) {
		a.must(a.Apply(ctx, a.owner, Desired{newConfigMap("a", "2"), newConfigMap("b", "1")}))
	})
	expectChanges("no change", 0, 0, 0, func(ctx context.Context) {
		a.must(a.Apply(ctx, a.owner, Desired{newConfigMap("a", "2"), newConfigMap("b", "1")}))
	})
	expectChanges("created once", 1, 0, 0, func(ctx context.Context) {
		a.must(a.Create(ctx, a.owner, newConfigMap("c", "1")))
		a.must(a.Create(ctx, a.owner, newConfigMap("c", "1")))
	})
	expectChanges("patched once", 0, 1, 0, func(ctx context.Context) {
		live := a.get("c")
		a.must(a.PatchExisting(ctx, live, func() { live.Data["key"] = "2" }))
		a.must(a.PatchExisting(ctx, live, func() {}))
	})
	expectChanges("two deleted objects", 0, 0, 2, func(ctx context.Context) {
		a.must(a.DeleteOwned(ctx, a.owner.UID, a.get("a")))
		a.must(a.DeleteOwned(ctx, a.owner.UID, a.get("b"), Foreground))
	})
	a.must(client.IgnoreNotFound(a.DeleteOwned(t.Context(), a.owner.UID, a.get("c")))) // a context without changes
}
