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
func relisting(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			began := time.Now()
			events, err := inner.WatchWithContext(ctx, options)
			if err != nil || options.TimeoutSeconds == nil {
				return events, err
			}
			return expiring(events, began.Add(time.Duration(*options.TimeoutSeconds)*time.Second)), nil
		},
	}, lw)
}

// expiring ends a watch that is closed before the deadline with the error "expired".
func expiring(inner watch.Interface, deadline time.Time) watch.Interface {
	out := make(chan watch.Event)
	outer := watch.NewProxyWatcher(out)
	send := func(event watch.Event) bool {
		select {
		case out <- event:
			return true
		case <-outer.StopChan():
			return false
		}
	}
	go func() {
		defer close(out)
		defer inner.Stop()
		for {
			select {
			case event, open := <-inner.ResultChan():
				if open {
					if !send(event) {
						return
					}
					continue
				}
				if time.Now().Before(deadline) {
					reconciler.NoteRelist()
					expired := apierrors.NewResourceExpired("the API server closed the watch early")
					send(watch.Event{Type: watch.Error, Object: &expired.ErrStatus})
				}
				return
			case <-outer.StopChan():
				return
			}
		}
	}()
	return outer
}
