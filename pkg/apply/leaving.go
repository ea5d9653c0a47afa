package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whoever deletes an owner and orphans what it owns has the garbage collector take the references away while the owner is
// still there. The caches of owner and child know nothing of each other: the child may be seen without its reference before
// the owner is seen to go. Giving the reference back then would have the child collected a moment later. An owner that goes is
// marked before the first reference is taken, so whoever sees the child without it and asks the API server knows for sure.

// leaving says whether the owner is being deleted, or is gone. It is asked, past the cache, only before an object is created or
// gets a reference to it, so it costs nothing at rest. It lists by name, because that takes no right
// that whoever watches the kind does not have.
func (a *Applier) leaving(ctx context.Context, o owner) (bool, error) {
	list := metadataList(o.GroupVersionKind)
	if err := a.Live.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingFields{metav1.ObjectNameField: o.Name}); err != nil {
		return false, fmt.Errorf("looking whether %s %s is being deleted: %w", o.Kind, o.Name, err)
	}
	i := slices.IndexFunc(list.Items, func(item metav1.PartialObjectMetadata) bool { return item.UID == o.uid })
	return i < 0 || list.Items[i].DeletionTimestamp != nil, nil
}

// released says whether an object of ours has lost the reference to its owner and must not get it back, because that one goes.
func (a *Applier) released(ctx context.Context, o owner, c child, live metav1.Object) (bool, error) {
	if c.Ownership == Unowned || tied(live, o, c.Ownership) || !a.labelled(live) {
		return false, nil
	}
	return a.leaving(ctx, o)
}

// abandoned says whether an object that is to be created would stay behind for ever: it will not be collected with its owner, and
// that one is gone or going, though a cache that was filled with a list of the past still shows it. While the owner is there its
// finalizer lets it go only after whatever is created now has been removed.
func (a *Applier) abandoned(ctx context.Context, o owner, c child) (bool, error) {
	if c.Ownership != Unowned || o.GroupKind() == namespaceKind && o.Name == c.key.Namespace {
		return false, nil
	}
	if o.left != nil {
		return o.left()
	}
	return a.leaving(ctx, o)
}

// namespaceKind is an owner that takes with it whatever is inside.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// gainsLeaving says whether an object gets a reference to an owner that goes.
func (a *Applier) gainsLeaving(ctx context.Context, before, after metav1.Object) (bool, error) {
	for _, ref := range after.GetOwnerReferences() {
		if slices.ContainsFunc(before.GetOwnerReferences(), func(had metav1.OwnerReference) bool { return had.UID == ref.UID }) {
			continue
		}
		o := owner{
			GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), NamespacedName: types.NamespacedName{Name: ref.Name}, uid: ref.UID,
		}
		namespaced, err := a.Client.IsObjectNamespaced(metadata(key{GroupVersionKind: o.GroupVersionKind}))
		if err != nil {
			return false, fmt.Errorf("finding the scope of %s: %w", o.Kind, err)
		}
		if namespaced {
			o.Namespace = after.GetNamespace()
		}
		if leaves, err := a.leaving(ctx, o); err != nil || leaves {
			return leaves, err
		}
	}
	return false, nil
}
