// Package singleton watches a single object by name, or with OnList all objects with a name or a label selector, without an informer of
// the manager's cache. Unlike an informer it tolerates an API that is not installed and a missing permission, and holds no other objects.
package singleton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	minBackoff       = time.Second
	maxBackoff       = time.Minute
	forbiddenBackoff = 10 * time.Minute
	// minBackoffForNotFound is the backoff from which NotFound means that the API is not served: API servers serve a CRD at different times.
	minBackoffForNotFound = 4 * time.Second
	// minBackoffForForbidden is the backoff from which Forbidden is permanent although the object was read before: an API
	// server that has just started denies all requests until it has loaded the roles.
	minBackoffForForbidden = 8 * time.Second
)

// Options configure a Watcher. Transform and OnUnavailable are optional. One of OnUpdate and OnList, one of Name and Labels, and all other
// fields are required.
type Options struct {
	// Client accesses a cluster-scoped resource, or a namespaced resource in one namespace; for OnList also in all namespaces.
	Client dynamic.ResourceInterface
	// Resource is used in error messages.
	Resource schema.GroupResource
	// Name is the name of the object.
	Name string
	// Labels is a label selector that replaces Name for OnList.
	Labels string
	Clock  clock.Clock
	// Log receives each error once until a watch succeeds or another error occurs.
	Log logr.Logger
	// OnUpdate is called with each version of the object, or with nil when it does not exist. Calls come from Start, Read or ReadOnce and never
	// overlap. OnUpdate must not modify or retain the object, or call the Watcher.
	OnUpdate func(*unstructured.Unstructured)
	// OnList is called with all objects with that name or label after each change, ordered by namespace and name.
	OnList func([]*unstructured.Unstructured)
	// Transform, if set, removes fields of an object before OnUpdate or OnList receives it.
	Transform func(*unstructured.Unstructured)
	// OnUnavailable, if set, is called from Start or Read when the API is not served or reading it is forbidden.
	OnUnavailable func()
}

// Watcher watches one object, or several for OnList, on every replica. It is a manager.Runnable that is idle until SetServed(true). It
// needs the permission to list and watch the resource.
type Watcher struct {
	Options
	served     chan bool // the last value of SetServed, until Start receives it
	lastError  string
	lastReason metav1.StatusReason // of lastError
	listed     atomic.Bool         // a list succeeded

	mu      sync.Mutex // held during lists, OnUpdate and OnList
	objects map[types.NamespacedName]*unstructured.Unstructured
}

// New returns an idle Watcher.
func New(o Options) *Watcher {
	return &Watcher{Options: o, served: make(chan bool, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas watch too.
func (w *Watcher) NeedLeaderElection() bool { return false }

// SetServed sets whether the cluster serves the API. It never blocks and must not be called concurrently.
func (w *Watcher) SetServed(served bool) {
	select {
	case <-w.served:
	default:
	}
	w.served <- served
}

// Read is ReadOnce, but logs the error and may call OnUnavailable. It must return before Start is called.
func (w *Watcher) Read(ctx context.Context) { w.nextDelay(w.ReadOnce(ctx), 0) }

// ReadOnce lists the object unless a list has succeeded before. It is safe for concurrent use, even while Start runs.
func (w *Watcher) ReadOnce(ctx context.Context) error {
	if w.listed.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listed.Load() {
		return nil
	}
	_, err := w.list(ctx)
	return err
}

// Start implements manager.Runnable. It returns nil when ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	var timer <-chan time.Time
	var backoff time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case served := <-w.served:
			timer, backoff = nil, 0
			if !served {
				continue
			}
		case <-timer:
		}
		backoff = w.nextDelay(w.listAndWatch(ctx), backoff)
		timer = w.Clock.After(backoff)
	}
}

// nextDelay logs a new error, may call OnUnavailable, and returns the backoff, which starts again when the reason of the error changes.
func (w *Watcher) nextDelay(err error, last time.Duration) time.Duration {
	if err == nil || errors.Is(err, context.Canceled) {
		w.lastError, w.lastReason = "", ""
		return minBackoff
	}
	if reason := apierrors.ReasonForError(err); reason != w.lastReason {
		w.lastReason, last = reason, 0
	}
	if text := err.Error(); text != w.lastError {
		w.lastError = text
		w.Log.Info("An object cannot be watched; it is read again later", "object", cmp.Or(w.Name, w.Labels), "reason", text)
	}
	forbidden := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	if (forbidden && (!w.listed.Load() || last >= minBackoffForForbidden) || apierrors.IsNotFound(err) && last >= minBackoffForNotFound) && w.OnUnavailable != nil {
		w.OnUnavailable()
	}
	limit := maxBackoff
	if forbidden {
		limit = forbiddenBackoff
	}
	return min(max(2*last, minBackoff), limit)
}

// list lists the object and returns the options of the subsequent watch. The caller must hold w.mu.
func (w *Watcher) list(ctx context.Context) (metav1.ListOptions, error) {
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + w.Name}
	if w.Labels != "" {
		options = metav1.ListOptions{LabelSelector: w.Labels}
	}
	list, err := w.Client.List(ctx, options)
	if err != nil {
		return options, fmt.Errorf("listing %s: %w", w.Resource, err)
	}
	w.replaceObjects(list.Items)
	w.listed.Store(true)
	options.ResourceVersion, options.AllowWatchBookmarks = list.GetResourceVersion(), true
	return options, nil
}

// listAndWatch lists the object and watches it until the watch ends.
func (w *Watcher) listAndWatch(ctx context.Context) error {
	w.mu.Lock()
	options, err := w.list(ctx)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	watcher, err := w.Client.Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching %s: %w", w.Resource, err)
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.ResultChan():
			if !open {
				return nil
			}
			if err := w.handleEvent(event); err != nil {
				return err
			}
		}
	}
}

func (w *Watcher) handleEvent(event watch.Event) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watching %s: %w", w.Resource, apierrors.FromObject(event.Object))
	}
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || !w.matches(obj) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storeObject(obj)
	if event.Type == watch.Deleted {
		delete(w.objects, client.ObjectKeyFromObject(obj))
	}
	w.notify()
	return nil
}

// replaceObjects stores the result of a list.
func (w *Watcher) replaceObjects(items []unstructured.Unstructured) {
	w.objects = map[types.NamespacedName]*unstructured.Unstructured{}
	for i := range items {
		if w.matches(&items[i]) {
			w.storeObject(&items[i])
		}
	}
	w.notify()
}

// matches reports whether an object is watched.
func (w *Watcher) matches(o *unstructured.Unstructured) bool {
	return w.Labels != "" || o.GetName() == w.Name
}

func (w *Watcher) storeObject(o *unstructured.Unstructured) {
	if w.Transform != nil {
		w.Transform(o)
	}
	w.objects[client.ObjectKeyFromObject(o)] = o
}

// notify calls OnList or OnUpdate. The object of OnUpdate is not stored.
func (w *Watcher) notify() {
	all := slices.SortedFunc(maps.Values(w.objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if w.OnList != nil {
		w.OnList(all)
		return
	}
	clear(w.objects)
	if len(all) == 0 {
		w.OnUpdate(nil)
		return
	}
	w.OnUpdate(all[0])
}
