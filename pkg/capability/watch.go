package capability

import (
	"context"
	"fmt"
	"slices"

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

// watch is one dynamic watch.
type watch struct {
	ctx        context.Context
	controller Controller
	kind       schema.GroupVersionKind
	build      func() source.Source
	stop       context.CancelFunc // set while the source runs; belongs to the goroutine of Start
}

// Watch lets a controller watch an optional kind whenever it is served: build is called each time the kind appears,
// and the source ends when the kind goes, together with its informer. It may be called at any time and never blocks;
// neither a kind that vanishes while its informer syncs nor a controller that is not started delays anything. The
// watch ends with ctx or with the Watcher. The kind must be one of Options.Kinds.
func (w *Watcher) Watch(ctx context.Context, c Controller, kind schema.GroupVersionKind, build func() source.Source) {
	entry := &watch{ctx: ctx, controller: c, kind: kind, build: build}
	w.mu.Lock()
	w.watches = append(w.watches, entry)
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watches = slices.DeleteFunc(w.watches, func(e *watch) bool { return e == entry })
	})
	select {
	case w.rewatch <- struct{}{}:
	default:
	}
}

// WatchMetadata is Watch for the common case: the metadata of the kind from Options.Cache, which must be set.
func (w *Watcher) WatchMetadata(ctx context.Context, c Controller, kind schema.GroupVersionKind,
	h handler.EventHandler, predicates ...predicate.Predicate) {
	w.Watch(ctx, c, kind, func() source.Source {
		obj := client.Object(metadataOf(kind))
		return source.Kind(w.options.Cache, obj, h, predicates...)
	})
}

// settleWatches starts and stops sources so that they match the current set.
func (w *Watcher) settleWatches() {
	current := w.Current()
	w.mu.Lock()
	watches := slices.Clone(w.watches)
	w.mu.Unlock()
	for _, e := range watches {
		switch served := current.Has(e.kind); {
		case served && e.stop == nil:
			w.startWatch(e)
		case !served && e.stop != nil:
			e.stop()
			e.stop = nil
		}
	}
}

// startWatch hands the source over in a goroutine, because a controller that is just starting holds its lock until
// its other caches are synced.
func (w *Watcher) startWatch(e *watch) {
	ctx, cancel := context.WithCancel(e.ctx)
	e.stop = cancel
	w.watchStarter.Go(func() {
		if err := e.controller.Watch(&optional{ctx: ctx, watch: e}); err != nil {
			w.options.Log.Error(err, "Watching an optional API", "kind", e.kind.String())
		}
	})
}

// stopWatches ends every source and waits until none is being handed over.
func (w *Watcher) stopWatches() {
	w.mu.Lock()
	watches := slices.Clone(w.watches)
	w.mu.Unlock()
	for _, e := range watches {
		if e.stop != nil {
			e.stop()
			e.stop = nil
		}
	}
	w.watchStarter.Wait()
}

// optional is a source that ends when the kind goes. It does not offer WaitForSync, since a controller takes a source
// that does not sync in time at its start as fatal.
type optional struct {
	ctx   context.Context
	watch *watch
}

// Start implements source.Source.
func (o *optional) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if o.ctx.Err() != nil {
		return nil // it went before the controller started
	}
	ctx, stop := context.WithCancel(ctx)
	context.AfterFunc(o.ctx, stop)
	if err := o.watch.build().Start(ctx, queue); err != nil {
		stop()
		return fmt.Errorf("starting to watch %s: %w", o.watch.kind.Kind, err)
	}
	return nil
}

// String names the source in the controller's log.
func (o *optional) String() string { return "optional kind source: " + o.watch.kind.String() }

// removeInformers takes the kinds out of the cache in every representation. The cache only unlinks them, it does not
// wait.
func (w *Watcher) removeInformers(kinds []schema.GroupVersionKind) {
	if w.options.Cache == nil {
		return
	}
	for _, k := range kinds {
		whole := &unstructured.Unstructured{}
		whole.SetGroupVersionKind(k)
		representations := []client.Object{metadataOf(k), whole}
		if w.options.Scheme != nil && w.options.Scheme.Recognizes(k) {
			if typed, err := w.options.Scheme.New(k); err == nil {
				if obj, ok := typed.(client.Object); ok {
					representations = append(representations, obj)
				}
			}
		}
		for _, obj := range representations {
			if err := w.options.Cache.RemoveInformer(context.Background(), obj); err != nil {
				w.options.Log.Error(err, "Removing the informer of an optional API", "kind", k.String())
			}
		}
	}
}

func metadataOf(k schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k)
	return obj
}
