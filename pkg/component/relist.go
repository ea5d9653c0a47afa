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

// isCustomResource reports whether the kind of an object may be defined by a CustomResourceDefinition.
func isCustomResource(obj runtime.Object) bool {
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return !clientgoscheme.Scheme.IsGroupRegistered(kind.Group)
	}
	_, _, err := clientgoscheme.Scheme.ObjectKinds(obj)
	return err != nil
}

// withRelist makes reflectors relist when the API server closes a watch early, as it does after a change of the CRD schema. Unchanged
// objects would stay cached without newly added fields otherwise.
func withRelist(lw toolscache.ListerWatcher, clk clock.PassiveClock) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			started := clk.Now()
			events, err := inner.WatchWithContext(ctx, options)
			if err != nil || options.TimeoutSeconds == nil {
				return events, err
			}
			timeout := time.Duration(*options.TimeoutSeconds) * time.Second
			return expireIfClosedEarly(events, func() bool { return clk.Since(started) < timeout }), nil
		},
	}, lw)
}

// expireIfClosedEarly ends a watch that was closed early with the error that makes a reflector relist.
func expireIfClosedEarly(inner watch.Interface, closedEarly func() bool) watch.Interface {
	events := make(chan watch.Event)
	outer := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer inner.Stop()
		if forward(inner, events, outer.StopChan()) || !closedEarly() {
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

// forward copies the events of a watch, and reports whether it was stopped before it was closed.
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
