// Package singleton keeps watch over one named object, or those of one name or label in all namespaces, whose API may be missing or
// forbidden, where an informer of the manager's cache would wait for ever or keep more than is needed.
package singleton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// retryMin and retryMax bound the pauses after trouble, denied is the longest where asking again is futile. After a pause of absent an
// API that is listed as served and not found still counts as missing. After one of refused a refusal counts as meant though the
// object was read before: an API server that has just started refuses everything until it has read the roles.
const minBackoff, maxBackoff, forbiddenBackoff, notFoundGracePeriod, forbiddenGracePeriod = time.Second, time.Minute, 10 * time.Minute, 4 * time.Second, 8 * time.Second

// Options say what is followed. All but Denied are required, and one of Take and TakeAll.
type Options struct {
	// Client reads objects of the resource, in the namespace of the object if it has one; in all of them for TakeAll.
	Client dynamic.ResourceInterface
	// Resource is named in messages.
	Resource schema.GroupResource
	// Name of the object.
	Name string
	// Labels, with TakeAll and in place of a name, select the objects.
	Labels string
	// Clock measures the pauses.
	Clock clock.Clock
	// Log gets trouble, once for each kind of trouble in a row.
	Log logr.Logger
	// OnUpdate is called with every state of the object, nil while there is none, always from the goroutine of Start or Read. It
	// must not keep or change the object.
	OnUpdate func(*unstructured.Unstructured)
	// OnList is Take for the objects of that name or label in all namespaces, ordered by namespace and name: it is called with all that
	// there are.
	OnList func([]*unstructured.Unstructured)
	// Condense, where it is set, takes out of each object what is not to be held in memory.
	Transform func(*unstructured.Unstructured)
	// OnUnavailable is called, from the same goroutine, when the object may not be read or its API is not there.
	OnUnavailable func()
}

// Watcher watches one object. It is a manager Runnable that runs on every replica, and idle until SetServed(true). It
// needs the right to list and watch the object by its name.
type Watcher struct {
	Options
	served      chan bool // the latest answer of SetServed that Start has not seen
	lastError   string
	readAllowed bool                                                // it was allowed once
	objects     map[types.NamespacedName]*unstructured.Unstructured // what Take or TakeAll gets
}

// New returns a Follower that is idle.
func New(o Options) *Watcher {
	return &Watcher{Options: o, served: make(chan bool, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas follow too.
func (f *Watcher) NeedLeaderElection() bool { return false }

// SetServed says whether the cluster serves the API of the object. It never blocks; call it from one goroutine at a time.
func (f *Watcher) SetServed(served bool) {
	select {
	case <-f.served:
	default:
	}
	f.served <- served
}

// Read reads the object once, for those who cannot wait for Start. It must have returned before Start is called.
func (f *Watcher) Read(ctx context.Context) {
	_, err := f.list(ctx)
	f.nextDelay(err, 0)
}

// Start implements manager.Runnable. It returns when ctx ends and never with an error.
func (f *Watcher) Start(ctx context.Context) error {
	var due <-chan time.Time
	var pause time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case served := <-f.served:
			due, pause = nil, 0
			if !served {
				continue
			}
		case <-due:
		}
		pause = f.nextDelay(f.listAndWatch(ctx), pause)
		due = f.Clock.After(pause)
	}
}

// next logs trouble once and returns the pause until the next attempt. What was taken stays: an API server that is away
// says nothing about the object.
func (f *Watcher) nextDelay(err error, last time.Duration) time.Duration {
	if err == nil || errors.Is(err, context.Canceled) {
		f.lastError = ""
		return minBackoff
	}
	if text := err.Error(); text != f.lastError {
		f.lastError = text
		f.Log.Info("An object cannot be followed; what is known of it stays in force", "object", cmp.Or(f.Name, f.Labels), "reason", text)
	}
	forbidden := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	// Of several API servers, one lists an API that is new a moment before the others serve it.
	if (forbidden && (!f.readAllowed || last >= forbiddenGracePeriod) || apierrors.IsNotFound(err) && last >= notFoundGracePeriod) && f.OnUnavailable != nil {
		f.OnUnavailable()
	}
	longest := maxBackoff
	if forbidden {
		longest = forbiddenBackoff
	}
	return min(max(2*last, minBackoff), longest)
}

// list reads the object, and returns from where to watch it.
func (f *Watcher) list(ctx context.Context) (metav1.ListOptions, error) {
	selector := metav1.ListOptions{FieldSelector: "metadata.name=" + f.Name}
	if f.Labels != "" {
		selector = metav1.ListOptions{LabelSelector: f.Labels}
	}
	list, err := f.Client.List(ctx, selector)
	if err != nil {
		return selector, fmt.Errorf("listing %s: %w", f.Resource, err)
	}
	f.readAllowed = true
	f.replaceObjects(list.Items)
	selector.ResourceVersion, selector.AllowWatchBookmarks = list.GetResourceVersion(), true
	return selector, nil
}

// follow reads the object and watches it until the watch ends.
func (f *Watcher) listAndWatch(ctx context.Context) error {
	from, err := f.list(ctx)
	if err != nil {
		return err
	}
	watcher, err := f.Client.Watch(ctx, from)
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.Resource, err)
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
			if err := f.handleEvent(event); err != nil {
				return err
			}
		}
	}
}

func (f *Watcher) handleEvent(event watch.Event) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watching %s: %w", f.Resource, apierrors.FromObject(event.Object))
	}
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || !f.matches(obj) {
		return nil
	}
	f.storeObject(obj)
	if event.Type == watch.Deleted {
		delete(f.objects, client.ObjectKeyFromObject(obj))
	}
	f.notify()
	return nil
}

// takeList takes what a list says.
func (f *Watcher) replaceObjects(items []unstructured.Unstructured) {
	f.objects = map[types.NamespacedName]*unstructured.Unstructured{}
	for i := range items {
		if f.matches(&items[i]) {
			f.storeObject(&items[i])
		}
	}
	f.notify()
}

// means reports whether an object is one of those that are followed.
func (f *Watcher) matches(o *unstructured.Unstructured) bool {
	return f.Labels != "" || o.GetName() == f.Name
}

func (f *Watcher) storeObject(o *unstructured.Unstructured) {
	if f.Transform != nil {
		f.Transform(o)
	}
	f.objects[client.ObjectKeyFromObject(o)] = o
}

// handOver passes on what there is. A single object is not held in memory.
func (f *Watcher) notify() {
	all := slices.SortedFunc(maps.Values(f.objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if f.OnList != nil {
		f.OnList(all)
		return
	}
	clear(f.objects)
	if len(all) == 0 {
		f.OnUpdate(nil)
		return
	}
	f.OnUpdate(all[0])
}
