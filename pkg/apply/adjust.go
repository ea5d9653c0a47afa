package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Adjust changes a live object that is created once and never applied again, such as a volume claim whose spec is nearly all
// immutable: it sends what change did to live as a merge patch, and nothing when change did nothing. live must be the
// caller's own copy; it holds the server's answer afterwards. A write that has come in between is a conflict error, an
// object that is being deleted is left alone, and so is one that would get a reference to an owner that is. Errors are *Error.
func (a *Applier) Adjust(ctx context.Context, live client.Object, change func()) error {
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	before, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no API object", live)
	}
	change()
	if live.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(before, live) {
		a.skip(gvk.Kind)
		return nil
	}
	if leaving, err := a.gainsLeaving(ctx, before, live); err != nil || leaving {
		return key{gvk, client.ObjectKeyFromObject(live)}.failed(err)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	a.wrote(gvk.Kind, verbPatch)
	if err := a.Client.Patch(ctx, live, patch, client.FieldOwner(a.FieldOwner)); err != nil {
		return key{gvk, client.ObjectKeyFromObject(live)}.failed(err)
	}
	count(ctx, updated)
	return nil
}
