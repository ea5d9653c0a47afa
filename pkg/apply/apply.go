package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Apply applies the desired objects of an owner stage by stage, in order within a stage. A failed object does not stop its own stage,
// but all later ones: see Stage. The result joins one *Error for each failed object, in a *StageError if later stages were skipped.
//
// A terminating object is not written. It is an error only after deletionGracePeriod: its deletion event starts the next reconcile, see
// also Changes. An object that lost its reference to a terminating owner is not written either. No object is recreated, or
// created without an owner reference, for an owner that is terminating or deleted.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired Desired) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	o.terminating = sync.OnceValues(func() (bool, error) { return a.ownerTerminating(ctx, o) })
	for stage := Prerequisites; stage <= Exposure; stage++ {
		if err := a.applyStage(ctx, o, desired.InStages(stage)); err != nil {
			return newStageError(err, desired, stage)
		}
	}
	return nil
}

func (a *Applier) applyStage(ctx context.Context, o owner, desired Desired) error {
	var errs []error
	for _, object := range desired {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		c, err := newChild(object)
		if err == nil {
			err = a.applyOne(ctx, o, c)
		}
		errs = append(errs, c.key.wrapError("", err))
	}
	return errors.Join(errs...)
}

// newStageError adds the objects of later stages to the error of a failed stage.
func newStageError(err error, desired Desired, failed Stage) error {
	var skipped []string
	for _, object := range slices.Concat(desired.InStages(Workloads), desired.InStages(Exposure)) {
		if k, err := keyOf(object.Config); err == nil && StageOf(k.GroupKind()) > failed {
			skipped = append(skipped, objectTitle(k.Kind, k.Namespace, k.Name))
		}
	}
	if len(skipped) == 0 {
		return err
	}
	return &StageError{Skipped: skipped, Err: err}
}

func (a *Applier) applyOne(ctx context.Context, o owner, c *child) error {
	if err := o.checkNamespace(c); err != nil {
		return err
	}
	if c.Ownership == Shared {
		a.sharedMu.Lock()
		defer a.sharedMu.Unlock()
	}
	err := a.applyIfChanged(ctx, o, c)
	if a.detectUnsupportedTimeouts(c.key.GroupKind(), err) {
		err = a.applyIfChanged(ctx, o, c)
	}
	if err != nil {
		a.records.Store(recordKey{o.uid, c.key}, record{}) // the state after a failed write is unknown
	}
	return err
}

// applyIfChanged applies an object if it may differ from its desired state. It reads from the API server only if records and cache do
// not suffice.
func (a *Applier) applyIfChanged(ctx context.Context, o owner, c *child) error {
	last, _ := a.records.get(o.uid, c.key)
	cached, err := a.getCached(ctx, c.key)
	if err != nil {
		return err
	}
	known := last.exists() && cached != nil && cached.GetUID() == last.uid // else new, deleted, recreated, or not yet in the cache
	switch {
	case known && cached.GetDeletionTimestamp() != nil:
		return a.handleTerminating(ctx, o, c, cached)
	case known && last.desiredHash == c.desiredHash && a.isUnchanged(last, o, c, cached):
		a.countSkipped(c.key.Kind)
		return nil
	case known && last.desiredHash != c.desiredHash && c.Ownership != Shared && hasExpectedReference(cached, o, c.Ownership):
		c.exists, c.uid = true, last.uid
		return a.applyWithRepair(ctx, o, c)
	case cached == nil && c.Existing == nil && !c.IgnoreIfForeign && a.isNew(o, c.key):
		err := a.createIfAbsent(ctx, o, c, false)
		if !apierrors.IsConflict(err) || c.NeverDelete { // a generated Secret may belong to data that exists
			return err
		}
	}
	return a.applyAfterRead(ctx, o, c, last, cached)
}

// IsNew reports whether an object of an owner was never created: the owner was created after this process started, no write of the
// object was attempted, and the cache does not hold it. Apply creates such an object without a read, unless it exists.
func (a *Applier) IsNew(ctx context.Context, owner client.Object, kind schema.GroupVersionKind, name types.NamespacedName) (bool, error) {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil || !a.isNew(o, key{kind, name}) {
		return false, err
	}
	cached, err := a.getCached(ctx, key{kind, name})
	return cached == nil && err == nil, err
}

// isNew is IsNew without the cache.
func (a *Applier) isNew(o owner, k key) bool {
	_, attempted := a.records.get(o.uid, k)
	return !attempted && !a.predatesProcess(o)
}

// createIfAbsent creates an object unless its owner is terminating. existed reports whether the object was applied or read before.
func (a *Applier) createIfAbsent(ctx context.Context, o owner, c *child, existed bool) error {
	if skip, err := a.skipsCreate(ctx, o, c, existed); err != nil || skip {
		return err
	}
	a.records.Store(recordKey{o.uid, c.key}, record{})
	c.exists, c.uid, c.otherReferences = false, "", nil
	return a.applyWithRepair(ctx, o, c)
}

// maxCacheLag is how long after a write a cached object with a lower resourceVersion counts as stale. After a restore of etcd the
// versions stay lower than the recorded one.
const maxCacheLag = 10 * time.Second

// isUnchanged reports whether a cached object still has all applied values, or is older than the last write.
func (a *Applier) isUnchanged(last record, o owner, c *child, cached client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version); err == nil && order < 0 {
		return a.Clock.Since(last.time) < maxCacheLag
	}
	return last.ownFields != digest{} && last.generation == cached.GetGeneration() &&
		last.ownFields == digestOf(cached.GetManagedFields(), a.FieldOwner) &&
		hasExpectedReference(cached, o, c.Ownership)
}

// hasLabels reports whether an object has the labels of this operator and component.
func (a *Applier) hasLabels(object metav1.Object) bool {
	return HasComponentLabels(object, a.Component)
}

// hasExpectedReference reports whether the presence of a reference to the owner matches the ownership.
func hasExpectedReference(object metav1.Object, o owner, as Ownership) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), o.matches) == (as != Unowned)
}

// applyAfterRead reads the live object and applies the desired one unless it is foreign or up to date, or another client modified the last
// apply in the same way.
func (a *Applier) applyAfterRead(ctx context.Context, o owner, c *child, last record, cached client.Object) error {
	live, err := a.read(ctx, o, c, cached)
	if apierrors.IsNotFound(err) {
		return a.createIfAbsent(ctx, o, c, last.exists())
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if err := a.checkForeign(o, c, live); err != nil {
		if c.IgnoreIfForeign {
			a.countSkipped(c.key.Kind)
			return nil
		}
		return err
	}
	if live.GetDeletionTimestamp() != nil {
		return a.handleTerminating(ctx, o, c, live)
	}
	if orphaned, err := a.isOrphaned(ctx, o, c, live); err != nil || orphaned {
		a.records.Store(recordKey{o.uid, c.key}, record{})
		return err
	}
	if live, err = a.prepareForApply(ctx, o, c, live); err != nil {
		return err
	}
	c.exists, c.uid, c.otherReferences = true, live.GetUID(), a.otherOwnerReferences(o, c, live)
	if a.isUpToDate(o, c, live) {
		last.mutationHash = 0
	} else if last.mutationHash == 0 || last.desiredHash != c.desiredHash || last.mutationHash != hashContent(live) {
		return a.applyWithRepair(ctx, o, c)
	}
	a.countSkipped(c.key.Kind)
	a.storeRecord(o, c, live, last.mutationHash)
	return nil
}

// isUpToDate reports whether a live object has its desired state.
func (a *Applier) isUpToDate(o owner, c *child, live *unstructured.Unstructured) bool {
	desired, err := a.render(o, c)
	return err == nil && matchesDesired(desired, live, a.ownedFields(live))
}

// applyWithRepair sends an apply, and a second one if it was invalid and the object could be repaired.
//
// Mutating webhooks leave no trace in managedFields, so an object whose generation changed is compared, and applied again if it differs. If it
// is what the last apply resulted in, another apply would result in the same: the object is left until its content or the desired object
// changes.
func (a *Applier) applyWithRepair(ctx context.Context, o owner, c *child) error {
	response, err := a.sendApply(ctx, o, c)
	if apierrors.IsInvalid(err) && c.exists {
		repaired, repairErr := a.repair(ctx, o, c, err)
		if repairErr != nil {
			return fmt.Errorf("%s; repairing it: %w", err.Error(), repairErr) // wraps the error that a retry may resolve
		}
		if repaired {
			response, err = a.sendApply(ctx, o, c)
		}
	}
	if err != nil {
		return err
	}
	mutation := uint64(0)
	if !a.isUpToDate(o, c, response) {
		mutation = hashContent(response)
		log.FromContext(ctx).Info("Another client, such as an admission webhook, changed this object while it was written", "object", objectTitle(c.key.Kind, c.key.Namespace, c.key.Name))
	}
	a.storeRecord(o, c, response, mutation)
	return nil
}

// createOnlyVersion is a resourceVersion that no object has. The API server ignores it in an apply that creates an object, and answers
// with a conflict if the object exists.
const createOnlyVersion = "9223372036854775807"

// sendApply sends one server-side apply and returns the response.
func (a *Applier) sendApply(ctx context.Context, o owner, c *child) (*unstructured.Unstructured, error) {
	body, err := a.render(o, c)
	if err != nil {
		return nil, err
	}
	change, options := created, []client.ApplyOption{client.FieldOwner(a.FieldOwner)}
	body.SetResourceVersion(createOnlyVersion)
	if c.exists {
		change, options = updated, append(options, client.ForceOwnership)
		body.SetResourceVersion(c.Version)
	}
	return body, a.send(ctx, verbApply, c.key.Kind, change, func() error {
		return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...)
	})
}
