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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// syncPatience is how long the first list of a kind may take before objects of it are read one by one.
	syncPatience = 10 * time.Second
	// syncPoll is the pause while it is waited for.
	syncPoll = 100 * time.Millisecond
	// readTimeout bounds a live read: a worker never waits longer for an API that does not answer.
	readTimeout = 10 * time.Second
)

// informers is the part of the cache that kinds needs.
type informers interface {
	client.Reader
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
	RemoveInformer(ctx context.Context, obj client.Object) error
}

// kinds reads components. Each kind is watched from its first use on, kinds that report completion with their status and
// all others as metadata. One that may not be watched is read from the API server, with a deadline, and blocks no worker.
type kinds struct {
	cache informers
	live  client.Reader
	// deleted reports whether the API of a kind was deleted, and with it all objects.
	deleted func(context.Context, schema.GroupVersionKind) bool
	clock   clock.PassiveClock
	log     logr.Logger
	// changed hears of every object of a watched kind that came, ended or went.
	changed toolscache.ResourceEventHandler

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]*watchedKind
}

// watchedKind is the state of the watch of one kind.
type watchedKind struct {
	since  time.Time
	synced func() bool
	// reported: the log says that the watch does not come to life.
	reported bool
}

// newObject returns an empty object in the form in which its kind is kept.
func newObject(kind schema.GroupVersionKind) client.Object {
	if _, known := judges[kind]; known {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}
	return capability.MetadataOf(kind)
}

// watch makes sure that a kind is watched if it can be. The cache answers for it, or may do so soon, or neither: an informer that may not
// list its kind keeps trying, with growing pauses.
func (k *kinds) watch(ctx context.Context, kind schema.GroupVersionKind) (answers, soon bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, known := k.watched[kind]
	switch {
	case !known:
		return false, k.start(ctx, kind)
	case w.synced():
		return true, false
	case k.clock.Since(w.since) < syncPatience:
		return false, true
	case !w.reported:
		w.reported = true
		k.log.Info("Objects of this kind cannot be watched; they are read one by one, so that changes are noticed later. "+
			"Grant the service account of the operator get, list and watch on them", "kind", kind.String())
	}
	return false, false
}

// start watches a kind. Where there can be no informer a live read says why: the kind is not served, for example.
func (k *kinds) start(ctx context.Context, kind schema.GroupVersionKind) bool {
	informer, err := k.cache.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return false
	}
	registration, err := informer.AddEventHandler(k.changed)
	if err != nil {
		return false // the informer was stopped just now
	}
	k.watched[kind] = &watchedKind{since: k.clock.Now(), synced: registration.HasSynced}
	return true
}

// sighting is what is known of an object.
type sighting struct {
	object client.Object // nil when it does not exist
	// live: the API server said so, and not the cache.
	live bool
	// blind: no watch tells of changes.
	blind bool
	// unreadable says why it may not be read, or that its kind is not served; whether it exists is not known then.
	unreadable error
}

// look reads an object from the cache, or from the API server where the cache does not know the kind. The error is a
// *reconciler.Wait while the cache is about to.
func (k *kinds) look(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (sighting, error) {
	answers, soon := k.watch(ctx, kind)
	if soon {
		return sighting{}, &reconciler.Wait{For: "the first list of " + kind.String(), Retry: syncPoll}
	}
	if !answers {
		return k.ask(ctx, kind, key)
	}
	object := newObject(kind)
	switch err := k.cache.Get(ctx, key, object); {
	case err == nil:
		return sighting{object: object}, nil
	case apierrors.IsNotFound(err):
		return sighting{}, nil
	default:
		return sighting{}, fmt.Errorf("reading %s %s from the cache: %w", kind.Kind, key, err)
	}
}

// ask reads an object from the API server.
func (k *kinds) ask(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (sighting, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	object := newObject(kind)
	out := sighting{live: true, blind: k.isBlind(kind)}
	switch err := k.live.Get(ctx, key, object); {
	case err == nil:
		out.object = object
	case unserved(err), apierrors.IsForbidden(err):
		out.unreadable, out.blind = err, true
	case apierrors.IsNotFound(err):
	default:
		return sighting{}, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return out, nil
}

// unserved tells whether the API server does not know the kind in this version, as while a CRD is replaced. That says nothing
// about objects, which may live on in another version.
func unserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// apiDeleted asks the API server whether it serves a kind in no version and has no CustomResourceDefinition of it.
func apiDeleted(mgr ctrl.Manager) func(context.Context, schema.GroupVersionKind) bool {
	return func(ctx context.Context, kind schema.GroupVersionKind) bool {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		mapper, err := apiutil.NewDynamicRESTMapper(mgr.GetConfig(), mgr.GetHTTPClient()) // that of the manager remembers what was served
		if err == nil {
			_, err = mapper.RESTMapping(kind.GroupKind())
		}
		if !meta.IsNoMatchError(err) {
			return false
		}
		definitions := &metav1.PartialObjectMetadataList{}
		definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		return mgr.GetAPIReader().List(ctx, definitions) == nil && !slices.ContainsFunc(definitions.Items, func(d metav1.PartialObjectMetadata) bool {
			return d.Name == resource.GroupResource().String()
		})
	}
}

// forgetDeleted ends the watch of a kind whose API was deleted, and reports whether it was.
func (k *kinds) forgetDeleted(ctx context.Context, kind schema.GroupVersionKind) bool {
	if !k.deleted(ctx, kind) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, watched := k.watched[kind]; watched && k.cache.RemoveInformer(ctx, newObject(kind)) == nil {
		delete(k.watched, kind)
	}
	return true
}

func (k *kinds) isBlind(kind schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, known := k.watched[kind]
	return !known || !w.synced()
}
