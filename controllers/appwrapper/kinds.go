package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
}

// kinds reads components. Each kind is watched from its first use on, kinds that report completion with their status and
// all others as metadata. One that may not be watched is read from the API server, with a deadline, and blocks no worker.
type kinds struct {
	cache informers
	live  client.Reader
	clock clock.PassiveClock
	log   logr.Logger
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

// errPending says that the first list of a kind has not come yet.
var errPending = errors.New("the first list has not come yet")

// newObject returns an empty object in the form in which its kind is kept.
func newObject(kind schema.GroupVersionKind) client.Object {
	if _, known := judges[kind]; known {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}
	return metadataOf(kind)
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// watch makes sure that a kind is watched if it can be. It returns true when the cache answers for it, and errPending while
// it may soon. An informer that may not list its kind keeps trying, with growing pauses.
func (k *kinds) watch(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, known := k.watched[kind]
	switch {
	case !known:
		return false, k.start(ctx, kind)
	case w.synced():
		return true, nil
	case k.clock.Since(w.since) < syncPatience:
		return false, errPending
	case !w.reported:
		w.reported = true
		k.log.Info("Objects of this kind cannot be watched; they are read one by one, so that changes are noticed later. "+
			"Grant the service account of the operator get, list and watch on them", "kind", kind.String())
	}
	return false, nil
}

// start watches a kind. Without an error there is no informer, and a live read says why: the kind is not served, for example.
func (k *kinds) start(ctx context.Context, kind schema.GroupVersionKind) error {
	informer, err := k.cache.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil
	}
	registration, err := informer.AddEventHandler(k.changed)
	if err != nil {
		return nil // the informer was stopped just now
	}
	k.watched[kind] = &watchedKind{since: k.clock.Now(), synced: registration.HasSynced}
	return errPending
}

// sighting is what is known of an object.
type sighting struct {
	object client.Object // nil when it does not exist
	// live: the API server said so, and not the cache.
	live bool
	// blind: no watch tells of changes.
	blind bool
	// unreadable: it may not be read, or its kind is not served; whether it exists is not known. Then cause says why.
	unreadable bool
	cause      error
}

// look reads an object from the cache, or from the API server where the cache does not know the kind. The error is a
// *reconciler.Wait while the cache is about to.
func (k *kinds) look(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (sighting, error) {
	cached, err := k.watch(ctx, kind)
	if err != nil {
		return sighting{}, &reconciler.Wait{For: "the first list of " + kind.String(), Retry: syncPoll}
	}
	if !cached {
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
		out.unreadable, out.blind, out.cause = true, true, err
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

func (k *kinds) isBlind(kind schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, known := k.watched[kind]
	return !known || !w.synced()
}

// labelled lists, from the API server, the objects of a kind that bear the label of an AppWrapper.
func (k *kinds) labelled(ctx context.Context, kind schema.GroupVersionKind, in client.InNamespace, label client.MatchingLabels) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := k.live.List(ctx, list, in, label); err != nil {
		return nil, fmt.Errorf("looking for %s of the AppWrapper: %w", kind.Kind, err)
	}
	return list.Items, nil
}
