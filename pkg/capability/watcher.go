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
	// debounce lets the events of one installation gather, and gives a new definition the moment it needs until it
	// is served.
	debounce = 300 * time.Millisecond
	// window is how long discovery is queried again until it lists the definitions that were seen, and how long a kind that it
	// leaves out still counts as served.
	discoveryGracePeriod = 30 * time.Second
	// retryMin and retryMax bound the pauses meanwhile, and after discovery failed.
	minBackoff, maxBackoff = 250 * time.Millisecond, 30 * time.Second
	// slowPeriod is the safety net under the events, pollPeriod replaces them where they are not allowed.
	resyncPeriod, pollPeriod = 10 * time.Minute, 30 * time.Second
	// firstTimeout bounds the reading in New, so that an API server that does not answer delays the start only so
	// long.
	initialTimeout = 10 * time.Second
)

// Options of a Watcher. Discovery is required.
type Options struct {
	// Discovery asks the API server; it must not be a caching client.
	Discovery discovery.DiscoveryInterface
	// Metadata follows the names of CustomResourceDefinitions, for which it needs the permission to list and watch them. Without
	// it, or without the permission, discovery is polled every 30 s.
	Metadata metadata.Interface
	// Cache is the manager's cache. Informers of kinds that come or go are removed from it. May be nil.
	Cache cache.Cache
	// Scheme tells the typed representation of kinds in the cache.
	Scheme *runtime.Scheme
	// Kinds to follow.
	Kinds []schema.GroupVersionKind
	// KubeRay follows the KubeRay of the platform, for which it needs the permission to list and watch its webhook configuration. May be
	// nil, where nothing depends on it.
	KubeRay dynamic.Interface
	// Clock drives every pause; the real one when nil.
	Clock clock.Clock
	// Log receives changes and troubles.
	Log logr.Logger
}

// Watcher keeps a Set current. It is a manager Runnable that also runs on standby replicas.
type Watcher struct {
	options   Options
	discovery discovery.DiscoveryInterfaceWithContext
	groups    map[string]bool
	current   atomic.Pointer[Set] // nil until discovery has answered, and the KubeRay of the platform is known
	events    chan struct{}       // an event arrived

	listeners singleton.Listeners[Set]

	kubeRay *platformKubeRay

	// What follows belongs to the goroutine of Start, and to New before.
	crds           *crdWatcher
	served         *Set                                             // the kinds of the last answer of discovery; nil before
	knownVersions  map[schema.GroupVersion]bool                     // what discovery has described or left out at least once
	resources      map[schema.GroupVersionKind]schema.GroupResource // of kinds that discovery has listed
	omittedSince   map[schema.GroupVersionKind]time.Time            // since when discovery leaves out what was served
	consistent     bool                                             // the last reading was complete and agreed with the definitions
	gracePeriodEnd time.Time                                        // the end of the window after the last event
	backoff        wait.Backoff
}

// New returns a Watcher that has asked discovery once. Failing discovery is not an error: the set stays empty, and
// Start tries again. In a partial answer, what is announced and cannot be described counts as served, see evaluate.
func New(options Options) *Watcher {
	options.Clock = cmp.Or[clock.Clock](options.Clock, clock.RealClock{})
	w := &Watcher{
		options:       options,
		discovery:     discovery.ToDiscoveryInterfaceWithContext(options.Discovery),
		groups:        map[string]bool{},
		events:        make(chan struct{}, 1),
		knownVersions: map[schema.GroupVersion]bool{},
		resources:     map[schema.GroupVersionKind]schema.GroupResource{},
		omittedSince:  map[schema.GroupVersionKind]time.Time{},
	}
	for _, k := range options.Kinds {
		w.groups[k.Group] = true
	}
	recordServed(options.Kinds, Set{})
	w.resetBackoff()
	ctx, cancel := context.WithTimeout(context.Background(), initialTimeout)
	defer cancel()
	if w.kubeRay = newPlatformKubeRay(w.options); w.kubeRay != nil {
		w.kubeRay.Read(ctx)
	}
	w.refresh(ctx)
	return w
}

// Current returns the latest snapshot. It is empty until discovery answered once.
func (w *Watcher) Current() Set { return ptr.Deref(w.current.Load(), Set{}) }

// Ready is a readiness check (healthz.Checker): it fails until discovery answered once.
func (w *Watcher) Ready(*http.Request) error {
	if w.current.Load() == nil {
		return errors.New("discovery has not answered yet, or the webhook configuration of KubeRay could not be read")
	}
	return nil
}

// Subscribe registers a listener for every later change, until ctx ends. Listeners are called one after the other, outside of
// locks, from one goroutine: they must return soon. To miss nothing, subscribe first and look at Current afterwards.
func (w *Watcher) Subscribe(ctx context.Context, listener func(Set)) {
	w.listeners.Subscribe(ctx, listener)
}

// Follow calls the function with the set as it is now, and with every later one until ctx ends: one after the other, none missed, and
// an older one never after a newer one.
func (w *Watcher) OnChange(ctx context.Context, tell func(Set)) {
	var order sync.Mutex
	latest := func(Set) {
		order.Lock()
		defer order.Unlock()
		tell(w.Current())
	}
	w.Subscribe(ctx, latest)
	latest(w.Current())
}

// Changes is a source that wakes a controller with the given object at every change while it runs.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	return w.listeners.Changes(object, h)
}

// NeedLeaderElection makes standby replicas follow too, since webhooks and late starts depend on the set.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start follows the cluster until ctx ends. It returns an error only when the followers cannot be built.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel()
	if w.options.Metadata != nil {
		d, err := newCRDWatcher(w.options.Metadata, w.groups, w.options.Log, w.notifyEvent)
		if err != nil {
			return err
		}
		w.crds = d
		followers.Go(func() { d.informer.RunWithContext(ctx) })
	}
	if w.kubeRay != nil {
		followers.Go(func() { _ = w.kubeRay.Start(ctx) }) // it never fails
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
			if soon := w.options.Clock.Now().Add(debounce); soon.Before(due) {
				due = soon
			}
		case <-w.kubeRay.changes():
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

// signal notes an event without ever blocking; events that come together are one.
func (w *Watcher) notifyEvent() {
	select {
	case w.events <- struct{}{}:
	default:
	}
}

// begin lets the pauses grow from the shortest.
func (w *Watcher) resetBackoff() {
	w.backoff = wait.Backoff{Duration: minBackoff, Factor: 2, Cap: maxBackoff, Steps: math.MaxInt}
}

// refresh asks discovery and publishes what it learnt.
func (w *Watcher) refresh(ctx context.Context) {
	answer, err := readDiscovery(ctx, w.discovery, w.groups)
	if err != nil {
		w.consistent = false
		if !errors.Is(ctx.Err(), context.Canceled) { // the program ends
			w.options.Log.Error(err, "Reading discovery; keeping the last known optional APIs")
		}
		return
	}
	for gv, cause := range answer.failed {
		w.options.Log.V(1).Info("Keeping the last known state of an API that discovery could not describe",
			"groupVersion", gv.String(), "cause", cause.Error())
	}
	next, held := w.servedKinds(answer)
	w.consistent = len(answer.failed) == 0 && !held && (w.crds.agreesWith(answer) || !w.options.Clock.Now().Before(w.gracePeriodEnd))
	w.publish(next)
}

// evaluate turns an answer into a set. A kind whose definition went is not served, whatever discovery says. One that was served and
// is left out stays while discovery cannot tell, and for the window; the latter is reported as held.
//
// The kinds of a version that is announced and was never described count as served: its server is away, as that of an aggregated
// API may be when the manager starts. A wrong "absent" would prune children; a wrong "served" is an error that is tried again.
func (w *Watcher) servedKinds(answer discoveryResult) (next Set, held bool) {
	before, now := ptr.Deref(w.served, Set{}), w.options.Clock.Now()
	var kinds []schema.GroupVersionKind
	for _, k := range w.options.Kinds {
		plural, listed := answer.plurals[k]
		_, failed := answer.failed[k.GroupVersion()]
		unknown := !w.knownVersions[k.GroupVersion()]
		if listed {
			w.resources[k] = schema.GroupResource{Group: k.Group, Resource: plural}
		}
		switch {
		case w.crds.isRemoved(w.resources[k]):
		case listed, failed && (unknown || before.Has(k)):
			kinds = append(kinds, k)
		case !unknown && before.Has(k) && w.inGracePeriod(k, now):
			kinds, held = append(kinds, k), true
			continue
		}
		delete(w.omittedSince, k)
	}
	for _, k := range w.options.Kinds {
		if _, failed := answer.failed[k.GroupVersion()]; !failed {
			w.knownVersions[k.GroupVersion()] = true
		}
	}
	return NewSet(kinds...), held
}

// waits reports whether a kind was left out for less than the window.
func (w *Watcher) inGracePeriod(k schema.GroupVersionKind, now time.Time) bool {
	if w.omittedSince[k].IsZero() {
		w.omittedSince[k] = now
	}
	return now.Sub(w.omittedSince[k]) < discoveryGracePeriod
}

// publish swaps the set and notifies all listeners, once it is known which KubeRay there is. Informers go before a kind returns, so that its watches start on fresh
// ones, and after it went, so that no watch starts one again.
func (w *Watcher) publish(served Set) {
	w.served = &served
	there, known := w.kubeRay.current()
	if !known {
		return
	}
	before := w.Current()
	next := served.WithPlatformKubeRay(there)
	gained, lost := next.difference(before), before.difference(next)
	w.removeInformers(gained)
	w.current.Store(&next)
	if next.Equal(before) {
		return
	}
	recordServed(w.options.Kinds, next)
	w.removeInformers(lost)
	w.options.Log.Info("Optional APIs or KubeRay changed", "gained", NewSet(gained...).String(), "lost", NewSet(lost...).String(), "platformKubeRay", there)
	w.listeners.Notify(next)
}

// pause is the time until the next reading if no event comes before.
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
