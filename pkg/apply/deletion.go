package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a deletion may take before it is worth a word: pods have grace periods, and dependents go first.
const patience = time.Minute

// DeletingError says that an object is being deleted, and will be made again when it is gone.
type DeletingError struct {
	Kind, Namespace, Name string
	// Since is when its deletion began, Finalizers are what holds it.
	Since      time.Time
	Finalizers []string
	// Stuck: that was more than a minute ago, so it belongs into a condition. Otherwise its end is not seen in the cache, because it
	// does not bear our labels, and trying again in a moment is all there is to do.
	Stuck bool
}

// Deleting describes the deletion of an object that has a deletion timestamp.
func Deleting(kind string, object metav1.Object) *DeletingError {
	return &DeletingError{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Since: object.GetDeletionTimestamp().Time, Finalizers: object.GetFinalizers(),
	}
}

// Error implements error.
func (e *DeletingError) Error() string {
	text := title(e.Kind, e.Namespace, e.Name) + " is being deleted since " + e.Since.UTC().Format(time.RFC3339)
	if len(e.Finalizers) > 0 {
		text += ", held by finalizers " + strings.Join(e.Finalizers, ", ") + " until their controllers remove them,"
	}
	return text + " and will be made again when it is gone"
}

// awaitEnd waits for the end of an object, without an error while that takes no longer than usual and is an event.
func (a *Applier) awaitEnd(ctx context.Context, o owner, c child, object metav1.Object) error {
	a.memory.drop(o.uid, c.key)
	err := Deleting(c.key.Kind, object)
	left := patience - a.Clock.Since(err.Since)
	if err.Stuck = left <= 0; err.Stuck || !a.labelled(object) {
		return err
	}
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.within(left)
	}
	return nil
}

// visit is when an owner is to be looked at again.
type visit struct {
	mu   sync.Mutex
	left time.Duration
}

type visitKey struct{}

// WithRequeue returns a context under which Apply notes that it has to be called again although nothing may happen until then, and a
// function that returns after which time; 0 for never.
func WithRequeue(ctx context.Context) (context.Context, func() time.Duration) {
	v := &visit{}
	return context.WithValue(ctx, visitKey{}, v), func() time.Duration { return v.within(0) }
}

// within notes a time, 0 for none, and returns the shortest that was noted.
func (v *visit) within(left time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if left > 0 && (v.left == 0 || left < v.left) {
		v.left = left
	}
	return v.left
}

// A client that deletes an owner and orphans what it owns has the garbage collector take the references away while the owner is
// still there. The caches of owner and child know nothing of each other: the child may be seen without its reference before
// the owner is seen to go. Giving the reference back then would have the child collected a moment later. An owner that goes is
// marked before the first reference is taken, so a client that sees the child without it and asks the API server knows for sure.

// leaving says whether the owner is being deleted, or is gone. The API server is queried, past the cache, only before an object is created or
// gets a reference to it, so it costs nothing at rest. It lists by name, because that takes no right
// that a client that watches the kind does not have.
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

// abandoned says whether an object is not to be created because its owner is gone or going, though a cache that was filled with a
// list of the past still shows it. What is not collected with its owner would stay for ever; the rest would be collected and created
// again for as long as the past is shown. While the owner is there its finalizer lets it go only after whatever is created now has been removed.
//
// The look at the owner is spared where there is no reason for a doubt: the object was never there, and the owner is younger than
// this process, whose caches have seen it come.
func (a *Applier) abandoned(ctx context.Context, o owner, c child, known bool) (bool, error) {
	trusted := c.Ownership != Unowned && !known && !a.inherits(o)
	if trusted || o.GroupKind() == namespaceKind && o.Name == c.key.Namespace {
		return false, nil
	}
	if o.left != nil {
		return o.left()
	}
	return a.leaving(ctx, o)
}

// inherits says whether an owner is older than this process, so that objects of it may be there of which nothing is remembered.
func (a *Applier) inherits(o owner) bool { return !o.born.IsZero() && !o.born.After(a.began) }

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

// IsTerminating says that an error of Apply or Prune consists of nothing but objects that are just going, or whose API is: its definition
// is being deleted, or is deleted and capability detection has not caught up. Waiting for a moment is all there is to do.
func IsTerminating(err error) bool {
	return OnlyErrors(err, func(err error) bool {
		if going, ok := any(err).(*DeletingError); ok {
			return !going.Stuck
		}
		e, ok := any(err).(*Error)
		return ok && goes(e.Err)
	})
}

// goes recognises what the API server says about objects of a definition that is terminating (403) or gone (404).
func goes(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) ||
		(apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)) && strings.Contains(err.Error(), "custom resource definition is terminating")
}
