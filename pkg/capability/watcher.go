package capability

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

const (
	// debounce combines the events of one installation, and gives a new definition time to be served.
	debounce = 300 * time.Millisecond
	// discoveryGracePeriod is how long discovery is polled until it lists the definitions of the informer, and how long a kind that it
	// omits still counts as served.
	discoveryGracePeriod = 30 * time.Second
	// minBackoff and maxBackoff limit the interval of polling during the grace period, and after discovery failed.
	minBackoff = 250 * time.Millisecond
	maxBackoff = 30 * time.Second
	// resyncPeriod is the interval of discovery with events of definitions, pollPeriod without them.
	resyncPeriod = 10 * time.Minute
	pollPeriod   = 30 * time.Second
	// initialTimeout limits the discovery call in New, and with it the delay of the start by an unresponsive API server.
	initialTimeout = 10 * time.Second
)

// Options of a Watcher. Discovery is required.
type Options struct {
	// Discovery must not be a caching client.
	Discovery discovery.DiscoveryInterface
	// Metadata lists and watches CustomResourceDefinitions. Without it, or without the permission, discovery is polled every 30 s.
	Metadata metadata.Interface
	// Cache is the manager's cache, from which informers of added and removed kinds are deleted. May be nil.
	Cache cache.Cache
	// Scheme maps kinds to their Go types in the cache.
	Scheme *runtime.Scheme
	// Kinds are the kinds to watch.
	Kinds []schema.GroupVersionKind
	// KubeRay lists and watches the webhook configuration of the platform's KubeRay. Nil if no component needs it.
	KubeRay dynamic.Interface
	// Clock is the real one if nil.
	Clock clock.Clock
	// Log receives changes and errors.
	Log logr.Logger
}

// Watcher maintains the Set. It is a manager Runnable that also runs on standby replicas.
type Watcher struct {
	options   Options
	discovery discovery.DiscoveryInterfaceWithContext
	groups    map[string]bool
	current   atomic.Pointer[Set] // nil until discovery succeeded and the presence of the platform's KubeRay is known
	events    chan struct{}

	listeners singleton.Listeners[Set]

	kubeRay        *singleton.Value[bool]
	kubeRayChanged chan struct{}

	// The fields below are used only by New and by the goroutine of Start.
	crds           *crdWatcher
	served         *Set                                             // the kinds of the last discovery; nil before
	knownVersions  map[schema.GroupVersion]bool                     // versions whose resources were listed, or which were omitted, at least once
	resources      map[schema.GroupVersionKind]schema.GroupResource // of kinds that discovery has listed
	omittedSince   map[schema.GroupVersionKind]time.Time            // start of the omission of kinds that were served
	consistent     bool                                             // the last discovery was complete and matched the definitions
	gracePeriodEnd time.Time                                        // discoveryGracePeriod after the last event
	backoff        wait.Backoff
}

// New returns a Watcher after one discovery call. A failed call is not an error: the set stays empty, and Start retries. For partial
// responses see servedKinds.
func New(options Options) *Watcher {
	options.Clock = cmp.Or[clock.Clock](options.Clock, clock.RealClock{})
	w := &Watcher{
		options:        options,
		discovery:      discovery.ToDiscoveryInterfaceWithContext(options.Discovery),
		groups:         map[string]bool{},
		events:         make(chan struct{}, 1),
		kubeRay:        newPlatformKubeRay(options),
		kubeRayChanged: make(chan struct{}, 1),
		knownVersions:  map[schema.GroupVersion]bool{},
		resources:      map[schema.GroupVersionKind]schema.GroupResource{},
		omittedSince:   map[schema.GroupVersionKind]time.Time{},
	}
	for _, k := range options.Kinds {
		w.groups[k.Group] = true
	}
	recordServed(options.Kinds, Set{})
	w.resetBackoff()
	ctx, cancel := context.WithTimeout(context.Background(), initialTimeout)
	defer cancel()
	if options.KubeRay != nil {
		w.kubeRay.Read(ctx)
	}
	w.refresh(ctx)
	return w
}

// Current returns the latest set. It is empty until discovery succeeded once.
func (w *Watcher) Current() Set { return ptr.Deref(w.current.Load(), Set{}) }

// Ready is a readiness check (healthz.Checker). It fails until discovery succeeded once.
func (w *Watcher) Ready(*http.Request) error {
	if w.current.Load() == nil {
		return errors.New("discovery has not answered yet, or the webhook configuration of KubeRay could not be read")
	}
	return nil
}

// Subscribe registers a listener for later changes until ctx ends. Listeners are called sequentially from one goroutine without locks, and
// must return quickly. To miss no change, subscribe before calling Current.
func (w *Watcher) Subscribe(ctx context.Context, listener func(Set)) {
	w.listeners.Subscribe(ctx, listener)
}

// OnChange calls the listener with the current set and with every later one until ctx ends. Calls are sequential and in order.
func (w *Watcher) OnChange(ctx context.Context, listener func(Set)) {
	var mu sync.Mutex
	notify := func(Set) {
		mu.Lock()
		defer mu.Unlock()
		listener(w.Current())
	}
	w.Subscribe(ctx, notify)
	notify(w.Current())
}

// Changes returns a source that enqueues the given object at every change.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	return w.listeners.EventSource(object, h)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks of standby replicas depend on the set.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start watches the cluster until ctx ends. It returns an error only if the informer cannot be created.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	if w.options.Metadata != nil {
		crds, err := newCRDWatcher(w.options.Metadata, w.groups, w.options.Log, func() { notify(w.events) })
		if err != nil {
			return err
		}
		w.crds = crds
		watchers.Go(func() { crds.informer.RunWithContext(ctx) })
	}
	if w.options.KubeRay != nil {
		w.kubeRay.Subscribe(ctx, func(bool) { notify(w.kubeRayChanged) })
		watchers.Go(func() { _ = w.kubeRay.Start(ctx) }) // always returns nil
	}

	due := w.options.Clock.Now().Add(w.nextInterval())
	for {
		timer := w.options.Clock.NewTimer(due.Sub(w.options.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-w.events:
			w.resetBackoff()
			w.gracePeriodEnd = w.options.Clock.Now().Add(discoveryGracePeriod)
			if debounced := w.options.Clock.Now().Add(debounce); debounced.Before(due) {
				due = debounced
			}
		case <-w.kubeRayChanged:
			if w.served != nil {
				w.publish(*w.served)
			}
		case <-timer.C():
			w.refresh(ctx)
			due = w.options.Clock.Now().Add(w.nextInterval())
		}
		timer.Stop()
	}
}

// notify records an event without blocking; concurrent events are combined.
func notify(events chan<- struct{}) {
	select {
	case events <- struct{}{}:
	default:
	}
}

// resetBackoff restarts the back-off with the shortest interval.
func (w *Watcher) resetBackoff() {
	w.backoff = wait.Backoff{Duration: minBackoff, Factor: 2, Cap: maxBackoff, Steps: math.MaxInt}
}

// refresh calls discovery and publishes the result.
func (w *Watcher) refresh(ctx context.Context) {
	result, err := readDiscovery(ctx, w.discovery, w.groups)
	if err != nil {
		w.consistent = false
		if !errors.Is(ctx.Err(), context.Canceled) { // the manager is stopping
			w.options.Log.Error(err, "Reading discovery; keeping the last known optional APIs")
		}
		return
	}
	for gv := range result.failed {
		w.options.Log.V(1).Info("Keeping the last known state of an API that discovery could not describe", "groupVersion", gv.String())
	}
	next, held := w.servedKinds(result)
	w.consistent = len(result.failed) == 0 && !held && (w.crds.agreesWith(result) || !w.options.Clock.Now().Before(w.gracePeriodEnd))
	w.publish(next)
}

// servedKinds returns the set for a discovery result. A kind whose definition was deleted is not served, whatever discovery returns. A kind
// that was served and is omitted stays while its version cannot be read, and during the grace period, for which held is true.
//
// All kinds of a version that is listed but was never readable count as served: the server of an aggregated API may be down when the
// manager starts. Kinds wrongly missing would make controllers prune objects; for kinds wrongly served requests fail and are retried.
func (w *Watcher) servedKinds(result discoveryResult) (next Set, held bool) {
	previous, now := ptr.Deref(w.served, Set{}), w.options.Clock.Now()
	var kinds []schema.GroupVersionKind
	for _, k := range w.options.Kinds {
		plural, listed := result.plurals[k]
		failed := result.failed.Has(k.GroupVersion())
		unknown := !w.knownVersions[k.GroupVersion()]
		if listed {
			w.resources[k] = schema.GroupResource{Group: k.Group, Resource: plural}
		}
		switch {
		case w.crds.isRemoved(w.resources[k]):
		case listed, failed && (unknown || previous.Has(k)):
			kinds = append(kinds, k)
		case !unknown && previous.Has(k) && w.inGracePeriod(k, now):
			kinds, held = append(kinds, k), true
			continue
		}
		delete(w.omittedSince, k)
	}
	for _, k := range w.options.Kinds {
		if !result.failed.Has(k.GroupVersion()) {
			w.knownVersions[k.GroupVersion()] = true
		}
	}
	return NewSet(kinds...), held
}

// inGracePeriod reports whether a kind has been omitted for less than the grace period.
func (w *Watcher) inGracePeriod(k schema.GroupVersionKind, now time.Time) bool {
	if w.omittedSince[k].IsZero() {
		w.omittedSince[k] = now
	}
	return now.Sub(w.omittedSince[k]) < discoveryGracePeriod
}

// publish stores the set and notifies the listeners, once the presence of the platform's KubeRay is known. Informers are removed before a
// kind is added, so that watches start with new ones, and after a kind is removed, so that no watch starts them again.
func (w *Watcher) publish(served Set) {
	w.served = &served
	platformKubeRay, known := w.kubeRay.Current()
	if !known {
		return
	}
	previous := w.Current()
	next := served.WithPlatformKubeRay(platformKubeRay)
	added, removed := next.difference(previous), previous.difference(next)
	w.removeInformers(added)
	w.current.Store(&next)
	if next.Equal(previous) {
		return
	}
	recordServed(w.options.Kinds, next)
	w.removeInformers(removed)
	w.options.Log.Info("Optional APIs or KubeRay changed", "gained", NewSet(added...).String(), "lost", NewSet(removed...).String(), "platformKubeRay", platformKubeRay)
	w.listeners.Notify(next)
}

// nextInterval returns the time until the next discovery call without an event.
func (w *Watcher) nextInterval() time.Duration {
	if !w.consistent {
		return w.backoff.Step()
	}
	w.resetBackoff()
	if w.crds.isSynced() {
		return wait.Jitter(resyncPeriod, 0.1)
	}
	return pollPeriod
}
