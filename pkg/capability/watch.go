package capability

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Controller is the part of controller.Controller that Watch uses.
type Controller interface {
	Watch(source.Source) error
}

// Watch starts the source of build whenever the optional kind is served, and stops it and its informer when the kind is removed, until ctx
// ends. It can be called at any time and never blocks, even if an informer does not sync or the controller is not started. The kind must
// be one of Options.Kinds.
func (w *Watcher) Watch(ctx context.Context, c Controller, kind schema.GroupVersionKind, build func() source.Source) {
	var stop context.CancelFunc
	w.OnChange(ctx, func(s Set) {
		switch served := s.Has(kind); {
		case served && stop == nil:
			var servedCtx context.Context
			servedCtx, stop = context.WithCancel(ctx)
			// A starting controller holds its lock until its caches are synced.
			go func() {
				if err := c.Watch(sourceWhileServed(servedCtx, kind, build)); err != nil {
					w.options.Log.Error(err, "Watching an optional API", "kind", kind.String())
				}
			}()
		case !served && stop != nil:
			stop()
			stop = nil
		}
	})
}

// WatchMetadata is Watch for the common case: the metadata of the kind from Options.Cache, which must be set.
func (w *Watcher) WatchMetadata(ctx context.Context, c Controller, kind schema.GroupVersionKind,
	h handler.EventHandler, predicates ...predicate.Predicate) {
	w.Watch(ctx, c, kind, func() source.Source {
		obj := client.Object(MetadataOf(kind))
		return source.Kind(w.options.Cache, obj, h, predicates...)
	})
}

// sourceWhileServed returns a source that stops with the context of its kind. It does not implement WaitForSync, because controllers fail
// to start if a source does not sync in time.
func sourceWhileServed(served context.Context, kind schema.GroupVersionKind, build func() source.Source) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if served.Err() != nil {
			return nil // the kind was removed before the controller started
		}
		ctx, stop := context.WithCancel(ctx)
		context.AfterFunc(served, stop)
		if err := build().Start(ctx, queue); err != nil {
			stop()
			return fmt.Errorf("starting to watch %s: %w", kind.Kind, err)
		}
		return nil
	})
}

// removeInformers removes the informers of the kinds for typed, unstructured and metadata objects, without waiting for their end.
func (w *Watcher) removeInformers(kinds []schema.GroupVersionKind) {
	if w.options.Cache == nil {
		return
	}
	for _, k := range kinds {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(k)
		representations := []client.Object{MetadataOf(k), object}
		if typed, err := w.options.Scheme.New(k); err == nil {
			representations = append(representations, typed.(client.Object))
		}
		for _, obj := range representations {
			if err := w.options.Cache.RemoveInformer(context.Background(), obj); err != nil {
				w.options.Log.Error(err, "Removing the informer of an optional API", "kind", k.String())
			}
		}
	}
}

// MetadataOf returns an empty metadata object of a kind.
func MetadataOf(k schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind}}
}

// GetMetadata returns the metadata of an object, nil if it is not found. The result may be shared with the cache and must not be modified.
func GetMetadata(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	metadata := MetadataOf(kind)
	err := from.Get(ctx, name, metadata, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata of %s %s: %w", kind.Kind, name, err)
	}
	return metadata, nil
}
