package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// checkForeign returns a *ForeignError unless this component may write the live object.
func (a *Applier) checkForeign(o owner, c *child, live *unstructured.Unstructured) error {
	err := &ForeignError{Kind: c.key.Kind, Namespace: c.key.Namespace, Name: c.key.Name}
	if ManagedByOther(live, a.Component) {
		err.Controller = "component " + live.GetLabels()[names.ComponentLabel]
		return err
	}
	if other := metav1.GetControllerOfNoCopy(live); other != nil && c.Ownership == Controlled &&
		!o.matches(*other) && !o.matchesPrevious(*other) && !c.dropsReference(*other) {
		return newForeignError(c.key, live) // an object has at most one controller
	}
	if a.hasMarker(o, live) || c.AdoptIf != nil && c.AdoptIf(live) {
		return nil
	}
	return err
}

// hasMarker reports whether this component wrote an object: it has the labels, a reference to the owner or to a previous
// owner of the same name, or fields of FieldOwner.
func (a *Applier) hasMarker(o owner, live *unstructured.Unstructured) bool {
	return a.hasLabels(live) ||
		slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return o.matches(ref) || o.matchesPrevious(ref)
		}) ||
		slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == a.FieldOwner && e.Subresource == ""
		})
}

// prepareForApply patches the changes that server-side apply cannot make, if there are any, and returns the live object. Fields that legacy
// operators own by update or client-side apply move to FieldOwner, once, before the object gets the labels: later writes of these managers
// are foreign. Owner references are removed if they refer to a previous owner, to the owner of an Unowned object, or match
// DropOwnerReferences. Annotations of StripAnnotations are removed.
func (a *Applier) prepareForApply(ctx context.Context, o owner, c *child, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	prepared := live.DeepCopy()
	if !a.hasLabels(live) {
		if err := csaupgrade.UpgradeManagedFields(prepared, a.legacyManagers, a.FieldOwner); err != nil {
			return nil, fmt.Errorf("migrating the field ownership: %w", err)
		}
	}
	for _, name := range a.StripAnnotations {
		unstructured.RemoveNestedField(prepared.Object, "metadata", "annotations", name)
	}
	refs := slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return o.matchesPrevious(ref) || c.Ownership == Unowned && o.matches(ref) || c.dropsReference(ref)
	})
	if len(refs) < len(live.GetOwnerReferences()) {
		prepared.SetOwnerReferences(refs)
	}
	if equality.Semantic.DeepEqual(live, prepared) {
		return live, nil
	}
	version := live.GetResourceVersion()
	if err := a.patch(ctx, verbAdopt, c.key, live, prepared); err != nil {
		return nil, fmt.Errorf("adopting it: %w", err)
	}
	if c.Version == version {
		c.Version = prepared.GetResourceVersion() // the new version is not a foreign change
	}
	return prepared, nil
}

// ownedFields returns the fields of a live object that FieldOwner owns; nil when it owns none or the entry is unreadable.
func (a *Applier) ownedFields(live *unstructured.Unstructured) fieldTree {
	entries := live.GetManagedFields()
	i := slices.IndexFunc(entries, isAppliedBy(a.FieldOwner))
	if i < 0 {
		return nil
	}
	return decodeFields(entries[i].FieldsV1)
}

// otherOwnerReferences returns the references to other owners that FieldOwner owns on a shared object.
func (a *Applier) otherOwnerReferences(o owner, c *child, live *unstructured.Unstructured) []metav1.OwnerReference {
	if c.Ownership != Shared {
		return nil
	}
	owned := a.ownedFields(live)
	return slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return o.matches(ref) || lookup(owned, "f:metadata", "f:ownerReferences", ownerReferenceElement(ref)) == nil
	})
}

// ownerReferenceElement returns the name of an owner reference in a fieldTree.
func ownerReferenceElement(ref metav1.OwnerReference) string {
	return `k:{"uid":"` + string(ref.UID) + `"}`
}
