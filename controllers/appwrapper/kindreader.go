package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// syncTimeout is the maximum duration of the first list of a kind; after that its objects are read one by one.
	syncTimeout = 10 * time.Second
	// syncPollInterval is the interval of polling for the first list.
	syncPollInterval = 100 * time.Millisecond
	// readTimeout limits live reads: an API that does not respond must not block a worker.
	readTimeout = 10 * time.Second
)

// informers is the part of the cache that kindReader uses.
type informers interface {
	client.Reader
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
	RemoveInformer(ctx context.Context, obj client.Object) error
}

// kindReader reads components. It starts a watch on the first use of a kind: of whole objects for kinds in statusReaders, of metadata for
// all others. Objects of a kind that cannot be watched are read from the API server with a timeout.
type kindReader struct {
	cache     informers
	apiReader client.Reader
	// apiDeleted reports whether the API of a kind was deleted, and with it all objects.
	apiDeleted func(context.Context, schema.GroupVersionKind) bool
	clock      clock.PassiveClock
	log        logr.Logger
	// handler receives the events of all watched kinds.
	handler toolscache.ResourceEventHandler

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]*watchedKind
}

// watchedKind is the state of the watch of one kind.
type watchedKind struct {
	startedAt time.Time
	synced    func() bool
	// isLogged reports whether it was logged that the watch does not sync.
	isLogged bool
}

// newObject returns an empty object of the type that the cache holds for the kind.
func newObject(kind schema.GroupVersionKind) client.Object {
	if _, ok := statusReaders[kind]; ok {
		return resources.NewUnstructured(kind)
	}
	return objectmeta.New(kind)
}

// ensureWatch starts a watch of the kind if possible. It reports whether the cache has synced, or may sync within syncTimeout: an
// informer without permission retries forever, with back-off.
func (k *kindReader) ensureWatch(ctx context.Context, kind schema.GroupVersionKind) (synced, syncing bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	watch, known := k.watched[kind]
	switch {
	case !known:
		return false, k.startWatch(ctx, kind)
	case watch.synced():
		return true, false
	case k.clock.Since(watch.startedAt) < syncTimeout:
		return false, true
	case !watch.isLogged:
		watch.isLogged = true
		k.log.Info("Objects of this kind cannot be watched and are read one by one, so changes are noticed later. "+
			"Grant the ServiceAccount of the operator the verbs get, list and watch on them", "kind", kind.String())
	}
	return false, false
}

// startWatch starts a watch of a kind and reports whether it succeeded. After a failure, getLive returns the reason, such as an unserved kind.
func (k *kindReader) startWatch(ctx context.Context, kind schema.GroupVersionKind) bool {
	informer, err := k.cache.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return false
	}
	registration, err := informer.AddEventHandler(k.handler)
	if err != nil {
		return false // the informer was stopped concurrently
	}
	k.watched[kind] = &watchedKind{startedAt: k.clock.Now(), synced: registration.HasSynced}
	return true
}

// observedObject is the result of a read.
type observedObject struct {
	object client.Object // nil if it does not exist
	// live reports whether the result is from the API server and not from the cache.
	live bool
	// unwatched reports whether changes of the object send no event.
	unwatched bool
	// unreadable is the error if reading is forbidden or the kind is not served. It is then unknown whether the object exists.
	unreadable error
}

// get reads an object from the cache, or from the API server if the kind is not watched. It returns a *reconciler.Wait while the cache syncs.
func (k *kindReader) get(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (observedObject, error) {
	synced, syncing := k.ensureWatch(ctx, kind)
	if syncing {
		return observedObject{}, &reconciler.Wait{For: "the first list of " + kind.String(), Retry: syncPollInterval}
	}
	if !synced {
		return k.getLive(ctx, kind, key)
	}
	object := newObject(kind)
	switch err := k.cache.Get(ctx, key, object); {
	case err == nil:
		return observedObject{object: object}, nil
	case apierrors.IsNotFound(err):
		return observedObject{}, nil
	default:
		return observedObject{}, fmt.Errorf("reading %s %s from the cache: %w", kind.Kind, key, err)
	}
}

// getLive reads an object from the API server.
func (k *kindReader) getLive(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (observedObject, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	object := newObject(kind)
	observed := observedObject{live: true, unwatched: k.isUnwatched(kind)}
	switch err := k.apiReader.Get(ctx, key, object); {
	case err == nil:
		observed.object = object
	case isUnserved(err), apierrors.IsForbidden(err):
		observed.unreadable, observed.unwatched = err, true
	case apierrors.IsNotFound(err):
	default:
		return observedObject{}, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return observed, nil
}

// isUnserved reports whether the API server does not serve the kind in this version, for example while a CRD is replaced. Objects may exist
// in another version.
func isUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// apiDeletedFunc returns a function that reports whether no version of a kind is served and no CustomResourceDefinition exists.
func apiDeletedFunc(mgr ctrl.Manager) func(context.Context, schema.GroupVersionKind) bool {
	return func(ctx context.Context, kind schema.GroupVersionKind) bool {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		mapper, err := apiutil.NewDynamicRESTMapper(mgr.GetConfig(), mgr.GetHTTPClient()) // the manager's mapper caches deleted APIs
		if err == nil {
			_, err = mapper.RESTMapping(kind.GroupKind())
		}
		if !meta.IsNoMatchError(err) {
			return false
		}
		definitions := objectmeta.NewList(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		return mgr.GetAPIReader().List(ctx, definitions) == nil && !slices.ContainsFunc(definitions.Items, func(d metav1.PartialObjectMetadata) bool {
			return d.Name == resource.GroupResource().String()
		})
	}
}

// stopIfAPIDeleted stops the watch of a kind whose API was deleted, and reports whether the API was deleted.
func (k *kindReader) stopIfAPIDeleted(ctx context.Context, kind schema.GroupVersionKind) bool {
	if !k.apiDeleted(ctx, kind) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, watched := k.watched[kind]; watched && k.cache.RemoveInformer(ctx, newObject(kind)) == nil {
		delete(k.watched, kind)
	}
	return true
}

func (k *kindReader) isUnwatched(kind schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	watch, known := k.watched[kind]
	return !known || !watch.synced()
}
