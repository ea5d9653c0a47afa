package capability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // one of them would sleep across bubbles
	goleak.VerifyTestMain(m)
}

var kinds = []schema.GroupVersionKind{Route, OpenShiftIngress, UserGroup, HTTPRoute, ReferenceGrant, ServiceMonitor, PrometheusRule, RayCluster}

// logs collects the log lines of a watcher, including errors.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{})
}

func (l *logs) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// changes collects the calls of a listener.
type changes struct {
	mu   sync.Mutex
	sets []Set
}

func (c *changes) add(s Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = append(c.sets, s)
}

func (c *changes) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sets)
}

// run starts a watcher in the synctest bubble and waits until it is idle.
func run(t *testing.T, w *Watcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned error %v", err)
		}
	})
	synctest.Wait()
}

// advance advances the virtual time and waits until all goroutines block.
func advance(d time.Duration) {
	<-time.After(d) // virtual time of the synctest bubble
	synctest.Wait()
}

func TestCRDChangesUpdateServedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(), newCluster(t), &changes{}
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		advance(time.Second)
		if n := d.callCount(); n != 2 {
			t.Errorf("got %d discovery calls without a CRD, want 2: of New and of Start", n)
		}

		// A CRD is created before it is served.
		cluster.create(crdName(RayCluster))
		advance(time.Second)
		if w.Current().Has(RayCluster) {
			t.Fatal("the kind counts as served before discovery lists it")
		}
		d.serve(RayCluster)
		advance(3 * time.Second)
		if !w.Current().Has(RayCluster) || recorder.len() != 1 {
			t.Fatalf("current %q after %d changes, want RayCluster after 1", w.Current(), recorder.len())
		}

		// A CRD is deleted before discovery omits it.
		cluster.remove(crdName(RayCluster))
		advance(2 * time.Second)
		if w.Current().Has(RayCluster) || recorder.len() != 2 {
			t.Fatalf("current %q after %d changes, want none after 2", w.Current(), recorder.len())
		}

		d.remove(RayCluster)
		before := d.callCount()
		advance(8 * time.Minute)
		if n := d.callCount() - before; n != 0 {
			t.Errorf("got %d discovery calls in the steady state, want 0", n)
		}
		advance(5 * time.Minute)
		if n := d.callCount() - before; n != 1 {
			t.Errorf("got %d discovery calls in 13 minutes of steady state, want 1", n)
		}
	})
}

func TestCRDEventsAreDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		before := d.callCount()
		d.serve(HTTPRoute, ReferenceGrant, ServiceMonitor)
		for _, k := range []schema.GroupVersionKind{HTTPRoute, ReferenceGrant, ServiceMonitor} {
			cluster.create(crdName(k))
			for version := range 5 {
				cluster.update(crdName(k), fmt.Sprint(version+2))
			}
		}
		advance(time.Second)
		if n := d.callCount() - before; n != 1 {
			t.Errorf("18 events caused %d discovery calls, want 1", n)
		}
		if !w.Current().Equal(NewSet(HTTPRoute, ReferenceGrant, ServiceMonitor)) {
			t.Errorf("unexpected served kinds %q", w.Current())
		}
	})
}

func TestCRDsOfOtherGroupsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		cluster.create(crdName(HTTPRoute))
		d.serve(HTTPRoute)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		advance(time.Second)
		before := d.callCount()
		cluster.create("things.example.com", "routes.example.com")
		advance(time.Minute)
		if n := d.callCount() - before; n != 0 {
			t.Errorf("CRDs of other groups caused %d discovery calls, want none", n)
		}
	})
}

// Aggregated APIs have no CRD, so only the resync detects them.
func TestResyncDetectsAggregatedAPIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(HTTPRoute), newCluster(t)
		cluster.create(crdName(HTTPRoute))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.serve(Route)
		advance(resyncPeriod + resyncPeriod/5)
		if !w.Current().Has(Route) {
			t.Fatal("the aggregated API does not count as served")
		}
		d.remove(Route)
		advance(resyncPeriod + resyncPeriod/5 + discoveryGracePeriod + maxBackoff)
		if w.Current().Has(Route) {
			t.Fatal("the deleted aggregated API still counts as served")
		}
	})
}

// Changes between New and the first list of the CRDs are detected.
func TestChangesBeforeStartAreDetected(t *testing.T) {
	for name, tc := range map[string]struct {
		existing, servedAtNew, servedLater, withdrawn []schema.GroupVersionKind
		discoveryCalls                                int
	}{
		"no change":   {existing: kinds[:3], servedAtNew: kinds[:3], servedLater: nil, discoveryCalls: 2},
		"CRD created": {existing: kinds[:3], servedAtNew: kinds[:2], servedLater: kinds[2:3], discoveryCalls: 2},
		"CRD deleted": {existing: kinds[:2], servedAtNew: kinds[:3], withdrawn: kinds[2:3], discoveryCalls: 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cluster := newDiscovery(tc.servedAtNew...), newCluster(t)
				w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
				for _, k := range tc.existing {
					cluster.create(crdName(k))
				}
				d.serve(tc.servedLater...)
				d.remove(tc.withdrawn...)
				run(t, w)
				advance(discoveryGracePeriod + 5*time.Second)
				if n := d.callCount(); n != tc.discoveryCalls {
					t.Errorf("got %d discovery calls, want %d", n, tc.discoveryCalls)
				}
				if !w.Current().Equal(NewSet(tc.existing...)) {
					t.Errorf("unexpected served kinds %q", w.Current())
				}
			})
		})
	}
}

func TestRecheckStopsAfterGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(RayCluster), newCluster(t)
		cluster.create(crdName(RayCluster))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		before := d.callCount()
		// One CRD is never established, and discovery never omits the kind of the other CRD, which is deleted.
		cluster.create(crdName(HTTPRoute))
		cluster.remove(crdName(RayCluster))
		advance(discoveryGracePeriod + maxBackoff)
		during := d.callCount() - before
		if during < 5 || during > 15 {
			t.Errorf("got %d discovery calls within the grace period, want 5 to 15", during)
		}
		advance(8 * time.Minute)
		if n := d.callCount() - before - during; n != 0 {
			t.Errorf("got %d discovery calls after the grace period, want none", n)
		}
		if !w.Current().Equal(NewSet()) {
			t.Errorf("got served kinds %q after the CRD was deleted, want none", w.Current())
		}
	})
}

// A transient discovery error never removes a served kind. [modelregistry-54] [modelregistry-58] [modelregistry-59] [modelregistry-60]
func TestDiscoveryErrorsKeepServedKinds(t *testing.T) {
	timeout := apierrors.NewTimeoutError("slow", 1)
	for name, tc := range map[string]struct {
		inject func(*fakeDiscovery)
		repair func(*fakeDiscovery)
	}{
		"all requests time out":   {func(d *fakeDiscovery) { d.setError(timeout) }, func(d *fakeDiscovery) { d.setError(nil) }},
		"all requests return 503": {func(d *fakeDiscovery) { d.setError(apierrors.NewServiceUnavailable("busy")) }, func(d *fakeDiscovery) { d.setError(nil) }},
		"all requests return 404": {func(d *fakeDiscovery) { d.setError(apierrors.NewNotFound(schema.GroupResource{}, "")) }, func(d *fakeDiscovery) { d.setError(nil) }},
		"one version is stale": {
			func(d *fakeDiscovery) { d.markStale(Route.GroupVersion(), errors.New("stale")) },
			func(d *fakeDiscovery) { d.markStale(Route.GroupVersion(), nil) },
		},
		"[modelregistry-58] the user API times out": {
			func(d *fakeDiscovery) { d.markStale(UserGroup.GroupVersion(), timeout) },
			func(d *fakeDiscovery) { d.markStale(UserGroup.GroupVersion(), nil) },
		},
		"one kind is missing while its CRD exists": {
			func(d *fakeDiscovery) { d.remove(HTTPRoute) },
			func(d *fakeDiscovery) { d.serve(HTTPRoute) },
		},
		"one aggregated version is missing": {
			func(d *fakeDiscovery) { d.remove(Route) },
			func(d *fakeDiscovery) { d.serve(Route) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cluster, recorder := newDiscovery(Route, OpenShiftIngress, HTTPRoute, UserGroup), newCluster(t), &changes{}
				cluster.create(crdName(HTTPRoute))
				w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
				w.Subscribe(t.Context(), recorder.add)
				run(t, w)
				tc.inject(d)
				cluster.update(crdName(HTTPRoute), "2") // triggers discovery
				advance(20 * time.Second)
				if !w.Current().Equal(NewSet(Route, OpenShiftIngress, HTTPRoute, UserGroup)) {
					t.Errorf("got served kinds %q, want no kind to be removed", w.Current())
				}
				tc.repair(d)
				advance(35 * time.Second)
				before := d.callCount()
				advance(8 * time.Minute)
				if n := d.callCount() - before; n != 0 || recorder.len() != 0 {
					t.Errorf("got %d discovery calls and %d notifications after the repair, want none", n, recorder.len())
				}
			})
		})
	}
}

func TestMissingKindIsRemovedAfterGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(HTTPRoute, ReferenceGrant), newCluster(t), &changes{}
		cluster.create(crdName(HTTPRoute), crdName(ReferenceGrant))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		d.remove(ReferenceGrant) // its CRD still exists, but no longer serves this version
		cluster.update(crdName(ReferenceGrant), "2")
		advance(discoveryGracePeriod - 5*time.Second)
		if !w.Current().Has(ReferenceGrant) {
			t.Error("the kind does not count as served, although its CRD exists")
		}
		advance(10 * time.Second)
		if !w.Current().Equal(NewSet(HTTPRoute)) || recorder.len() != 1 {
			t.Errorf("got served kinds %q after %d notifications, want HTTPRoute after 1", w.Current(), recorder.len())
		}
	})
}

// Other CRDs of a group must not delay the removal of a kind.
func TestRemovalIsNotDelayedByOtherKindsOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(ServiceMonitor, PrometheusRule), newCluster(t)
		cluster.create(crdName(ServiceMonitor), crdName(PrometheusRule))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.remove(PrometheusRule)
		cluster.remove(crdName(PrometheusRule))
		advance(time.Second)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("unexpected served kinds %q", w.Current())
		}
	})
}

// [modelregistry-57]
func TestInitialDiscoveryFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(Route), newCluster(t), &changes{}
		d.setError(errors.New("connection refused"))
		logged := &logs{}
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds, Log: logged.logger()})
		if w.Ready(nil) == nil || len(w.Current().Set) != 0 {
			t.Error("want Ready to return an error, and no kind, before the first discovery")
		}
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		advance(5 * time.Minute)
		// 250 ms, 500 ms, 1 s, 2 s, 4 s, 8 s, 16 s, then every 30 s
		if n := d.callCount(); n < 14 || n > 19 {
			t.Errorf("got %d discovery calls in five minutes of failure, want 14 to 19", n)
		}
		d.setError(nil)
		advance(maxBackoff)
		if err := w.Ready(nil); err != nil || !w.Current().Has(Route) || recorder.len() != 1 {
			t.Errorf("Ready returned %v, served kinds %q after %d notifications", err, w.Current(), recorder.len())
		}
		if logged.count("connection refused") == 0 {
			t.Error("the discovery error was not logged")
		}
	})
}

func TestForbiddenWatchFallsBackToPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, logged := newDiscovery(), newCluster(t), &logs{}
		allow := cluster.forbid()
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds, Log: logged.logger()})
		run(t, w)
		advance(5 * time.Minute)
		d.serve(Route)
		advance(pollPeriod)
		if !w.Current().Has(Route) {
			t.Error("polling did not notice the API")
		}
		d.remove(Route)
		advance(pollPeriod + discoveryGracePeriod + maxBackoff)
		if w.Current().Has(Route) {
			t.Error("polling did not notice that the API was removed")
		}

		// With the permission, the watcher follows events.
		allow()
		advance(2 * time.Minute)
		d.serve(RayCluster)
		cluster.create(crdName(RayCluster))
		advance(time.Second)
		if !w.Current().Has(RayCluster) {
			t.Error("the new CRD did not make its kind served")
		}
		before := d.callCount()
		advance(8 * time.Minute)
		if n := d.callCount() - before; n > 1 {
			t.Errorf("got %d discovery calls while watching, want at most 1", n)
		}
	})
}

// Debounce and polling use the injected clock.
func TestPollingUsesInjectedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, recorder, cluster := newDiscovery(), &changes{}, newCluster(t)
		cluster.forbid()
		clk := clocktesting.NewFakeClock(time.Unix(0, 0))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds, Clock: clk})
		run(t, w)
		clk.Step(debounce)
		synctest.Wait()
		w.Subscribe(t.Context(), recorder.add) // after Start
		d.serve(Route, OpenShiftIngress)
		advance(time.Hour)
		if recorder.len() != 0 {
			t.Fatal("listeners were called, although the injected clock did not advance")
		}
		clk.Step(pollPeriod)
		synctest.Wait()
		if recorder.len() != 1 || !w.Current().IsOpenShift() {
			t.Errorf("unexpected served kinds %q", w.Current())
		}
	})
}

func TestUnaggregatedDiscovery(t *testing.T) {
	d := newDiscovery(Route, HTTPRoute, ServiceMonitor)
	d.markStale(ServiceMonitor.GroupVersion(), apierrors.NewServiceUnavailable("busy"))
	d.markStale(HTTPRoute.GroupVersion(), apierrors.NewNotFound(schema.GroupResource{}, ""))
	w := New(Options{Discovery: newUnaggregated(d), Kinds: kinds})
	if !w.Current().Equal(NewSet(Route, ServiceMonitor, PrometheusRule)) || w.Ready(nil) != nil {
		t.Errorf("got served kinds %q, want unreadable versions served and missing versions not served", w.Current())
	}
	if w.backoff != 2*minBackoff {
		t.Errorf("got backoff %s after an unreadable version, want %s", w.backoff, 2*minBackoff)
	}
}

// The API server marks a version as stale while the server of the aggregated API is unavailable.
func TestStaleVersionOfAggregatedDiscovery(t *testing.T) {
	version := func(name, freshness string) string {
		return fmt.Sprintf(`{"version":%q,"freshness":%q,"resources":[{"resource":"routes","scope":"Namespaced","responseKind":{"group":"route.openshift.io","version":%q,"kind":"Route"}}]}`,
			name, freshness, name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", discovery.AcceptV2)
		versions := "" // of the core group
		if r.URL.Path == "/apis" {
			versions = version("v1", "Stale") + "," + version("v2", "Current")
		}
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"route.openshift.io"},"versions":[%s]}]}`, versions)
	}))
	defer server.Close()
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
	listed, unreadable, err := readDiscovery(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if !unreadable.Equal(sets.New(Route.GroupVersion())) || !listed.Has(Route.GroupKind().WithVersion("v2")) || listed.Has(Route) {
		t.Errorf("want version v1 as unreadable and v2 as listed: %v, %s", unreadable, listed)
	}
}

func TestSubscribersAreCalledOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		var active, maxActive int
		var order []string
		for _, name := range []string{"a", "b"} {
			w.Subscribe(t.Context(), func(Set) {
				active++
				maxActive = max(maxActive, active)
				order = append(order, name)
				w.Subscribe(t.Context(), func(Set) {}) // no lock is held
				_ = w.Current()
				active--
			})
		}
		run(t, w)
		for _, k := range []schema.GroupVersionKind{HTTPRoute, RayCluster} {
			d.serve(k)
			cluster.create(crdName(k))
			advance(time.Second)
		}
		if maxActive != 1 || !slices.Equal(order, []string{"a", "b", "a", "b"}) {
			t.Errorf("unexpected order %v, or %d concurrent calls", order, maxActive)
		}
	})
}

func TestInformerKeepsOnlyIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t)
		cluster.create(crdName(Route))
		w := New(Options{Discovery: newDiscovery(), Metadata: cluster, Kinds: kinds})
		run(t, w)
		advance(time.Second)
		crds := w.crds.GetStore().List()
		if len(crds) != 1 {
			t.Fatalf("the informer has %d objects, want 1", len(crds))
		}
		crd := crds[0].(metav1.Object)
		if crd.GetName() != crdName(Route) || crd.GetLabels() != nil || crd.GetManagedFields() != nil {
			t.Errorf("unexpected content of the informer: %+v", crd)
		}
	})
}
