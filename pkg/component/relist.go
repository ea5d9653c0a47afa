package component

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// custom reports whether the kind of an object may come from a CustomResourceDefinition.
func custom(obj runtime.Object) bool {
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return !clientgoscheme.Scheme.IsGroupRegistered(kind.Group)
	}
	_, _, err := clientgoscheme.Scheme.ObjectKinds(obj)
	return err != nil
}

// relisting lists again when the API server closes a watch before its time. It does that when the schema of a CRD changes. Objects that
// do not change would otherwise stay in the cache without the fields that the schema did not have.
func relisting(lw toolscache.ListerWatcher, clk clock.PassiveClock) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			began := clk.Now()
			events, err := inner.WatchWithContext(ctx, options)
			if err != nil || options.TimeoutSeconds == nil {
				return events, err
			}
			asked := time.Duration(*options.TimeoutSeconds) * time.Second
			return expiring(events, func() bool { return clk.Since(began) < asked }), nil
		},
	}, lw)
}

// expiring ends a watch with the error that makes a reflector list again, if it is closed early.
func expiring(inner watch.Interface, early func() bool) watch.Interface {
	events := make(chan watch.Event)
	outer := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer inner.Stop()
		if forward(inner, events, outer.StopChan()) || !early() {
			return
		}
		reconciler.RecordRelist()
		expired := apierrors.NewResourceExpired("the API server closed the watch early")
		select {
		case events <- watch.Event{Type: watch.Error, Object: &expired.ErrStatus}:
		case <-outer.StopChan():
		}
	}()
	return outer
}

// forward passes the events of a watch on until it is closed, or stopped, which it reports.
func forward(from watch.Interface, to chan<- watch.Event, stop <-chan struct{}) (stopped bool) {
	for {
		select {
		case event, open := <-from.ResultChan():
			if !open {
				return false
			}
			select {
			case to <- event:
			case <-stop:
				return true
			}
		case <-stop:
			return true
		}
	}
}
