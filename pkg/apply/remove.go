package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Remove deletes one object of which the caller knows that it is ours to delete: exactly the one with the uid that the given
// object bears, and in the background what it owns. One that is gone or going is fine; a conflict says that another has its name
// now. forOwner is the uid of the object that it was made for, or empty.
func (a *Applier) Remove(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.removeBy(ctx, forOwner, object, metav1.DeletePropagationBackground)
}

// Discard is Remove for an object that is about to be recreated, such as a Deployment whose selector has to change: it is
// there until all that it owns is gone, so that old and new pods never meet.
func (a *Applier) Discard(ctx context.Context, forOwner types.UID, object client.Object) error {
	return a.removeBy(ctx, forOwner, object, metav1.DeletePropagationForeground)
}

func (a *Applier) removeBy(ctx context.Context, forOwner types.UID, object client.Object, policy metav1.DeletionPropagation) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	k := key{NamespacedName: client.ObjectKeyFromObject(object)}
	var err error
	if k.GroupVersionKind, err = apiutil.GVKForObject(object, a.Client.Scheme()); err == nil {
		err = a.delete(ctx, owner{uid: forOwner}, k, object.GetUID(), policy)
	}
	return k.failed(err)
}

// RemoveLabelled removes the objects of a kind that bear the labels of the component and the given ones, but for those that are kept.
// They come from the cache, wherever they are. A kind that is not served has none.
func (a *Applier) RemoveLabelled(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, labels map[string]string, keep func(client.Object) bool) error {
	list := metadataList(kind)
	if err := a.Client.List(ctx, list, client.MatchingLabels(names.Labels(a.Component)), client.MatchingLabels(labels)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		if object := &list.Items[i]; !keep(object) {
			object.SetGroupVersionKind(kind)
			errs = append(errs, a.Remove(ctx, forOwner, object))
		}
	}
	return errors.Join(errs...)
}

// RemoveNamed removes the object of a name, as the API server has it, if ours says so of it. One that is not there is fine.
func (a *Applier) RemoveNamed(ctx context.Context, forOwner types.UID, kind schema.GroupVersionKind, name types.NamespacedName,
	ours func(*metav1.PartialObjectMetadata) (bool, error),
) error {
	live := metadata(key{kind, name})
	err := a.Live.Get(ctx, name, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if remove, err := ours(live); err != nil || !remove {
		return err
	}
	return a.Remove(ctx, forOwner, live)
}

// ForgetNamespace drops all that is remembered about objects in a namespace that is gone, or in which nothing is wanted.
func (a *Applier) ForgetNamespace(namespace string) {
	a.memory.forgetNamespace(namespace)
}
