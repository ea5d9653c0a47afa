// Package objectmeta builds and reads objects that contain only metadata.
package objectmeta

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New returns an empty object of a kind.
func New(k schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind}}
}

// NewList returns an empty list of objects of a kind.
func NewList(k schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind + "List"}}
}

// Get returns the metadata of an object, nil if it is not found. The result may be shared with the cache and must not be modified.
func Get(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	metadata := New(kind)
	err := from.Get(ctx, name, metadata, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata of %s %s: %w", kind.Kind, name, err)
	}
	return metadata, nil
}
