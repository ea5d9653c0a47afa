package node

import (
	"context"
	"log"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const retryDelay = time.Second

// onChange calls reconcile after every change of an object of the informers, and again after an error. Changes during a reconcile
// cause one more.
func onChange(ctx context.Context, factory informers.SharedInformerFactory, reconcile func() error, watched ...cache.SharedIndexInformer) error {
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default: // a reconcile is pending
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
		if err := reconcile(); err != nil {
			log.Print(err)
			time.AfterFunc(retryDelay, signal)
		}
	}
}
