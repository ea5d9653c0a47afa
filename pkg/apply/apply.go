package apply

import (
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

// Apply brings all desired objects of an owner to their desired state, stage by stage, and in order within a stage. An object
// that fails does not keep those of its own stage from being written, but those of later ones: see Stage. The result joins one
// *Error for each object that failed, within a *HeldBackError when others were held back. An object that is being
// deleted is left alone, without an error for a minute: its deletion event brings the owner back, see also Revisit. So is
// one that has lost its reference to an owner that is being deleted; and nothing is created again, or without a reference, for an
// owner that is gone.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired Desired) error {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return err
	}
	o.left = sync.OnceValues(func() (bool, error) { return a.leaving(ctx, o) })
	for stage := Guards; stage <= Exposure; stage++ {
		if err := a.applyStage(ctx, o, desired.Of(stage)); err != nil {
			return heldBack(err, desired, stage)
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
		errs = append(errs, c.key.failed(err))
	}
	return errors.Join(errs...)
}

// heldBack adds to the error of a stage what it kept from being written.
func heldBack(err error, desired Desired, failed Stage) error {
	var later []string
	for stage := failed + 1; stage <= Exposure; stage++ {
		for _, object := range desired.Of(stage) {
			if k, err := identify(object.Config); err == nil {
				later = append(later, title(k.Kind, k.Namespace, k.Name))
			}
		}
	}
	if len(later) == 0 {
		return err
	}
	return &HeldBackError{Objects: later, Err: err}
}

func (a *Applier) applyOne(ctx context.Context, o owner, c child) error {
	if err := o.mayOwn(c); err != nil {
		return err
	}
	if c.Ownership == Shared {
		a.shared.Lock()
		defer a.shared.Unlock()
	}
	fits, err := a.fitting(c)
	if err == nil {
		err = a.settle(ctx, o, fits)
	}
	if a.learnsLack(c.key.GroupKind(), err) {
		if fits, err = a.fitting(c); err == nil {
			err = a.settle(ctx, o, fits)
		}
	}
	if err != nil {
		a.memory.doubt(o.uid, c.key) // what is not known for sure is checked again
	}
	return err
}

// settle decides from memory and cache what is to be done, and asks the API server only when these do not suffice.
func (a *Applier) settle(ctx context.Context, o owner, c child) error {
	known, ok := a.memory.recall(o.uid, c.key)
	if !ok {
		if a.recognizes(ctx, o, c) {
			return nil
		}
		if done, err := a.first(ctx, o, c); done {
			return err
		}
		return a.inspect(ctx, o, c, false)
	}
	cached, err := a.cached(ctx, c.key)
	switch {
	case err != nil:
		return err
	case cached == nil || cached.GetUID() != known.uid: // gone, replaced, or not yet in the cache
		return a.inspect(ctx, o, c, true)
	case cached.GetDeletionTimestamp() != nil:
		return a.awaitEnd(ctx, o, c, cached)
	case known.intent == c.intent && a.untouched(known, o, c, cached):
		a.skip(c.key.Kind)
		return nil
	case known.intent != c.intent && c.Ownership != Shared && tied(cached, o, c.Ownership):
		return a.write(ctx, o, c, change{uid: known.uid})
	default:
		return a.inspect(ctx, o, c, true)
	}
}

// IsNew says that an object of an owner is as good as certainly not there: the owner has come since this process began, which has
// not tried to write that object yet, and the cache does not show it. Apply then creates it without a read, and writes nothing if there is one.
func (a *Applier) IsNew(ctx context.Context, owner client.Object, kind schema.GroupVersionKind, name types.NamespacedName) (bool, error) {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return false, err
	}
	return a.fresh(ctx, o, key{kind, name})
}

func (a *Applier) fresh(ctx context.Context, o owner, k key) (bool, error) {
	if a.inherits(o) || a.memory.tried(o.uid, k) {
		return false, nil
	}
	cached, err := a.cached(ctx, k)
	return cached == nil && err == nil, err
}

// first creates an object that is fresh, and says whether that is the end of it.
func (a *Applier) first(ctx context.Context, o owner, c child) (bool, error) {
	if c.IgnoreIfForeign || c.Existing != nil {
		return false, nil
	}
	if fresh, err := a.fresh(ctx, o, c.key); err != nil || !fresh {
		return err != nil, err
	}
	if abandoned, err := a.abandoned(ctx, o, c, false); err != nil || abandoned {
		return true, err
	}
	a.memory.doubt(o.uid, c.key)
	err := a.write(ctx, o, c, change{creates: true})
	if apierrors.IsConflict(err) && !c.NeverDelete { // what holds a secret may have been made for one that is there
		return false, nil
	}
	return true, err
}

// maxLag is how long after a write a cache is believed not to have seen it. After a restore of etcd the versions of objects are
// lower than the one that was written, and stay so.
const maxLag = 10 * time.Second

// untouched says that a cached object still holds all that we wrote, or is older than our write.
func (a *Applier) untouched(known record, o owner, c child, cached client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), known.version); err == nil && order < 0 {
		return a.Clock.Since(known.at) < maxLag
	}
	return known.fields != digest{} && known.generation == cached.GetGeneration() &&
		known.fields == digestOf(cached.GetManagedFields(), a.FieldOwner) &&
		a.labelled(cached) && tied(cached, o, c.Ownership)
}

// labelled says whether an object bears the labels of this operator and component.
func (a *Applier) labelled(object metav1.Object) bool {
	return IsOurs(object, a.Component)
}

// tied says whether the reference of an object to the owner is there or not there as its ownership demands.
func tied(object metav1.Object, o owner, as Ownership) bool {
	has := false
	for _, ref := range object.GetOwnerReferences() {
		has = has || o.is(ref)
	}
	return has == (as != Unowned)
}

// cached reads an object in the form in which the cache holds it; nil when it is not there. The result is part of
// the cache and must not be changed.
func (a *Applier) cached(ctx context.Context, k key) (client.Object, error) {
	var object client.Object = metadata(k)
	if a.whole.Has(k.GroupVersionKind) {
		whole, err := newAs[client.Object](a.Client.Scheme(), k.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		object = whole
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

// newAs makes an empty object or list of a kind.
func newAs[T runtime.Object](scheme *runtime.Scheme, kind schema.GroupVersionKind) (T, error) {
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

// live reads an object whole from the API server.
func (a *Applier) live(ctx context.Context, k key) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(k.GroupVersionKind)
	return live, a.Live.Get(ctx, k.NamespacedName, live)
}

// patch sends a JSON patch of an object, which holds the server's answer afterwards.
func (a *Applier) patch(ctx context.Context, verb string, k key, object client.Object, steps []operation) error {
	data, err := json.Marshal(steps)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	a.wrote(k.Kind, verb)
	return a.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(a.FieldOwner))
}

// atVersion is the step that makes a patch fail when the object has changed.
func atVersion(object metav1.Object) operation {
	return operation{Operation: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}
}

// inspect reads the live object whole, decides whether it is ours to write, and writes it when it is not settled. Known says that it
// was written or looked at before.
func (a *Applier) inspect(ctx context.Context, o owner, c child, known bool) error {
	live, err := a.live(ctx, c.key)
	if apierrors.IsNotFound(err) {
		if abandoned, err := a.abandoned(ctx, o, c, known); err != nil || abandoned {
			return err
		}
		return a.write(ctx, o, c, change{creates: true})
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if err := a.claim(o, c, live); err != nil {
		return a.yield(c, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return a.awaitEnd(ctx, o, c, live)
	}
	if released, err := a.released(ctx, o, c, live); err != nil || released {
		a.memory.doubt(o.uid, c.key)
		return err
	}
	if err := a.prepare(ctx, o, &c, live); err != nil {
		return err
	}
	done, others, err := a.asDesired(o, c, live)
	switch {
	case err != nil:
		return err
	case done:
		a.skip(c.key.Kind)
		a.remember(o, c, live, 0)
		return nil
	case a.rests(ctx, o, c, live):
		return nil
	default:
		return a.write(ctx, o, c, change{uid: live.GetUID(), others: others})
	}
}

// asDesired says whether a live object is as it should be, and returns the references of other owners that stay on it.
func (a *Applier) asDesired(o owner, c child, live *unstructured.Unstructured) (bool, []metav1.OwnerReference, error) {
	owned := a.owned(live)
	others := otherOwners(o, c, live, owned)
	want, err := c.render(a.Component, o, others)
	if err != nil {
		return false, nil, err
	}
	return a.labelled(live) && tied(live, o, c.Ownership) && settled(want, live, owned, a.Client.Scheme()), others, nil
}

// yield drops the error about an object of another client where that is nothing to report.
func (a *Applier) yield(c child, err error) error {
	if _, foreign := errors.AsType[*ForeignError](err); foreign && c.IgnoreIfForeign {
		a.skip(c.key.Kind)
		return nil
	}
	return err
}

// change is one write: of an object that is not there, or of the one with the uid. The uid keeps an object that was deleted
// meanwhile from being recreated by what is meant as an update.
type change struct {
	creates bool
	uid     types.UID
	// others are references of other owners that stay.
	others []metav1.OwnerReference
}

// write sends one server-side apply, and a second one when the first was refused for something that could be mended.
func (a *Applier) write(ctx context.Context, o owner, c child, how change) error {
	body, err := a.send(ctx, o, c, how)
	if apierrors.IsInvalid(err) && !how.creates {
		again, problem := a.repair(ctx, o, c, err)
		if problem != nil {
			return fmt.Errorf("%s; repairing it: %w", err.Error(), problem) // which may pass, while the refusal does not
		}
		if again != nil {
			again.others = how.others
			body, err = a.send(ctx, o, c, *again)
		}
	}
	if err != nil {
		return err
	}
	if how.creates {
		count(ctx, created)
	} else {
		count(ctx, updated)
	}
	altered := a.alteration(o, c, body) // the client has put the answer in its place
	if altered != 0 {
		log.FromContext(ctx).Info("Another client, such as an admission webhook, changed this object while it was written", "object", title(c.key.Kind, c.key.Namespace, c.key.Name))
	}
	a.remember(o, c, body, altered)
	return nil
}

// noVersion is a resourceVersion that no object ever has. The API server ignores it in an apply that creates, and answers any other with
// a conflict: what another client has made meanwhile is left as it is.
const noVersion = "9223372036854775807"

// send applies an object.
func (a *Applier) send(ctx context.Context, o owner, c child, how change) (*unstructured.Unstructured, error) {
	body, err := c.render(a.Component, o, how.others)
	if err != nil {
		return nil, err
	}
	options := []client.ApplyOption{client.FieldOwner(a.FieldOwner)}
	if how.creates {
		body.SetResourceVersion(noVersion)
	} else {
		body.SetUID(how.uid)
		body.SetResourceVersion(c.Version)
		options = append(options, client.ForceOwnership)
	}
	a.wrote(c.key.Kind, verbApply)
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...); err != nil {
		return nil, err
	}
	return body, nil
}
