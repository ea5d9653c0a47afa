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

// Controller is the part of controller.Controller that a dynamic watch needs.
type Controller interface {
	Watch(source.Source) error
}

// Watch lets a controller watch an optional kind whenever it is served, until ctx ends: build is called each time the kind appears,
// and the source ends when the kind goes, together with its informer. It may be called at any time and never blocks;
// neither a kind that vanishes while its informer syncs nor a controller that is not started delays anything. The kind must be one
// of Options.Kinds.
func (w *Watcher) Watch(ctx context.Context, c Controller, kind schema.GroupVersionKind, build func() source.Source) {
	var stop context.CancelFunc
	w.OnChange(ctx, func(s Set) {
		switch served := s.Has(kind); {
		case served && stop == nil:
			var running context.Context
			running, stop = context.WithCancel(ctx)
			// A controller that is just starting holds its lock until its other caches are synced.
			go func() {
				if err := c.Watch(sourceWhileServed(running, kind, build)); err != nil {
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

// while is a source that ends with the context of its kind. It does not offer WaitForSync, since a controller takes a source
// that does not sync in time at its start as fatal.
func sourceWhileServed(served context.Context, kind schema.GroupVersionKind, build func() source.Source) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if served.Err() != nil {
			return nil // it went before the controller started
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

// removeInformers takes the kinds out of the cache in every representation. The cache only unlinks them, it does not
// wait.
func (w *Watcher) removeInformers(kinds []schema.GroupVersionKind) {
	if w.options.Cache == nil {
		return
	}
	for _, k := range kinds {
		whole := &unstructured.Unstructured{}
		whole.SetGroupVersionKind(k)
		representations := []client.Object{MetadataOf(k), whole}
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

// MetadataOf is an empty object of which only the metadata is wanted.
func MetadataOf(k schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind}}
}

// GetMetadata reads the metadata of an object, nil where there is none. It may be part of a cache and must not be changed.
func GetMetadata(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	head := MetadataOf(kind)
	err := from.Get(ctx, name, head, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata of %s %s: %w", kind.Kind, name, err)
	}
	return head, nil
}
