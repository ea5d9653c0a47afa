package managercache

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// IsCustomKind reports whether a kind may be defined by a CustomResourceDefinition.
func IsCustomKind(kind schema.GroupVersionKind) bool {
	return !clientgoscheme.Scheme.IsGroupRegistered(kind.Group)
}

// isCustomResource reports whether the kind of an object may be defined by a CustomResourceDefinition.
func isCustomResource(obj runtime.Object) bool {
	kind, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme) // fails for typed custom resources
	return err != nil || IsCustomKind(kind)
}

// listWatchCustomResources returns a ListerWatcher that selects objects by a label selector, which may be empty. It makes a reflector relist
// after the API server closed a watch before its timeout, as it does after a change of the CRD schema. Without a relist, unchanged objects
// would stay cached without newly added fields. The function onRelist is called before such a relist.
func listWatchCustomResources(lw toolscache.ListerWatcher, selector string, clk clock.PassiveClock, onRelist func()) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	var watchEnd time.Time // expected end of the last watch; a reflector sends one request at a time
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			watchEnd, options.LabelSelector = time.Time{}, selector
			return inner.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			started := clk.Now()
			if lists := options.SendInitialEvents != nil; !lists && started.Before(watchEnd) {
				onRelist()
				return nil, apierrors.NewResourceExpired("the API server closed the watch early")
			}
			watchEnd, options.LabelSelector = time.Time{}, selector
			events, err := inner.WatchWithContext(ctx, options)
			if err == nil && options.TimeoutSeconds != nil {
				watchEnd = started.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
			}
			return events, err
		},
	}, lw)
}
