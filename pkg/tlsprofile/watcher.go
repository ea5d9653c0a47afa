package tlsprofile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// objectName is the one APIServer object that a cluster has.
	objectName = "cluster"
	// retryMin and retryMax bound the pauses after trouble, denied is the pause where asking again soon is futile.
	retryMin, retryMax, denied = time.Second, time.Minute, 10 * time.Minute
)

var resource = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}

// Watcher follows the cluster's TLS profile and puts it in force. It is a manager Runnable that runs on every replica.
type Watcher struct {
	listener *Listener
	client   dynamic.ResourceInterface
	clock    clock.Clock
	log      logr.Logger
	served   chan bool // the latest answer of SetServed that Start has not seen
	warned   string
}

// NewWatcher returns a Watcher that is idle until SetServed(true). It needs get, list and watch of
// apiservers.config.openshift.io, and makes do with Intermediate without them.
func NewWatcher(listener *Listener, client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	return &Watcher{listener: listener, client: client.Resource(resource), clock: clk, log: log, served: make(chan bool, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas listen too.
func (w *Watcher) NeedLeaderElection() bool { return false }

// SetServed says whether the cluster serves config.openshift.io. It never blocks; call it from one goroutine at a
// time.
func (w *Watcher) SetServed(served bool) {
	select {
	case <-w.served:
	default:
	}
	w.served <- served
}

// Start implements manager.Runnable. It returns when ctx ends and never with an error.
func (w *Watcher) Start(ctx context.Context) error {
	served, pause := false, time.Duration(0)
	for {
		var due <-chan time.Time
		if served {
			due = w.in(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case served = <-w.served:
			pause = 0
		case <-due:
			pause = w.next(w.follow(ctx), pause)
		}
	}
}

// in is the clock's After, at once for no pause at all.
func (w *Watcher) in(pause time.Duration) <-chan time.Time {
	if pause > 0 {
		return w.clock.After(pause)
	}
	now := make(chan time.Time, 1)
	now <- w.clock.Now()
	return now
}

// next logs trouble once and returns the pause until the next attempt. What is in force stays in force: an API
// server that is away says nothing about the profile.
func (w *Watcher) next(err error, last time.Duration) time.Duration {
	if err == nil || errors.Is(err, context.Canceled) {
		w.warned = ""
		return retryMin
	}
	if text := err.Error(); text != w.warned {
		w.warned = text
		w.log.Info("The cluster's TLS profile cannot be followed", "reason", text, "inForce", w.listener.Current().Name)
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		w.listener.Set(Intermediate())
		return denied
	}
	return min(max(2*last, retryMin), retryMax)
}

// follow reads the object and watches it until the watch ends.
func (w *Watcher) follow(ctx context.Context) error {
	selector := metav1.ListOptions{FieldSelector: "metadata.name=" + objectName}
	list, err := w.client.List(ctx, selector)
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	found := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == objectName })
	if found < 0 {
		w.take(nil)
	} else {
		w.take(&list.Items[found])
	}
	selector.ResourceVersion, selector.AllowWatchBookmarks = list.GetResourceVersion(), true
	watcher, err := w.client.Watch(ctx, selector)
	if err != nil {
		return fmt.Errorf("watching %s: %w", resource.GroupResource(), err)
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
			if err := w.handle(event); err != nil {
				return err
			}
		}
	}
}

func (w *Watcher) handle(event watch.Event) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watching %s: %w", resource.GroupResource(), apierrors.FromObject(event.Object))
	}
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || obj.GetName() != objectName {
		return nil
	}
	if event.Type == watch.Deleted {
		obj = nil
	}
	w.take(obj)
	return nil
}

// take puts the profile of the object in force; without an object that is Intermediate.
func (w *Watcher) take(obj *unstructured.Unstructured) {
	if obj == nil {
		obj = &unstructured.Unstructured{}
	}
	profile, unknown, err := FromAPIServer(obj)
	if err != nil {
		w.log.Info("The cluster's TLS profile is not usable, Intermediate takes its place", "reason", err.Error())
	}
	before := w.listener.Current()
	if reflect.DeepEqual(before, profile) {
		return
	}
	w.listener.Set(profile)
	w.log.Info("TLS profile changed", "from", before.Name, "to", profile.Name, "unsupportedCiphers", unknown)
}
