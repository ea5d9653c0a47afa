package apply

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Successful writes are counted in their context.
func TestCount(t *testing.T) {
	b := newTestApplier(t)
	counted := func(what string, created, updated, removed int, do func(context.Context)) {
		t.Helper()
		ctx, changes := RecordChanges(t.Context())
		do(ctx)
		if changes.Created != created || changes.Updated != updated || changes.Deleted != removed {
			t.Errorf("%s: created %d, updated %d, removed %d", what, changes.Created, changes.Updated, changes.Deleted)
		}
	}
	counted("two new objects", 2, 0, 0, func(ctx context.Context) {
		b.must(b.Apply(ctx, b.owner, Desired{settings("a", "1"), settings("b", "1")}))
	})
	counted("one changes", 0, 1, 0, func(ctx context.Context) {
		b.must(b.Apply(ctx, b.owner, Desired{settings("a", "2"), settings("b", "1")}))
	})
	counted("nothing changes", 0, 0, 0, func(ctx context.Context) {
		b.must(b.Apply(ctx, b.owner, Desired{settings("a", "2"), settings("b", "1")}))
	})
	counted("one that is made once", 1, 0, 0, func(ctx context.Context) {
		b.must(b.Create(ctx, b.owner, settings("c", "1")))
		b.must(b.Create(ctx, b.owner, settings("c", "1")))
	})
	counted("one that is adjusted", 0, 1, 0, func(ctx context.Context) {
		live := b.get("c")
		b.must(b.PatchExisting(ctx, live, func() { live.Data["key"] = "2" }))
		b.must(b.PatchExisting(ctx, live, func() {}))
	})
	counted("two that go", 0, 0, 2, func(ctx context.Context) {
		b.must(b.DeleteOwned(ctx, b.owner.UID, b.get("a")))
		b.must(b.DeleteOwned(ctx, b.owner.UID, b.get("b"), Foreground))
	})
	b.must(client.IgnoreNotFound(b.DeleteOwned(t.Context(), b.owner.UID, b.get("c")))) // without counting
}
