package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletionGracePeriod is how long a deletion may take without an error: pods have grace periods, and dependents are deleted first.
const deletionGracePeriod = time.Minute

// TerminatingError reports an object that is terminating and will be recreated afterwards.
type TerminatingError struct {
	Kind, Namespace, Name string
	// Since is the deletion timestamp, Finalizers are the remaining finalizers.
	Since      time.Time
	Finalizers []string
	// TimedOut reports whether deletionGracePeriod has passed, which calls for a condition. Otherwise the object has no labels of this
	// operator, so no watch event reports its deletion, and the caller has to poll.
	TimedOut bool
}

// NewTerminatingError returns the error for an object with a deletion timestamp.
func NewTerminatingError(kind string, object metav1.Object) *TerminatingError {
	return &TerminatingError{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Since: object.GetDeletionTimestamp().Time, Finalizers: object.GetFinalizers(),
	}
}

// Error implements error.
func (e *TerminatingError) Error() string {
	text := objectTitle(e.Kind, e.Namespace, e.Name) + " has been terminating since " + e.Since.UTC().Format(time.RFC3339)
	if len(e.Finalizers) > 0 {
		text += ", held by finalizers " + strings.Join(e.Finalizers, ", ") + " until their controllers remove them,"
	}
	return text + " and the operator recreates it afterwards"
}

// handleTerminating returns an error if the deletion timed out or the cache will not show its end, and records otherwise when to look again.
func (a *Applier) handleTerminating(ctx context.Context, o owner, c *child, object metav1.Object) error {
	a.records.Delete(recordKey{o.uid, c.key})
	err := NewTerminatingError(c.key.Kind, object)
	remaining := deletionGracePeriod - a.Clock.Since(err.Since)
	if err.TimedOut = remaining <= 0; err.TimedOut || !a.hasLabels(object) {
		return err
	}
	requeueAfter(ctx, remaining)
	return nil
}

// A client that deletes an owner with orphan propagation lets the garbage collector remove the owner references of the children while the
// owner still exists. The caches of owner and children are not in step: the child may lose its reference before the cache shows the
// deletion timestamp of the owner. A restored reference would have the child collected with the owner. The API server
// sets the deletion timestamp before the collector removes references, so a live read of the owner is reliable.

// ownerTerminating reports whether the owner is terminating or deleted. It reads from the API server, but only before an object is
// created or gets a reference to the owner. It lists by name, because list is a permission of every client that watches.
func (a *Applier) ownerTerminating(ctx context.Context, o owner) (bool, error) {
	list := newMetadataList(o.GroupVersionKind)
	if err := a.Live.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingFields{metav1.ObjectNameField: o.Name}); err != nil {
		return false, fmt.Errorf("looking whether %s %s is being deleted: %w", o.Kind, o.Name, err)
	}
	i := slices.IndexFunc(list.Items, func(item metav1.PartialObjectMetadata) bool { return item.UID == o.uid })
	return i < 0 || list.Items[i].DeletionTimestamp != nil, nil
}

// isOrphaned reports whether a managed object lost its owner reference and must not get it back, because the owner is terminating.
func (a *Applier) isOrphaned(ctx context.Context, o owner, c *child, live metav1.Object) (bool, error) {
	if c.Ownership == Unowned || hasExpectedReference(live, o, c.Ownership) || !a.hasLabels(live) {
		return false, nil
	}
	return a.ownerTerminating(ctx, o)
}

// skipsCreate reports whether an object must not be created because its owner is terminating or deleted, although a stale cache still
// shows it. An Unowned object would be leaked; others would be collected and recreated until the cache catches up. An existing
// owner is safe: its finalizer deletes every object that is created now.
//
// The read of the owner is skipped if the object never existed and the owner was created after this process started. For an Unowned object
// the owner must also have Finalizer.
func (a *Applier) skipsCreate(ctx context.Context, o owner, c *child, existed bool) (bool, error) {
	isDeleted := c.Ownership != Unowned || a.Finalizer != "" && slices.Contains(o.finalizers, a.Finalizer)
	isNew := isDeleted && !existed && !a.predatesProcess(o)
	if isNew || o.GroupKind() == namespaceKind && o.Name == c.key.Namespace {
		return false, nil
	}
	if o.terminating != nil {
		return o.terminating()
	}
	return a.ownerTerminating(ctx, o)
}

// predatesProcess reports whether an owner was created before this process started, so that it may have objects without a record.
func (a *Applier) predatesProcess(o owner) bool {
	return !o.creationTime.IsZero() && !o.creationTime.After(a.startTime)
}

// namespaceKind is the kind of an owner whose deletion deletes all objects inside it.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// addsTerminatingOwner reports whether an update adds a reference to a terminating owner.
func (a *Applier) addsTerminatingOwner(ctx context.Context, original, updated metav1.Object) (bool, error) {
	for _, ref := range updated.GetOwnerReferences() {
		if slices.ContainsFunc(original.GetOwnerReferences(), func(old metav1.OwnerReference) bool { return old.UID == ref.UID }) {
			continue
		}
		o := owner{ // the client ignores the namespace of cluster-scoped owners
			GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), uid: ref.UID,
			NamespacedName: types.NamespacedName{Namespace: updated.GetNamespace(), Name: ref.Name},
		}
		if terminating, err := a.ownerTerminating(ctx, o); err != nil || terminating {
			return terminating, err
		}
	}
	return false, nil
}

// IsTerminating reports whether all errors of an Apply or Prune are about terminating objects or CRDs, or about CRDs that were deleted before
// capability detection noticed. They resolve without an action of a user.
func IsTerminating(err error) bool {
	return AllErrorsMatch(err, func(err error) bool {
		if terminating, ok := any(err).(*TerminatingError); ok {
			return !terminating.TimedOut
		}
		e, ok := any(err).(*Error)
		return ok && isTerminatingAPI(e.Err)
	})
}

// isTerminatingAPI reports whether an error is the response for a terminating (403, 405) or deleted (404) CRD.
func isTerminatingAPI(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) ||
		(apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)) && strings.Contains(err.Error(), "custom resource definition is terminating")
}
