package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// claim returns a *ForeignError unless a live object is ours to write.
func (a *Applier) claim(o owner, c child, live *unstructured.Unstructured) error {
	err := &ForeignError{Kind: c.key.Kind, Namespace: c.key.Namespace, Name: c.key.Name}
	if ManagedByOther(live, a.Component) {
		err.Controller = "component " + live.GetLabels()[names.ComponentLabel]
		return err
	}
	if other := metav1.GetControllerOfNoCopy(live); other != nil && c.Ownership == Controlled &&
		!o.is(*other) && !o.wasRestored(*other) && !c.disowns(*other) {
		return foreign(c.key, live) // an object has at most one controller
	}
	if a.marked(o, live) || c.AdoptIf != nil && c.AdoptIf(live) {
		return nil
	}
	return err
}

// marked says whether an object bears a sign that this component made it, in this or an earlier life: a reference to
// the owner, our labels, or fields of our field owner.
func (a *Applier) marked(o owner, live *unstructured.Unstructured) bool {
	return a.labelled(live) ||
		slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return o.is(ref) || o.wasRestored(ref)
		}) ||
		slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == a.FieldOwner && e.Subresource == ""
		})
}

// prepare sends at most one patch that removes what a server-side apply cannot: it hands the fields that older
// operators own by update or client-side apply to our field owner, once, before the object gets our labels; and it
// removes references to an earlier life of the owner, to the owner itself from objects that shall outlive it, and those
// that the child disowns, and annotations of older operators. The patch carries the resourceVersion, because it replaces
// whole lists.
func (a *Applier) prepare(ctx context.Context, o owner, c *child, live *unstructured.Unstructured) error {
	patch, err := a.preparation(o, *c, live)
	if err != nil || len(patch) == 0 {
		return err
	}
	seen := live.GetResourceVersion()
	if err := a.patch(ctx, verbAdopt, c.key, live, patch); err != nil {
		return fmt.Errorf("adopting it: %w", err)
	}
	if c.Version == seen {
		c.Version = live.GetResourceVersion() // this was no foreign change
	}
	count(ctx, updated)
	return nil
}

// preparation returns the steps of that patch, none when there is nothing to prepare.
func (a *Applier) preparation(o owner, c child, live *unstructured.Unstructured) ([]operation, error) {
	patch, err := a.migration(live)
	if err != nil {
		return nil, err
	}
	var own []operation
	annotations := live.GetAnnotations()
	for _, name := range a.StripAnnotations {
		if _, there := annotations[name]; there {
			own = append(own, operation{Operation: "remove", Path: "/metadata/annotations/" + pointer.Replace(name)})
		}
	}
	refs := live.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return o.wasRestored(ref) || c.Ownership == Unowned && o.is(ref) || c.disowns(ref)
	})
	if len(kept) != len(refs) {
		own = append(own, operation{Operation: "replace", Path: "/metadata/ownerReferences", Value: kept})
	}
	if len(own) > 0 {
		patch = append(append(patch, own...), atVersion(live))
	}
	return patch, nil
}

// pointer escapes a name for the path of a JSON patch.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// operation is one step of a JSON patch.
type operation = jsonpatch.Operation

// migration returns the steps that hand the fields of older managers to ours, or nothing.
func (a *Applier) migration(live *unstructured.Unstructured) ([]operation, error) {
	if a.labelled(live) {
		return nil, nil // adopted before; what these managers wrote since is theirs
	}
	data, err := csaupgrade.UpgradeManagedFieldsPatch(live, a.legacy, a.FieldOwner)
	if err != nil {
		return nil, fmt.Errorf("migrating the field ownership: %w", err)
	}
	if data == nil {
		return nil, nil
	}
	var patch []operation
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("decoding the migration of the field ownership: %w", err)
	}
	return patch, nil
}

// owned returns the fields that our field owner holds in a live object; nil when it holds none.
func (a *Applier) owned(live *unstructured.Unstructured) *fieldpath.Set {
	entries := live.GetManagedFields()
	i := slices.IndexFunc(entries, applied(a.FieldOwner))
	if i < 0 || entries[i].FieldsV1 == nil {
		return nil
	}
	set, err := decode(entries[i].FieldsV1)
	if err != nil {
		return nil // not readable, so it is written again
	}
	return set
}

// otherOwners returns the references of other owners that our field owner put on a shared object.
func otherOwners(o owner, c child, live *unstructured.Unstructured, owned *fieldpath.Set) []metav1.OwnerReference {
	if c.Ownership != Shared || owned == nil {
		return nil
	}
	return slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return o.is(ref) || !owned.Has(ownerPath(ref.UID))
	})
}

func ownerPath(uid types.UID) fieldpath.Path {
	return fieldpath.Path{
		fieldpath.FieldNameElement("metadata"),
		fieldpath.FieldNameElement("ownerReferences"),
		fieldpath.KeyElement(value.Field{Name: "uid", Value: value.NewValueInterface(string(uid))}),
	}
}
