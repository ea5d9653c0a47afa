package capability

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

const (
	// debounce combines the events of one installation, and gives a new CRD time to be served.
	debounce = 300 * time.Millisecond
	// discoveryGracePeriod is how long discovery is polled until it lists the CRDs of the informer, and how long a kind that it
	// omits still counts as served.
	discoveryGracePeriod = 30 * time.Second
	// minBackoff and maxBackoff limit the interval of discovery after a call that failed or did not agree with the CRDs.
	minBackoff = 250 * time.Millisecond
	maxBackoff = 30 * time.Second
	// resyncPeriod is the interval of discovery while the CRD informer is synced, pollPeriod otherwise.
	resyncPeriod = 10 * time.Minute
	pollPeriod   = 30 * time.Second
	// initialTimeout limits how long New waits for an unresponsive API server.
	initialTimeout = 10 * time.Second
)

var servedGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_api_served",
	Help: "1 while an optional kind is served by the API server, 0 while it is not, by group, version and kind.",
}, []string{"group", "version", "kind"})

// Options of a Watcher. Discovery and, for Start, Metadata are required.
type Options struct {
	// Discovery must not be a caching client.
	Discovery discovery.DiscoveryInterface
	// Metadata lists and watches CustomResourceDefinitions. Without the permission, discovery is polled every 30 s.
	Metadata metadata.Interface
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
	// Listeners are called sequentially from one goroutine. To miss no change, subscribe before calling Current.
	singleton.Listeners[Set]
	options      Options
	current      atomic.Pointer[Set] // nil until discovery succeeded and the presence of the platform's KubeRay is known
	events       chan struct{}
	kubeRay      *singleton.Value[bool]
	crds         toolscache.SharedIndexInformer
	crdExistence sync.Map // whether each observed CustomResourceDefinition exists, by name

	// The fields below are used only by New and by the goroutine of Start.
	omittedSince   map[schema.GroupVersionKind]time.Time // start of the omission of kinds that were served
	gracePeriodEnd time.Time                             // discoveryGracePeriod after the last event
	backoff        time.Duration                         // before the next retry
}

// New returns a Watcher after one discovery call. A failed call is not an error: the set stays empty, and Start retries.
func New(options Options) *Watcher {
	options.Clock = cmp.Or[clock.Clock](options.Clock, clock.RealClock{})
	w := &Watcher{
		options: options, events: make(chan struct{}, 1), kubeRay: newPlatformKubeRay(options), omittedSince: map[schema.GroupVersionKind]time.Time{},
		backoff: minBackoff,
	}
	w.crds = newCRDInformer(options.Metadata, w.onCRDEvent)
	w.setGauge(Set{})
	ctx, cancel := context.WithTimeout(context.Background(), initialTimeout)
	defer cancel()
	if options.KubeRay != nil {
		w.kubeRay.Read(ctx)
	}
	w.refresh(ctx)
	return w
}

// Current returns the latest set. It is empty until the Watcher is ready.
func (w *Watcher) Current() Set { return ptr.Deref(w.current.Load(), Set{}) }

// Ready is a readiness check (healthz.Checker). It fails until discovery succeeded and the presence of the platform's KubeRay is known.
func (w *Watcher) Ready(*http.Request) error {
	if w.current.Load() == nil {
		return errors.New("discovery has not succeeded yet, or the MutatingWebhookConfiguration of KubeRay could not be read")
	}
	return nil
}

// OnChange calls the listener with the current set, and again after each change until ctx ends. Calls are sequential, with the latest set.
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

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks of standby replicas depend on the set.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start watches the cluster until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	watchers.Go(func() { w.crds.RunWithContext(ctx) })
	if w.options.KubeRay != nil {
		w.kubeRay.Subscribe(ctx, func(bool) { w.triggerRefresh() })
		watchers.Go(func() { _ = w.kubeRay.Start(ctx) }) // always returns nil
	}
	timer, debouncing := w.options.Clock.After(debounce), true // the CustomResourceDefinitions may have changed since New
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.events:
			w.backoff, w.gracePeriodEnd = minBackoff, w.options.Clock.Now().Add(discoveryGracePeriod)
			if !debouncing {
				timer, debouncing = w.options.Clock.After(debounce), true
			}
		case <-timer:
			timer, debouncing = w.options.Clock.After(w.refresh(ctx)), false
		}
	}
}

// triggerRefresh makes Start call discovery soon.
func (w *Watcher) triggerRefresh() {
	select {
	case w.events <- struct{}{}:
	default: // the pending event covers this one
	}
}

// onCRDEvent records whether a CustomResourceDefinition exists, if it may be that of one of the kinds.
func (w *Watcher) onCRDEvent(name string, exists bool) {
	group := schema.ParseGroupResource(name).Group
	if slices.ContainsFunc(w.options.Kinds, func(k schema.GroupVersionKind) bool { return k.Group == group }) {
		w.crdExistence.Store(name, exists)
		w.triggerRefresh()
	}
}

// refresh calls discovery, publishes a successful result if the presence of KubeRay is known, and returns the time until the next call.
func (w *Watcher) refresh(ctx context.Context) time.Duration {
	listed, unreadable, err := readDiscovery(ctx, w.options.Discovery)
	platformKubeRay, known := w.kubeRay.Current()
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // ctx is canceled when the manager stops
		w.options.Log.Error(err, "Failed to read discovery; keeping the last known optional APIs")
	}
	if err == nil && known {
		kinds, consistent := w.servedKinds(listed, unreadable)
		w.publish(NewSet(kinds...).WithPlatformKubeRay(platformKubeRay))
		if consistent {
			w.backoff = minBackoff
			if w.crds.HasSynced() {
				return wait.Jitter(resyncPeriod, 0.1)
			}
			return pollPeriod
		}
	}
	delay := w.backoff
	w.backoff = min(2*delay, maxBackoff)
	return delay
}

// servedKinds returns the served kinds for a discovery result, and whether the result agrees with the CRDs. A kind whose CRD was deleted is
// not served, regardless of discovery. An omitted kind that was served remains so while its version cannot be read, and during the grace
// period.
//
// In the first result all kinds of an unreadable version count as served: the server of an aggregated API may be down when the manager
// starts. If a kind were wrongly reported as not served, controllers would prune objects. Requests for a kind that is wrongly reported as
// served fail and are retried.
func (w *Watcher) servedKinds(listed Set, unreadable sets.Set[schema.GroupVersion]) (served []schema.GroupVersionKind, consistent bool) {
	previous, now := w.current.Load(), w.options.Clock.Now()
	consistent = true
	for _, k := range w.options.Kinds {
		failed, wasServed := unreadable.Has(k.GroupVersion()), previous != nil && previous.Has(k)
		exists, observed := w.crdExists(k)
		unlisted := exists && now.Before(w.gracePeriodEnd) && !listed.Has(k.GroupKind().WithVersion(anyVersion))
		consistent = consistent && !failed && !unlisted
		switch {
		case observed && !exists:
		case listed.Has(k), failed && (wasServed || previous == nil):
			served = append(served, k)
		case wasServed && w.inGracePeriod(k, now):
			served, consistent = append(served, k), false
			continue
		}
		delete(w.omittedSince, k)
	}
	return served, consistent
}

// crdExists reports whether the CustomResourceDefinition of a kind exists, and whether it was ever observed. The name of a CRD is plural.group.
func (w *Watcher) crdExists(k schema.GroupVersionKind) (exists, observed bool) {
	resource, _ := meta.UnsafeGuessKindToResource(k) // correct for all our kinds
	value, observed := w.crdExistence.Load(resource.GroupResource().String())
	return value == true, observed
}

// inGracePeriod reports whether a kind has been omitted for less than the grace period, which starts with the first call.
func (w *Watcher) inGracePeriod(k schema.GroupVersionKind, now time.Time) bool {
	if w.omittedSince[k].IsZero() {
		w.omittedSince[k] = now
	}
	return now.Sub(w.omittedSince[k]) < discoveryGracePeriod
}

// publish stores the set, and notifies the listeners of a change.
func (w *Watcher) publish(next Set) {
	previous := w.Current()
	w.current.Store(&next)
	if next.Equal(previous) {
		return
	}
	w.setGauge(next)
	w.options.Log.Info("Optional APIs or KubeRay changed", "gained", Set{next.Difference(previous.Set)}.String(), "lost", Set{previous.Difference(next.Set)}.String())
	w.Notify(next)
}

// setGauge sets the metric of each kind.
func (w *Watcher) setGauge(s Set) {
	for _, k := range w.options.Kinds {
		value := 0.0
		if s.Has(k) {
			value = 1
		}
		servedGauge.WithLabelValues(k.Group, k.Version, k.Kind).Set(value)
	}
}
