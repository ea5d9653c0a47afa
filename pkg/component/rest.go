package component

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The library never takes the handlers of a controller off its informers, which other kinds' informers outlive. The
// handler of a component that rests would go on mapping events, and a read in it would start an informer for an API that
// is gone, which then asks for it for ever.

// handlers are the registrations of one run of a component.
type handlers struct {
	mu  sync.Mutex
	off []func() error
}

func (h *handlers) add(off func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.off = append(h.off, off)
}

// remove takes every handler off.
func (h *handlers) remove(log logr.Logger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, off := range h.off {
		if err := off(); err != nil {
			log.Error(err, "Taking an event handler off an informer")
		}
	}
	h.off = nil
}

// cacheOf notes the handlers that are put on its informers.
type cacheOf struct {
	cache.Cache
	handlers *handlers
}

// GetInformer implements cache.Informers.
func (c *cacheOf) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := c.Cache.GetInformer(ctx, obj, opts...)
	if err != nil {
		return nil, err
	}
	return &informerOf{i, c.handlers}, nil
}

// GetInformerForKind implements cache.Informers.
func (c *cacheOf) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := c.Cache.GetInformerForKind(ctx, kind, opts...)
	if err != nil {
		return nil, err
	}
	return &informerOf{i, c.handlers}, nil
}

type informerOf struct {
	cache.Informer
	handlers *handlers
}

func (i *informerOf) note(r toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		i.handlers.add(func() error { return i.RemoveEventHandler(r) })
	}
	return r, err
}

// AddEventHandler implements cache.Informer.
func (i *informerOf) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.note(i.Informer.AddEventHandler(h))
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i *informerOf) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.note(i.Informer.AddEventHandlerWithResyncPeriod(h, period))
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *informerOf) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.note(i.Informer.AddEventHandlerWithOptions(h, o))
}

// clientOf reads only while the component runs.
type clientOf struct {
	client.Client
	ctx context.Context
}

// Get implements client.Reader.
func (c *clientOf) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("reading %s: the component rests: %w", key, err)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *clientOf) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("listing: the component rests: %w", err)
	}
	return c.Client.List(ctx, list, opts...)
}

// dropInformers stops the informers of required kinds that a last read may have started after the capability watcher
// removed them, unless the kinds are served again.
func (s *supervisor) dropInformers(mgr ctrl.Manager) {
	if s.satisfied() {
		return
	}
	for _, kind := range s.component.Requires {
		head := &metav1.PartialObjectMetadata{}
		head.SetGroupVersionKind(kind)
		objects := []client.Object{head}
		if typed, err := mgr.GetScheme().New(kind); err == nil {
			if whole, ok := typed.(client.Object); ok {
				objects = append(objects, whole)
			}
		}
		for _, object := range objects {
			if err := mgr.GetCache().RemoveInformer(context.Background(), object); err != nil {
				s.log.Error(err, "Removing the informer of a required API", "kind", kind.String())
			}
		}
	}
}
