package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// owner is the object for which children are written.
type owner struct {
	schema.GroupVersionKind
	types.NamespacedName
	uid types.UID
	// left says whether the owner goes or is gone, by one request for a whole Apply. See [Applier.abandoned].
	left func() (bool, error)
}

func newOwner(object client.Object, scheme *runtime.Scheme) (owner, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		var err error
		if gvk, err = apiutil.GVKForObject(object, scheme); err != nil {
			return owner{}, fmt.Errorf("finding the kind of the owner: %w", err)
		}
	}
	return owner{GroupVersionKind: gvk, NamespacedName: client.ObjectKeyFromObject(object), uid: object.GetUID()}, nil
}

// reference returns the owner reference that an object of the given ownership bears, or nil.
func (o owner) reference(as Ownership) *metav1.OwnerReference {
	apiVersion, kind := o.ToAPIVersionAndKind()
	ref := &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.Name, UID: o.uid}
	switch as {
	case Unowned:
		return nil
	case Controlled:
		ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	case Shared:
	}
	return ref
}

// mayOwn refuses references that the garbage collector would punish with the deletion of the child.
func (o owner) mayOwn(c child) error {
	if c.Ownership == Unowned || o.Namespace == "" || o.Namespace == c.key.Namespace {
		return nil
	}
	return fmt.Errorf("%s %s cannot own an object outside its namespace", o.Kind, o.NamespacedName)
}

// is says whether a reference points at this very owner.
func (o owner) is(ref metav1.OwnerReference) bool {
	return ref.UID == o.uid
}

// wasRestored says whether a reference points at an earlier life of the owner: same name, other uid. Backups bring
// children back with such references.
func (o owner) wasRestored(ref metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == o.Group && ref.Kind == o.Kind && ref.Name == o.Name && ref.UID != o.uid
}
