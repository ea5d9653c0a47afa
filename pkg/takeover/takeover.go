// Package takeover connects the controllers with the packages that take over from legacy operators (controllers/*/takeover). Without such a
// package, a component works, but neither adopts nor deletes the objects of its legacy operator.
package takeover

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// Interface is the take-over of the objects that a legacy operator created for owners of type T.
type Interface[T client.Object] interface {
	// Adopt sets the conditions under which the desired objects adopt existing ones.
	Adopt(owner T, desired apply.Desired)
	// Prune deletes the legacy objects of an owner that are not desired. Once none remain, it sends no request.
	Prune(ctx context.Context, owner T, desired apply.Desired) error
	// Finalize deletes the legacy objects of an owner that garbage collection does not delete.
	Finalize(ctx context.Context, owner T) error
}

// None takes over nothing.
type None[T client.Object] struct{}

// OrNone returns t, or None if t is nil.
func OrNone[T client.Object](t Interface[T]) Interface[T] {
	if t == nil {
		return None[T]{}
	}
	return t
}

// Adopt implements Interface.
func (None[T]) Adopt(T, apply.Desired) {}

// Prune implements Interface.
func (None[T]) Prune(context.Context, T, apply.Desired) error { return nil }

// Finalize implements Interface.
func (None[T]) Finalize(context.Context, T) error { return nil }

// Warning is an error of Prune about an object that must be deleted by a user. It must not prevent the rest of the reconcile.
type Warning string

// Error implements error.
func (w Warning) Error() string { return string(w) }

// List returns the metadata of the objects of the given kinds that match a label selector and do not have the labels of this operator. The
// cache does not contain them. A kind that is not served has no objects.
func List(ctx context.Context, apiReader client.Reader, kinds []schema.GroupVersionKind, selector string, options ...client.ListOption) (
	found []metav1.PartialObjectMetadata, err error,
) {
	unmanaged, err := labels.Parse(selector + ",!" + names.OperatorLabel)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	options = append(options, client.MatchingLabelsSelector{Selector: unmanaged})
	for _, kind := range kinds {
		list := objectmeta.NewList(kind)
		if err := apiReader.List(ctx, list, options...); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("listing %s objects of the legacy operator: %w", kind.Kind, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
		}
		found = append(found, list.Items...)
	}
	return found, nil
}
