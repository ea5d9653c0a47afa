package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
// also Changes. An Ingress is not written, and is deleted, while FindHost finds an older one. An object that lost its reference to a terminating owner is not written either. No object is recreated, or
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
	for stage := failed + 1; stage <= Exposure; stage++ {
		for _, object := range desired.InStages(stage) {
			if k, err := keyOf(object.Config); err == nil {
				skipped = append(skipped, objectTitle(k.Kind, k.Namespace, k.Name))
			}
		}
	}
	if len(skipped) == 0 {
		return err
	}
	return &StageError{Skipped: skipped, Err: err}
}

func (a *Applier) applyOne(ctx context.Context, o owner, c child) error {
	if err := o.checkNamespace(c); err != nil {
		return err
	}
	if c.Ownership == Shared {
		a.sharedMu.Lock()
		defer a.sharedMu.Unlock()
	}
	if _, first, err := FindHost(ctx, a.Client, c.Object); err != nil || first != nil {
		return cmp.Or(err, a.withdraw(ctx, o, c.key))
	}
	supported, err := a.withoutUnsupportedFields(c)
	if err == nil {
		err = a.applyIfChanged(ctx, o, supported)
	}
	if a.detectUnsupportedField(c.key.GroupKind(), err) {
		if supported, err = a.withoutUnsupportedFields(c); err == nil {
			err = a.applyIfChanged(ctx, o, supported)
		}
	}
	if err != nil {
		a.records.invalidate(o.uid, c.key) // the state after a failed write is unknown
	}
	return err
}

// applyIfChanged applies an object if it may differ from its desired state. It reads from the API server only if records and cache do
// not suffice.
func (a *Applier) applyIfChanged(ctx context.Context, o owner, c child) error {
	last, ok := a.records.get(o.uid, c.key)
	if !ok {
		if a.matchesAfterRestart(ctx, o, c) {
			return nil
		}
		if done, err := a.createIfNew(ctx, o, c); done {
			return err
		}
		return a.applyAfterRead(ctx, o, c, false)
	}
	cached, err := a.getCached(ctx, c.key)
	switch {
	case err != nil:
		return err
	case cached == nil || cached.GetUID() != last.uid: // deleted, recreated, or not yet in the cache
		return a.applyAfterRead(ctx, o, c, true)
	case cached.GetDeletionTimestamp() != nil:
		return a.handleTerminating(ctx, o, c, cached)
	case last.desiredHash == c.desiredHash && a.isUnchanged(last, o, c, cached):
		a.countSkipped(c.key.Kind)
		return nil
	case last.desiredHash != c.desiredHash && c.Ownership != Shared && hasExpectedReference(cached, o, c.Ownership):
		return a.applyWithRepair(ctx, o, c, applyRequest{uid: last.uid})
	default:
		return a.applyAfterRead(ctx, o, c, true)
	}
}

// IsNew reports whether an object of an owner was never created: the owner was created after this process started, no write of the
// object was attempted, and the cache does not hold it. Apply creates such an object without a read, unless it exists.
func (a *Applier) IsNew(ctx context.Context, owner client.Object, kind schema.GroupVersionKind, name types.NamespacedName) (bool, error) {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return false, err
	}
	return a.isNew(ctx, o, key{kind, name})
}

func (a *Applier) isNew(ctx context.Context, o owner, k key) (bool, error) {
	if a.predatesProcess(o) || a.records.attempted(o.uid, k) {
		return false, nil
	}
	cached, err := a.getCached(ctx, k)
	return cached == nil && err == nil, err
}

// createIfNew creates an object if it is new, and reports whether Apply is done with it.
func (a *Applier) createIfNew(ctx context.Context, o owner, c child) (bool, error) {
	if c.IgnoreIfForeign || c.Existing != nil {
		return false, nil
	}
	if isNew, err := a.isNew(ctx, o, c.key); err != nil || !isNew {
		return err != nil, err
	}
	if skip, err := a.skipsCreate(ctx, o, c, false); err != nil || skip {
		return true, err
	}
	a.records.invalidate(o.uid, c.key)
	err := a.applyWithRepair(ctx, o, c, applyRequest{create: true})
	if apierrors.IsConflict(err) && !c.NeverDelete { // a generated Secret may belong to data that exists
		return false, nil
	}
	return true, err
}

// maxCacheLag is how long after a write a cached object with a lower resourceVersion counts as stale. After a restore of etcd the
// versions stay lower than the recorded one.
const maxCacheLag = 10 * time.Second

// isUnchanged reports whether a cached object still has all applied values, or is older than the last write.
func (a *Applier) isUnchanged(last record, o owner, c child, cached client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version); err == nil && order < 0 {
		return a.Clock.Since(last.time) < maxCacheLag
	}
	return last.ownFields != digest{} && last.generation == cached.GetGeneration() &&
		last.ownFields == digestOf(cached.GetManagedFields(), a.FieldOwner) &&
		a.hasLabels(cached) && hasExpectedReference(cached, o, c.Ownership)
}

// hasLabels reports whether an object has the labels of this operator and component.
func (a *Applier) hasLabels(object metav1.Object) bool {
	return HasComponentLabels(object, a.Component)
}

// hasExpectedReference reports whether the presence of a reference to the owner matches the ownership.
func hasExpectedReference(object metav1.Object, o owner, as Ownership) bool {
	has := false
	for _, ref := range object.GetOwnerReferences() {
		has = has || o.matches(ref)
	}
	return has == (as != Unowned)
}

// getCached returns an object as the cache holds it, typed or as metadata; nil when it does not exist. It must not be modified.
func (a *Applier) getCached(ctx context.Context, k key) (client.Object, error) {
	var object client.Object = newMetadata(k)
	if a.fullObjectKinds.Has(k.GroupVersionKind) {
		typed, err := newObject[client.Object](a.Client.Scheme(), k.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		object = typed
	}
	err := a.Client.Get(ctx, k.NamespacedName, object, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it from the cache: %w", err)
	}
	return object, nil
}

// newObject returns an empty object or list of a kind.
func newObject[T runtime.Object](scheme *runtime.Scheme, kind schema.GroupVersionKind) (T, error) {
	var none T
	empty, err := scheme.New(kind)
	if err != nil {
		return none, fmt.Errorf("making an empty %s: %w", kind.Kind, err)
	}
	typed, ok := empty.(T)
	if !ok {
		return none, fmt.Errorf("%T is no API object", empty)
	}
	return typed, nil
}

// getLive reads an object from the API server.
func (a *Applier) getLive(ctx context.Context, k key) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(k.GroupVersionKind)
	return live, a.Live.Get(ctx, k.NamespacedName, live)
}

// patch sends a JSON patch and stores the response in object.
func (a *Applier) patch(ctx context.Context, verb string, k key, object client.Object, operations []operation) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	a.countWrite(k.Kind, verb)
	return a.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(a.FieldOwner))
}

// versionPrecondition returns the operation that fails a patch if the object has another resourceVersion.
func versionPrecondition(object metav1.Object) operation {
	return operation{Operation: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}
}

// applyAfterRead reads the live object and applies the desired one unless it is foreign or up to date. existed reports whether the object
// was applied or read before.
func (a *Applier) applyAfterRead(ctx context.Context, o owner, c child, existed bool) error {
	live, err := a.getLive(ctx, c.key)
	if apierrors.IsNotFound(err) {
		if skip, err := a.skipsCreate(ctx, o, c, existed); err != nil || skip {
			return err
		}
		return a.applyWithRepair(ctx, o, c, applyRequest{create: true})
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if err := a.checkForeign(o, c, live); err != nil {
		return a.ignoreForeign(c, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return a.handleTerminating(ctx, o, c, live)
	}
	if orphaned, err := a.isOrphaned(ctx, o, c, live); err != nil || orphaned {
		a.records.invalidate(o.uid, c.key)
		return err
	}
	if err := a.prepareForApply(ctx, o, &c, live); err != nil {
		return err
	}
	upToDate, others, err := a.isUpToDate(o, c, live)
	switch {
	case err != nil:
		return err
	case upToDate:
		a.countSkipped(c.key.Kind)
		a.storeRecord(o, c, live, 0)
		return nil
	case a.suppressApply(ctx, o, c, live):
		return nil
	default:
		return a.applyWithRepair(ctx, o, c, applyRequest{uid: live.GetUID(), otherReferences: others})
	}
}

// isUpToDate reports whether a live object has its desired state, and returns the references to other owners that it keeps.
func (a *Applier) isUpToDate(o owner, c child, live *unstructured.Unstructured) (bool, []metav1.OwnerReference, error) {
	owned := a.ownedFields(live)
	others := otherOwnerReferences(o, c, live, owned)
	desired, err := c.render(a.Component, o, others)
	if err != nil {
		return false, nil, err
	}
	return a.hasLabels(live) && hasExpectedReference(live, o, c.Ownership) && matchesDesired(desired, live, owned, a.Client.Scheme()), others, nil
}

// ignoreForeign drops a *ForeignError if the object sets IgnoreIfForeign.
func (a *Applier) ignoreForeign(c child, err error) error {
	if _, foreign := errors.AsType[*ForeignError](err); foreign && c.IgnoreIfForeign {
		a.countSkipped(c.key.Kind)
		return nil
	}
	return err
}

// applyRequest is one apply: of a new object, or of the existing one with the uid. The uid prevents that an update recreates an
// object that another client has deleted.
type applyRequest struct {
	create bool
	uid    types.UID
	// otherReferences are references to other owners that the object keeps.
	otherReferences []metav1.OwnerReference
}

// applyWithRepair sends an apply, and a second one if it was invalid and the object could be repaired.
func (a *Applier) applyWithRepair(ctx context.Context, o owner, c child, request applyRequest) error {
	body, err := a.sendApply(ctx, o, c, request)
	if apierrors.IsInvalid(err) && !request.create {
		retry, repairErr := a.repair(ctx, o, c, err)
		if repairErr != nil {
			return fmt.Errorf("%s; repairing it: %w", err.Error(), repairErr) // wraps the error that a retry may resolve
		}
		if retry != nil {
			retry.otherReferences = request.otherReferences
			body, err = a.sendApply(ctx, o, c, *retry)
		}
	}
	if err != nil {
		return err
	}
	if request.create {
		countChange(ctx, created)
	} else {
		countChange(ctx, updated)
	}
	mutation := a.hashMutation(o, c, body) // Apply stored the response in body
	if mutation != 0 {
		log.FromContext(ctx).Info("Another client, such as an admission webhook, changed this object while it was written", "object", objectTitle(c.key.Kind, c.key.Namespace, c.key.Name))
	}
	a.storeRecord(o, c, body, mutation)
	return nil
}

// createOnlyVersion is a resourceVersion that no object has. The API server ignores it in an apply that creates an object, and answers
// with a conflict if the object exists.
const createOnlyVersion = "9223372036854775807"

// sendApply sends one server-side apply and returns the response.
func (a *Applier) sendApply(ctx context.Context, o owner, c child, request applyRequest) (*unstructured.Unstructured, error) {
	body, err := c.render(a.Component, o, request.otherReferences)
	if err != nil {
		return nil, err
	}
	options := []client.ApplyOption{client.FieldOwner(a.FieldOwner)}
	if request.create {
		body.SetResourceVersion(createOnlyVersion)
	} else {
		body.SetUID(request.uid)
		body.SetResourceVersion(c.Version)
		options = append(options, client.ForceOwnership)
	}
	a.countWrite(c.key.Kind, verbApply)
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...); err != nil {
		return nil, err
	}
	return body, nil
}
