package capability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

const (
	// debounce lets the events of one installation gather, and gives a new definition the moment it needs until it
	// is served.
	debounce = 300 * time.Millisecond
	// window is how long discovery is asked again until it agrees with the definitions that were seen.
	window = 30 * time.Second
	// recheckMin and recheckMax bound the pauses within the window.
	recheckMin, recheckMax = 250 * time.Millisecond, 4 * time.Second
	// retryMin and retryMax bound the pauses after discovery failed.
	retryMin, retryMax = time.Second, 30 * time.Second
	// slowPeriod is the safety net under the events, pollPeriod replaces them where they are not allowed.
	slowPeriod, pollPeriod = 10 * time.Minute, 30 * time.Second
	// firstTimeout bounds the reading in New, so that an API server that does not answer delays the start only so
	// long.
	firstTimeout = 10 * time.Second
)

// Options of a Watcher. Discovery is required.
type Options struct {
	// Discovery asks the API server; it must not be a caching client.
	Discovery discovery.DiscoveryInterface
	// Metadata follows the names of CustomResourceDefinitions and APIServices, for which it needs the permission to
	// list and watch them. Without it, or without the permission, discovery is polled every 30 s.
	Metadata metadata.Interface
	// Cache is the manager's cache. Informers of kinds that come or go are removed from it. May be nil.
	Cache cache.Cache
	// Scheme tells the typed representation of kinds in the cache. May be nil when only metadata is cached.
	Scheme *runtime.Scheme
	// Kinds to follow; Known() when empty.
	Kinds []schema.GroupVersionKind
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
	current   atomic.Pointer[Set]
	ready     atomic.Bool
	poke      chan struct{} // an event arrived
	rewatch   chan struct{} // Watch was called

	listeners follow.Listeners[Set]

	mu      sync.Mutex // guards the watches only; nobody is called under it
	watches []*watch

	// What follows belongs to the goroutine of Start, and to New before.
	last         served
	known        map[schema.GroupVersion]bool // what discovery has described or left out at least once
	plurals      map[schema.GroupVersionKind]string
	feeds        []*feed
	seen         map[*feed]map[string]bool // names that were followed and, when gone, are still listed
	settleUntil  time.Time                 // end of the window; zero when settled
	rechecks     int
	failures     int
	watchStarter sync.WaitGroup
}

// New returns a Watcher that has asked discovery once. Failing discovery is not an error: the set stays empty, and
// Start tries again. In a partial answer, what is announced and cannot be described counts as served, see evaluate.
func New(options Options) *Watcher {
	if len(options.Kinds) == 0 {
		options.Kinds = Known()
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	w := &Watcher{
		options:   options,
		discovery: discovery.ToDiscoveryInterfaceWithContext(options.Discovery),
		groups:    map[string]bool{},
		poke:      make(chan struct{}, 1),
		rewatch:   make(chan struct{}, 1),
		known:     map[schema.GroupVersion]bool{},
		plurals:   map[schema.GroupVersionKind]string{},
		seen:      map[*feed]map[string]bool{},
	}
	for _, k := range options.Kinds {
		w.groups[k.Group] = true
	}
	w.current.Store(&Set{})
	observe(options.Kinds, Set{})
	ctx, cancel := context.WithTimeout(context.Background(), firstTimeout)
	defer cancel()
	w.refresh(ctx)
	return w
}

// Current returns the latest snapshot. It is empty until discovery answered once.
func (w *Watcher) Current() Set { return *w.current.Load() }

// Ready is a readiness check (healthz.Checker): it fails until discovery answered once.
func (w *Watcher) Ready(*http.Request) error {
	if !w.ready.Load() {
		return errors.New("discovery has not answered yet")
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
func (w *Watcher) Follow(ctx context.Context, tell func(Set)) {
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
	synced, err := w.follow(ctx, &followers)
	if err != nil {
		return err
	}
	defer w.stopWatches()
	w.settleWatches()

	due := w.options.Clock.Now().Add(w.pause())
	for {
		timer := w.options.Clock.NewTimer(due.Sub(w.options.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-w.rewatch:
			w.settleWatches()
		case <-synced:
			synced = nil
			due = w.compareFirst(due)
		case <-w.poke:
			w.open()
			due = earlier(due, w.options.Clock.Now().Add(debounce))
		case <-timer.C():
			w.refresh(ctx)
			due = w.options.Clock.Now().Add(w.pause())
		}
		timer.Stop()
	}
}

// follow starts the feeds; the returned channel is closed when they know what exists.
func (w *Watcher) follow(ctx context.Context, running *sync.WaitGroup) (<-chan struct{}, error) {
	if w.options.Metadata == nil {
		return nil, nil
	}
	for _, resource := range []schema.GroupVersionResource{definitions, apiServices} {
		f, err := newFeed(w.options.Metadata, resource, w.groups, w.options.Log, w.signal)
		if err != nil {
			return nil, fmt.Errorf("following optional APIs: %w", err)
		}
		w.feeds = append(w.feeds, f)
		running.Go(func() { f.informer.RunWithContext(ctx) })
	}
	synced := make(chan struct{})
	running.Go(func() {
		for _, f := range w.feeds {
			select {
			case <-f.informer.HasSyncedChecker().Done():
			case <-ctx.Done():
				return
			}
		}
		close(synced)
	})
	return synced, nil
}

// signal notes an event without ever blocking; events that come together are one.
func (w *Watcher) signal() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// open starts the window anew.
func (w *Watcher) open() {
	w.settleUntil = w.options.Clock.Now().Add(window)
	w.rechecks = 0
}

// compareFirst compares what the feeds found with the reading that New made, which saves a second one. What went between the
// two was never seen by a feed, so nothing will tell of it: it is missed here or not at all.
func (w *Watcher) compareFirst(due time.Time) time.Time {
	vanished := slices.ContainsFunc(w.Current().Kinds(), func(k schema.GroupVersionKind) bool { return !w.announced(k) })
	if w.failures == 0 && w.agrees(w.last) && !vanished {
		return w.options.Clock.Now().Add(w.pause())
	}
	w.open()
	return earlier(due, w.options.Clock.Now().Add(debounce))
}

// refresh asks discovery and publishes what it learnt.
func (w *Watcher) refresh(ctx context.Context) {
	answer, err := read(ctx, w.discovery, w.groups)
	if err != nil {
		w.failures++
		if !errors.Is(ctx.Err(), context.Canceled) { // the program ends
			w.options.Log.Error(err, "Reading discovery; keeping the last known optional APIs")
		}
		return
	}
	for gv, cause := range answer.failed {
		w.options.Log.V(1).Info("Keeping the last known state of an API that discovery could not describe",
			"groupVersion", gv.String(), "cause", cause.Error())
	}
	w.last = answer
	next, held := w.evaluate(answer)
	w.learn(answer)
	if held && w.settleUntil.IsZero() {
		w.open()
	}
	switch {
	case len(answer.failed) > 0:
		w.failures++
	case w.agrees(answer) && !held:
		w.failures, w.settleUntil = 0, time.Time{}
	case w.options.Clock.Now().Before(w.settleUntil):
		w.failures = 0
		w.rechecks++
	default:
		w.failures, w.settleUntil = 0, time.Time{}
		w.forgetGone()
	}
	w.publish(next)
	w.ready.Store(true)
}

// publish swaps the set and tells everybody. Informers go before a kind returns, so that its watches start on fresh
// ones, and after it went, so that nobody starts one again.
func (w *Watcher) publish(next Set) {
	before := w.Current()
	if next.Equal(before) {
		return
	}
	gained, lost := next.minus(before), before.minus(next)
	w.removeInformers(gained)
	w.current.Store(&next)
	observe(w.options.Kinds, next)
	w.removeInformers(lost)
	w.options.Log.Info("Optional APIs changed", "gained", NewSet(gained...).String(), "lost", NewSet(lost...).String())
	w.settleWatches()
	w.listeners.Notify(next)
}

// pause is the time until the next reading if no event comes before.
func (w *Watcher) pause() time.Duration {
	switch {
	case w.failures > 0:
		return doubled(retryMin, w.failures-1, retryMax)
	case !w.settleUntil.IsZero():
		return doubled(recheckMin, w.rechecks, recheckMax)
	case len(w.feeds) > 0 && !slices.ContainsFunc(w.feeds, func(f *feed) bool { return !f.following() }):
		return wait.Jitter(slowPeriod, 0.1)
	default:
		return pollPeriod
	}
}

func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	d := first
	for range times {
		if d *= 2; d >= limit {
			return limit
		}
	}
	return d
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
