package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Apply applies the desired objects of an owner stage by stage, and those of one stage in parallel. A failed object does not stop its own
// stage, but all later ones: see Stage. The result joins an *Error for each failed object, and names the objects that are held back.
//
// A terminating object is not written. It is an error only after deletionGracePeriod, or if it lacks the component labels, so that no watch
// event reports its deletion. Otherwise Changes.RequeueAfter is set. An Ingress is deleted instead of written while FindHost finds an older
// one with its host. For a terminating or deleted owner, isOrphaned and skipsCreate select the objects that are not written.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired Desired) error {
	o := newOwner(owner, a.Client.Scheme())
	o.terminating = sync.OnceValues(func() (bool, error) { return a.ownerTerminating(ctx, o.GetNamespace(), o.reference()) })
	for stage := Prerequisites; stage <= Exposure; stage++ {
		if err := a.applyStage(ctx, o, desired.InStages(stage)); err != nil {
			return WithHeldBack(err, desired.titlesAfter(stage)...)
		}
	}
	return nil
}

// applyStage applies objects in parallel, but RoleBindings after all others, because the API server looks up their roles.
func (a *Applier) applyStage(ctx context.Context, o owner, desired Desired) error {
	children, errs := make([]*child, len(desired)), make([]error, len(desired))
	for i, object := range desired {
		c, err := newChild(o, object)
		children[i], errs[i] = c, c.key.wrapError("", err)
	}
	for _, bindings := range []bool{false, true} {
		workqueue.ParallelizeUntil(ctx, max(a.MaxParallel, 1), len(children), func(i int) {
			if errs[i] == nil && strings.HasSuffix(children[i].key.Kind, "RoleBinding") == bindings {
				errs[i] = children[i].key.wrapError("", a.applyOne(ctx, o, children[i]))
			}
		})
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// applyOne applies one object. It returns a panic as an error, because controller-runtime recovers only panics of the goroutine that reconciles.
func (a *Applier) applyOne(ctx context.Context, o owner, c *child) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v [recovered]", r)
			log.FromContext(ctx).Error(err, "Observed a panic", "stacktrace", string(debug.Stack()))
		}
		if err != nil {
			a.records.Store(recordKey{o.GetUID(), c.key}, record{}) // the state after an error is unknown
		}
	}()
	_, holder, err := FindHost(ctx, a.Client, c.Object)
	if err != nil {
		return err
	}
	if holder != nil {
		return a.deleteCached(ctx, o, c.key)
	}
	err = a.applyIfChanged(ctx, o, c)
	if isTimeoutsUnsupported(c.key.GroupKind(), err) {
		a.omitTimeouts.Store(true)
		err = a.applyIfChanged(ctx, o, c)
	}
	return err
}

// applyIfChanged applies an object if it may differ from its desired state. It reads from the API server only if records and cache do
// not suffice.
func (a *Applier) applyIfChanged(ctx context.Context, o owner, c *child) error {
	last, _ := a.records.get(o.GetUID(), c.key)
	cached, err := a.getCached(ctx, c.key)
	if err != nil {
		return err
	}
	known, changed := last.isOf(cached), last.desiredHash != c.desiredHash
	switch {
	case known && cached.GetDeletionTimestamp() != nil:
		return a.handleTerminating(ctx, o, c, cached)
	case known && !changed && a.isUnchanged(last, o, c, cached):
		a.countSkipped(c.key.Kind)
		return nil
	case known && changed && hasExpectedReference(cached, o, c.Ownership):
		c.exists, c.uid = true, last.uid
		return a.applyWithRepair(ctx, o, c)
	case c.Existing == nil && !c.IgnoreIfForeign && a.isNew(o, c.key, cached):
		err := a.createIfAbsent(ctx, o, c, false)
		if !apierrors.IsConflict(err) || c.NeverDelete { // such objects hold generated data, which must not overwrite existing data
			return err
		}
	}
	return a.applyAfterRead(ctx, o, c, last, cached)
}

// maxCacheLag is how long after a write a cached object with a lower resourceVersion counts as stale. After a restore of etcd the
// versions stay lower than the recorded one.
const maxCacheLag = 10 * time.Second

// isUnchanged reports whether a cached object still has all applied values and the owner reference, or is stale after the last write.
func (a *Applier) isUnchanged(last record, o owner, c *child, cached client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.version); err == nil && order < 0 {
		return a.Clock.Since(last.time) < maxCacheLag
	}
	return last.ownFields != "" && last.generation == cached.GetGeneration() &&
		last.ownFields == digestOf(cached.GetManagedFields(), a.FieldOwner) &&
		hasExpectedReference(cached, o, c.Ownership)
}

// IsNew reports whether an object does not exist, as far as this process knows: its owner was created after the process started, and
// neither a record nor the cache holds the object. Apply creates it without reading it first. A deletion also deletes the record.
func (a *Applier) IsNew(ctx context.Context, owner client.Object, kind schema.GroupVersionKind, name types.NamespacedName) (bool, error) {
	cached, err := a.getCached(ctx, Key{kind, name})
	return err == nil && a.isNew(owner, Key{kind, name}, cached), err
}

func (a *Applier) isNew(o metav1.Object, k Key, cached client.Object) bool {
	_, attempted := a.records.get(o.GetUID(), k)
	return cached == nil && !attempted && !a.predatesProcess(o)
}

// createIfAbsent creates an object unless skipsCreate returns true. existed is true if a record shows that the object existed.
func (a *Applier) createIfAbsent(ctx context.Context, o owner, c *child, existed bool) error {
	if skip, err := a.skipsCreate(ctx, o, c, existed); err != nil || skip {
		return err
	}
	c.exists, c.uid = false, ""
	return a.applyWithRepair(ctx, o, c)
}

// applyAfterRead reads the live object and applies the desired one if they differ. It does not write a foreign, terminating or orphaned
// object. It also skips an object that equals the response to the last apply, even if that response differs from the desired object.
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
		return err
	}
	if live, err = a.prepareForApply(ctx, o, c, live); err != nil {
		return err
	}
	c.exists, c.uid = true, live.GetUID()
	if a.isUpToDate(o, c, live) {
		last.mutationHash = 0
	} else if last.mutationHash == 0 || last.desiredHash != c.desiredHash || last.mutationHash != hashContent(live) {
		return a.applyWithRepair(ctx, o, c)
	}
	a.countSkipped(c.key.Kind)
	a.storeRecord(o, c, live, last.mutationHash)
	return nil
}

// deletionGracePeriod is how long a deletion may take without an error: pods have grace periods, and dependents are deleted first.
const deletionGracePeriod = time.Minute

// handleTerminating returns an error if the deletion timed out, or if no watch event will report its end. Otherwise it sets RequeueAfter.
func (a *Applier) handleTerminating(ctx context.Context, o owner, c *child, object metav1.Object) error {
	a.records.Delete(recordKey{o.GetUID(), c.key})
	err := NewTerminatingError(c.key.Kind, object)
	remaining := deletionGracePeriod - a.Clock.Since(err.Since)
	if err.TimedOut = remaining <= 0; err.TimedOut || !HasComponentLabels(object, a.Component) {
		return err
	}
	requeueAfter(ctx, remaining)
	return nil
}

// prepareForApply patches the changes that server-side apply cannot make, if there are any, and returns the live object. Fields that legacy
// operators own by update or client-side apply move to FieldOwner, once, before the object gets the labels: later writes of these managers
// are foreign. Owner references are removed if they refer to a previous owner or to the owner of an Unowned object, or if
// DropOwnerReferences selects them. Annotations of StripAnnotations are removed.
func (a *Applier) prepareForApply(ctx context.Context, o owner, c *child, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	refs := live.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return o.matchesPrevious(ref) || c.Ownership == Unowned && o.matches(ref) || c.dropsReference(ref)
	})
	strips := func(name string) bool { return nested.At(live.Object, "metadata", "annotations", name) != nil }
	if HasComponentLabels(live, a.Component) && len(kept) == len(refs) && !slices.ContainsFunc(a.StripAnnotations, strips) {
		return live, nil
	}
	prepared := live.DeepCopy()
	if !HasComponentLabels(live, a.Component) {
		if err := csaupgrade.UpgradeManagedFields(prepared, sets.New(a.LegacyManagers...).Insert(a.FieldOwner), a.FieldOwner); err != nil {
			return nil, fmt.Errorf("migrating the field ownership: %w", err)
		}
	}
	for _, name := range a.StripAnnotations {
		unstructured.RemoveNestedField(prepared.Object, "metadata", "annotations", name)
	}
	if len(kept) < len(refs) {
		prepared.SetOwnerReferences(kept)
	}
	if equality.Semantic.DeepEqual(live, prepared) {
		return live, nil
	}
	version := live.GetResourceVersion()
	if err := a.patch(ctx, "adopt", c.key, live, prepared); err != nil {
		return nil, fmt.Errorf("patching it: %w", err)
	}
	if c.ResourceVersion == version {
		c.ResourceVersion = prepared.GetResourceVersion() // the new version is not a foreign change
	}
	return prepared, nil
}

// isUpToDate reports whether a live object has its desired state.
func (a *Applier) isUpToDate(o owner, c *child, live *unstructured.Unstructured) bool {
	entries := live.GetManagedFields()
	i := slices.IndexFunc(entries, isAppliedBy(a.FieldOwner))
	if i < 0 {
		return false
	}
	return matchesDesired(a.render(o, c), live, decodeFields(entries[i].FieldsV1))
}

// applyWithRepair sends an apply, and a second one if the first is rejected as invalid and the live object could be repaired.
//
// Mutating webhooks leave no trace in managedFields, so a live object whose generation changed is compared with its desired state, and
// applied again if it differs. If the live object equals the response to the last apply, another apply would have the same result. None is
// sent until the live or the desired object changes.
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
		log.FromContext(ctx).Info("Another client, such as an admission webhook, changed the object while it was written", "object", objectTitle(c.key.Kind, c.key.Namespace, c.key.Name))
	}
	a.storeRecord(o, c, response, mutation)
	return nil
}

// createOnlyVersion is a resourceVersion that no object has. The API server ignores it in an apply that creates an object, and answers
// with a conflict if the object exists.
const createOnlyVersion = "9223372036854775807"

// sendApply sends one server-side apply and returns the response.
func (a *Applier) sendApply(ctx context.Context, o owner, c *child) (*unstructured.Unstructured, error) {
	body := a.render(o, c)
	change, options := created, []client.ApplyOption{client.FieldOwner(a.FieldOwner)}
	body.SetResourceVersion(createOnlyVersion)
	if c.exists {
		change, options = updated, append(options, client.ForceOwnership)
		body.SetResourceVersion(c.ResourceVersion)
	}
	return body, a.send(ctx, "apply", c.key.Kind, change, func() error {
		return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...)
	})
}

// HTTPRoutes have timeouts since version 1.2 of the Gateway API. An API server with older CRDs rejects an apply with them.
var httpRouteKind = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}

// isTimeoutsUnsupported reports whether an apply failed because HTTPRoutes have no timeouts.
func isTimeoutsUnsupported(kind schema.GroupKind, err error) bool {
	return kind == httpRouteKind && err != nil && strings.Contains(err.Error(), ".timeouts: field not declared in schema")
}

// Server-side apply merges desired fields with fields of other clients. Mutually exclusive fields (value and valueFrom, two
// sources of a volume, two handlers of a probe, a strategy and the parameters of another) make the merged object invalid on
// each retry. Changes of immutable fields, such as roleRef, are rejected too. repair resolves both, once per rejected apply.

// repair patches or deletes an object whose apply was rejected, and reports whether the apply is to be sent again.
func (a *Applier) repair(ctx context.Context, o owner, c *child, rejection error) (bool, error) {
	live, err := a.getLive(ctx, c.key)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !a.isWritten(o, live) || a.checkForeign(o, c, live) != nil || live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	desired := a.render(o, c)
	if hasImmutableConflict(desired, live) {
		if c.NeverDelete || c.Ownership == Unowned && c.key.Group == "" {
			return false, nil // the data may have no copy
		}
		c.exists, c.uid = false, "" // the next apply creates it
		return true, a.deleteRecorded(ctx, o.GetUID(), c.key, live.GetUID())
	}
	repaired := live.DeepCopy()
	if !replaceInvalidFields(repaired, desired, rejection) {
		return false, nil
	}
	c.uid, err = live.GetUID(), a.patch(ctx, "patch", c.key, live, repaired)
	if apierrors.IsInvalid(err) {
		return false, nil // the rejection has another cause
	}
	return true, err
}

// hasImmutableConflict reports whether a field that is immutable in RBAC, Secrets or ConfigMaps differs from the desired one.
func hasImmutableConflict(desired, live *unstructured.Unstructured) bool {
	differs := func(field string) bool {
		value, found := desired.Object[field]
		return found && !reflect.DeepEqual(value, live.Object[field])
	}
	return differs("roleRef") || differs("type") || live.Object["immutable"] == true && desired.Object["immutable"] != true
}

// replaceInvalidFields replaces each field directly below the spec that contains an invalid field of the rejection, such as the whole pod
// template, with the desired one. It reports whether it replaced any.
func replaceInvalidFields(live, desired *unstructured.Unstructured, rejection error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](rejection)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	replaced := false
	for _, cause := range status.ErrStatus.Details.Causes {
		path := strings.FieldsFunc(cause.Field, func(r rune) bool { return r == '.' || r == '[' })
		if len(path) < 2 || path[0] != "spec" {
			continue
		}
		value := nested.At(desired.Object, path[:2]...)
		if spec, ok := live.Object["spec"].(map[string]any); ok && value != nil {
			spec[path[1]], replaced = value, true
		}
	}
	return replaced
}
