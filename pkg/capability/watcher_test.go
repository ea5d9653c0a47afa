package capability

import (
	"bytes"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // one of them sleeps until a time of another bubble
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

func (l *logs) with(text string) int {
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
			t.Errorf("Start: %v", err)
		}
	})
	synctest.Wait()
}

// pass advances the virtual time and waits until all goroutines block.
func pass(d time.Duration) {
	<-time.After(d) // virtual time of the synctest bubble
	synctest.Wait()
}

func TestFollowsDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(), newCluster(t), &changes{}
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		pass(time.Second)
		if n := d.callCount(); n != 2 {
			t.Errorf("got %d discovery calls without a CRD, want 2: of New and of Start", n)
		}

		// A CRD is created before it is served.
		cluster.create(crdName(RayCluster))
		pass(time.Second)
		if w.Current().Has(RayCluster) {
			t.Fatal("the kind counts as served before its CRD exists")
		}
		d.serve(RayCluster)
		pass(3 * time.Second)
		if !w.Current().Has(RayCluster) || recorder.len() != 1 {
			t.Fatalf("current %q after %d changes, want RayCluster after 1", w.Current(), recorder.len())
		}

		// A CRD is deleted before discovery omits it.
		cluster.remove(crdName(RayCluster))
		pass(2 * time.Second)
		if w.Current().Has(RayCluster) || recorder.len() != 2 {
			t.Fatalf("current %q after %d changes, want none after 2", w.Current(), recorder.len())
		}

		d.withdraw(RayCluster)
		before := d.callCount()
		pass(8 * time.Minute)
		if n := d.callCount() - before; n != 0 {
			t.Errorf("discovery was asked %d times at rest, want 0", n)
		}
		pass(5 * time.Minute)
		if n := d.callCount() - before; n != 1 {
			t.Errorf("discovery was asked %d times in 13 minutes at rest, want 1", n)
		}
	})
}

func TestEventsAreGathered(t *testing.T) {
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
		pass(time.Second)
		if n := d.callCount() - before; n != 1 {
			t.Errorf("18 events led to %d readings, want 1", n)
		}
		if !w.Current().Equal(NewSet(HTTPRoute, ReferenceGrant, ServiceMonitor)) {
			t.Errorf("current %q", w.Current())
		}
	})
}

func TestForeignGroupsDoNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		cluster.create(crdName(HTTPRoute))
		d.serve(HTTPRoute)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		pass(time.Second)
		before := d.callCount()
		cluster.create("things.example.com", "routes.example.com")
		pass(time.Minute)
		if n := d.callCount() - before; n != 0 {
			t.Errorf("foreign APIs led to %d readings", n)
		}
	})
}

// No CRD reports an aggregated API.
func TestAggregatedAPIsAreLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(HTTPRoute), newCluster(t)
		cluster.create(crdName(HTTPRoute))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.serve(Route)
		pass(resyncPeriod + resyncPeriod/5)
		if !w.Current().Has(Route) {
			t.Fatal("the aggregated API does not count as served")
		}
		d.withdraw(Route)
		pass(resyncPeriod + resyncPeriod/5 + discoveryGracePeriod + maxBackoff)
		if w.Current().Has(Route) {
			t.Fatal("the deleted aggregated API still counts as served")
		}
	})
}

// Changes between New and the first list of the CRDs are detected.
func TestComparesAtTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		existing, servedAtNew, servedLater, withdrawn []schema.GroupVersionKind
		readings                                      int
	}{
		"agreement":   {existing: kinds[:3], servedAtNew: kinds[:3], servedLater: nil, readings: 2},
		"CRD created": {existing: kinds[:3], servedAtNew: kinds[:2], servedLater: kinds[2:3], readings: 2},
		"CRD deleted": {existing: kinds[:2], servedAtNew: kinds[:3], withdrawn: kinds[2:3], readings: 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cluster := newDiscovery(tc.servedAtNew...), newCluster(t)
				w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
				for _, k := range tc.existing {
					cluster.create(crdName(k))
				}
				d.serve(tc.servedLater...)
				d.withdraw(tc.withdrawn...)
				run(t, w)
				pass(discoveryGracePeriod + 5*time.Second)
				if n := d.callCount(); n != tc.readings {
					t.Errorf("%d readings, want %d", n, tc.readings)
				}
				if !w.Current().Equal(NewSet(tc.existing...)) {
					t.Errorf("current %q", w.Current())
				}
			})
		})
	}
}

func TestRecheckEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(RayCluster), newCluster(t)
		cluster.create(crdName(RayCluster))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		before := d.callCount()
		// One CRD is never established, and discovery never omits the kind of the other CRD, which is deleted.
		cluster.create(crdName(HTTPRoute))
		cluster.remove(crdName(RayCluster))
		pass(discoveryGracePeriod + maxBackoff)
		during := d.callCount() - before
		if during < 5 || during > 15 {
			t.Errorf("got %d discovery calls within the grace period, want 5 to 15", during)
		}
		pass(8 * time.Minute)
		if n := d.callCount() - before - during; n != 0 {
			t.Errorf("got %d discovery calls after the grace period, want none", n)
		}
		if !w.Current().Equal(NewSet()) {
			t.Errorf("got served kinds %q after the CRD was deleted, want none", w.Current())
		}
	})
}

// A transient discovery error never downgrades. [modelregistry-54] [modelregistry-58] [modelregistry-59] [modelregistry-60]
func TestErrorsKeepTheLastKnownState(t *testing.T) {
	timeout := apierrors.NewTimeoutError("slow", 1)
	for name, tc := range map[string]struct {
		break_ func(*fakeDiscovery)
		repair func(*fakeDiscovery)
	}{
		"all requests time out":   {func(d *fakeDiscovery) { d.fail(timeout) }, func(d *fakeDiscovery) { d.fail(nil) }},
		"all requests return 503": {func(d *fakeDiscovery) { d.fail(apierrors.NewServiceUnavailable("busy")) }, func(d *fakeDiscovery) { d.fail(nil) }},
		"even not found":          {func(d *fakeDiscovery) { d.fail(apierrors.NewNotFound(schema.GroupResource{}, "")) }, func(d *fakeDiscovery) { d.fail(nil) }},
		"one version is stale": {
			func(d *fakeDiscovery) { d.markStale(Route.GroupVersion(), errors.New("stale")) },
			func(d *fakeDiscovery) { d.markStale(Route.GroupVersion(), nil) },
		},
		"[modelregistry-58] the user API times out": {
			func(d *fakeDiscovery) { d.markStale(UserGroup.GroupVersion(), timeout) },
			func(d *fakeDiscovery) { d.markStale(UserGroup.GroupVersion(), nil) },
		},
		"one kind is missing while its CRD exists": {
			func(d *fakeDiscovery) { d.withdraw(HTTPRoute) },
			func(d *fakeDiscovery) { d.serve(HTTPRoute) },
		},
		"one aggregated version is missing": {
			func(d *fakeDiscovery) { d.withdraw(Route) },
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
				tc.break_(d)
				cluster.update(crdName(HTTPRoute), "2") // anything that starts a reading
				pass(20 * time.Second)
				if !w.Current().Equal(NewSet(Route, OpenShiftIngress, HTTPRoute, UserGroup)) {
					t.Errorf("got served kinds %q, want no kind to be removed", w.Current())
				}
				tc.repair(d)
				pass(35 * time.Second)
				before := d.callCount()
				pass(8 * time.Minute)
				if n := d.callCount() - before; n != 0 || recorder.len() != 0 {
					t.Errorf("%d readings and %d changes after the repair, want none", n, recorder.len())
				}
			})
		})
	}
}

func TestPersistentAbsenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(HTTPRoute, ReferenceGrant), newCluster(t), &changes{}
		cluster.create(crdName(HTTPRoute), crdName(ReferenceGrant))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		d.withdraw(ReferenceGrant) // its CRD stays and stops to serve this version
		cluster.update(crdName(ReferenceGrant), "2")
		pass(discoveryGracePeriod - 5*time.Second)
		if !w.Current().Has(ReferenceGrant) {
			t.Error("the kind does not count as served, although its CRD exists")
		}
		pass(10 * time.Second)
		if !w.Current().Equal(NewSet(HTTPRoute)) || recorder.len() != 1 {
			t.Errorf("current %q after %d changes", w.Current(), recorder.len())
		}
	})
}

// The API service of a group outlives one of its CRDs and must not delay that loss.
func TestSiblingsDoNotDelayALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(ServiceMonitor, PrometheusRule), newCluster(t)
		cluster.create(crdName(ServiceMonitor), crdName(PrometheusRule))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.withdraw(PrometheusRule)
		cluster.remove(crdName(PrometheusRule))
		pass(time.Second)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("current %q", w.Current())
		}
	})
}

// [modelregistry-57]
func TestFirstReadingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, recorder := newDiscovery(Route), newCluster(t), &changes{}
		d.fail(errors.New("connection refused"))
		logged := &logs{}
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds, Log: logged.logger()})
		if w.Ready(nil) == nil || len(w.Current().Set) != 0 {
			t.Error("want Ready to return an error, and no kind, before the first discovery")
		}
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		pass(5 * time.Minute)
		// 250 ms, 500 ms, 1 s, 2 s, 4 s, 8 s, 16 s, then every 30 s
		if n := d.callCount(); n < 14 || n > 19 {
			t.Errorf("%d readings in five minutes of failure", n)
		}
		d.fail(nil)
		pass(maxBackoff)
		if err := w.Ready(nil); err != nil || !w.Current().Has(Route) || recorder.len() != 1 {
			t.Errorf("ready %v, current %q, %d changes", err, w.Current(), recorder.len())
		}
		if logged.with("connection refused") == 0 {
			t.Error("the discovery error was not logged")
		}
	})
}

func TestForbiddenFallsBackToPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster, logged := newDiscovery(), newCluster(t), &logs{}
		allow := cluster.forbid()
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds, Log: logged.logger()})
		run(t, w)
		pass(5 * time.Minute)
		d.serve(Route)
		pass(pollPeriod)
		if !w.Current().Has(Route) {
			t.Error("polling did not notice the API")
		}
		d.withdraw(Route)
		pass(pollPeriod + discoveryGracePeriod + maxBackoff)
		if w.Current().Has(Route) {
			t.Error("polling did not notice that the API was removed")
		}

		// Once the permission comes, events are followed.
		allow()
		pass(2 * time.Minute)
		d.serve(RayCluster)
		cluster.create(crdName(RayCluster))
		pass(time.Second)
		if !w.Current().Has(RayCluster) {
			t.Error("the new CRD did not make its kind served")
		}
		before := d.callCount()
		pass(8 * time.Minute)
		if n := d.callCount() - before; n > 1 {
			t.Errorf("%d readings while following", n)
		}
	})
}

// Every pause comes from the injected clock.
func TestPollsByInjectedClock(t *testing.T) {
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
		pass(time.Hour)
		if recorder.len() != 0 {
			t.Fatal("listeners were called, although the injected clock did not advance")
		}
		clk.Step(pollPeriod)
		synctest.Wait()
		if recorder.len() != 1 || !w.Current().OpenShift() {
			t.Errorf("current %q", w.Current())
		}
	})
}

func TestLegacyDiscovery(t *testing.T) {
	d := newDiscovery(Route, HTTPRoute, ServiceMonitor)
	d.markStale(ServiceMonitor.GroupVersion(), apierrors.NewServiceUnavailable("busy"))
	d.markStale(HTTPRoute.GroupVersion(), apierrors.NewNotFound(schema.GroupResource{}, ""))
	w := New(Options{Discovery: newLegacy(d), Kinds: kinds})
	if !w.Current().Equal(NewSet(Route, ServiceMonitor, PrometheusRule)) || w.Ready(nil) != nil {
		t.Errorf("current %q: what could not be read is not absent, what was not found is", w.Current())
	}
	if w.backoff != 2*minBackoff {
		t.Errorf("the first version that could not be read made the next interval %s", w.backoff)
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
			pass(time.Second)
		}
		if maxActive != 1 || !slices.Equal(order, []string{"a", "b", "a", "b"}) {
			t.Errorf("order %v, %d at once", order, maxActive)
		}
	})
}

func TestInformerKeepsOnlyNames(t *testing.T) {
	in := object("routes.example.com")
	out, err := nameOnly(in)
	if err != nil {
		t.Fatal(err)
	}
	kept := fmt.Sprintf("%+v", out)
	if strings.Contains(kept, "kubectl") || strings.Contains(kept, "big") || !strings.Contains(kept, "routes.example.com") {
		t.Errorf("kept %s", kept)
	}
	if same, err := nameOnly(bytes.MinRead); err != nil || same != bytes.MinRead {
		t.Error("want values other than objects returned unchanged")
	}
}
