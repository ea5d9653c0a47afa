package models

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// feed is a source of requests for a controller: what it is told before the controller starts waits for that.
type feed struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	early []types.NamespacedName
}

// Start implements source.Source.
func (f *feed) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.mu.Lock()
	early := f.early
	f.queue, f.early = queue, nil
	f.mu.Unlock()
	f.add(early...)
	return nil
}

// String names the source in the controller's log.
func (f *feed) String() string { return "events of the mesh" }

// add never blocks. Keys that are queued already are not queued twice.
func (f *feed) add(keys ...types.NamespacedName) {
	f.mu.Lock()
	queue := f.queue
	if queue == nil {
		f.early = append(f.early, keys...)
	}
	f.mu.Unlock()
	if queue == nil {
		return
	}
	for _, key := range keys {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}
