package node

import (
	"context"
	"log"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// retryAfter is the pause after a failed reconcile, which may depend on another change.
const retryAfter = time.Second

// onChange calls a reconcile function whenever an object of the informers has changed, and again after an error. Changes during a
// reconcile cause one more.
func onChange(ctx context.Context, factory informers.SharedInformerFactory, pass func() error, watched ...cache.SharedIndexInformer) error {
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default: // a reconcile is due already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { signal() }, UpdateFunc: func(any, any) { signal() }, DeleteFunc: func(any) { signal() },
	}
	for _, informer := range watched {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		if err := pass(); err != nil {
			log.Print(err)
			time.AfterFunc(retryAfter, signal)
		}
	}
}
