package capability

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"pgregory.net/rapid"
)

// Kinds of a version whose resources cannot be read count as served after the first discovery, and stay served when they are listed.
func TestUnreadableVersionCountsAsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		client func(*fakeDiscovery) discovery.DiscoveryInterface
		cause  error
	}{
		"aggregated discovery":       {func(d *fakeDiscovery) discovery.DiscoveryInterface { return d }, errors.New("stale")},
		"a request for each version": {newUnaggregated, apierrors.NewServiceUnavailable("the server is currently unable to handle the request")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cluster, recorder := newDiscovery(Route, OpenShiftIngress, HTTPRoute), newCluster(t), &changes{}
				cluster.create(crdName(HTTPRoute))
				d.markStale(Route.GroupVersion(), tc.cause)
				w := New(Options{Discovery: tc.client(d), Metadata: cluster, Kinds: kinds})
				w.Subscribe(t.Context(), recorder.add)
				if !w.Current().IsOpenShift() || !w.Current().Equal(NewSet(Route, OpenShiftIngress, HTTPRoute)) || w.Ready(nil) != nil {
					t.Errorf("current %q, ready %v: an unreadable API is treated as not served", w.Current(), w.Ready(nil))
				}
				run(t, w)
				advance(10 * time.Minute)
				d.markStale(Route.GroupVersion(), nil)
				advance(10 * time.Minute)
				if !w.Current().Has(Route) || recorder.len() != 0 {
					t.Errorf("current %q after %d changes, want none", w.Current(), recorder.len())
				}
			})
		})
	}
}

// The first resource list of a version replaces the assumption that its kinds are served, and is kept while discovery fails.
func TestFirstResourceListIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(ServiceMonitor), newCluster(t)
		cluster.create(crdName(ServiceMonitor))
		gv := ServiceMonitor.GroupVersion()
		d.markStale(gv, errors.New("stale"))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		advance(time.Minute)
		if !w.Current().Equal(NewSet(ServiceMonitor, PrometheusRule)) {
			t.Errorf("got served kinds %q, want both kinds of the unreadable version", w.Current())
		}
		d.markStale(gv, nil)
		advance(maxBackoff + discoveryGracePeriod + maxBackoff)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("got served kinds %q after the first resource list, want ServiceMonitor", w.Current())
		}
		d.markStale(gv, errors.New("stale again"))
		cluster.update(crdName(ServiceMonitor), "2") // triggers discovery
		advance(time.Minute)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("got served kinds %q, want those of the last resource list", w.Current())
		}
	})
}

// A version that the first discovery does not list counts as served only when its resources can be read, even if it is listed earlier.
func TestInstalledAPICountsWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.serve(Route)
		d.markStale(Route.GroupVersion(), errors.New("no endpoints yet"))
		advance(time.Minute)
		if w.Current().Has(Route) {
			t.Error("the API counts as served before its resources can be read")
		}
		d.markStale(Route.GroupVersion(), nil)
		advance(maxBackoff)
		if !w.Current().Has(Route) {
			t.Error("the API does not count as served, although its resources can be read")
		}
	})
}

// Before the first successful discovery the set is empty. After it, all served kinds are in the set, whatever else fails.
func TestInitialFailuresNeverRemoveKinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		served := rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(rt, "served")
		unreadable := rapid.SliceOf(rapid.SampledFrom(kinds)).Draw(rt, "unreadable")
		failing := rapid.Bool().Draw(rt, "failing")
		history := steps.Draw(rt, "steps")
		runInBubble(t, rt, func(t *testing.T) string {
			env := newEnvironment(t)
			for _, k := range served {
				env.toggleCRD(k)
				env.list(k)
			}
			for _, k := range unreadable {
				if gv := k.GroupVersion(); !env.stale[gv] && listsSome(env.d, gv) {
					env.toggleStale(gv)
				}
			}
			if failing {
				env.toggleFailure()
			}
			w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
			run(t, w)
			for _, s := range history {
				if s.action%2 == 0 {
					env.toggleFailure()
				} else if listsSome(env.d, s.kind.GroupVersion()) {
					env.toggleStale(s.kind.GroupVersion())
				}
				advance(s.pause)
				ready := w.Ready(nil) == nil
				if ready && !w.Current().HasAll(served...) || !ready && len(w.Current().UnsortedList()) > 0 {
					return fmt.Sprintf("ready: %t, served kinds: %s", ready, w.Current())
				}
			}
			env.repair()
			advance(discoveryGracePeriod + maxBackoff + resyncPeriod + resyncPeriod/5)
			if !w.Current().Equal(env.expectedSet()) {
				return fmt.Sprintf("got served kinds %s after the repair, want %s", w.Current(), env.expectedSet())
			}
			return ""
		})
	})
}

// listsSome reports whether a fake API server lists kinds of a version.
func listsSome(d *fakeDiscovery, gv schema.GroupVersion) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lists[gv]) > 0
}
