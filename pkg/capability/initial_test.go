package capability

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"pgregory.net/rapid"
)

// Kinds of a listed version without resources count as served in the first result, and remain served when they are described.
func TestUndescribedVersionCountsAsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		client func(*fakeDiscovery) discovery.DiscoveryInterface
		cause  error
	}{
		"aggregated discovery":       {func(d *fakeDiscovery) discovery.DiscoveryInterface { return d }, errors.New("stale")},
		"a request for each version": {newLegacy, apierrors.NewServiceUnavailable("the server is currently unable to handle the request")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cluster, recorder := newDiscovery(Route, OpenShiftIngress, HTTPRoute), newCluster(t), &changes{}
				cluster.create(crdName(HTTPRoute))
				d.markStale(Route.GroupVersion(), tc.cause)
				w := New(Options{Discovery: tc.client(d), Metadata: cluster, Kinds: kinds})
				w.Subscribe(t.Context(), recorder.add)
				if !w.Current().OpenShift() || !w.Current().Equal(NewSet(Route, OpenShiftIngress, HTTPRoute)) || w.Ready(nil) != nil {
					t.Errorf("current %q, ready %v: an API whose server is away was taken for absent", w.Current(), w.Ready(nil))
				}
				run(t, w)
				pass(10 * time.Minute)
				d.markStale(Route.GroupVersion(), nil)
				pass(10 * time.Minute)
				if !w.Current().Has(Route) || recorder.len() != 0 {
					t.Errorf("current %q after %d changes, want none", w.Current(), recorder.len())
				}
			})
		})
	}
}

// The first description of a version replaces the assumption that its kinds are served, and is kept while discovery fails.
func TestFirstDescriptionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(ServiceMonitor), newCluster(t)
		cluster.create(crdName(ServiceMonitor))
		gv := ServiceMonitor.GroupVersion()
		d.markStale(gv, errors.New("stale"))
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		pass(time.Minute)
		if !w.Current().Equal(NewSet(ServiceMonitor, PrometheusRule)) {
			t.Errorf("current %q: it is unknown which of them are served", w.Current())
		}
		d.markStale(gv, nil)
		pass(maxBackoff + discoveryGracePeriod + maxBackoff)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("current %q after the first description", w.Current())
		}
		d.markStale(gv, errors.New("stale again"))
		cluster.update(crdName(ServiceMonitor), "2") // starts a reading
		pass(time.Minute)
		if !w.Current().Equal(NewSet(ServiceMonitor)) {
			t.Errorf("current %q: the last description has to hold", w.Current())
		}
	})
}

// A version that the first answer does not list is absent, also when it is announced before its server answers.
func TestInstalledAPICountsWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cluster := newDiscovery(), newCluster(t)
		w := New(Options{Discovery: d, Metadata: cluster, Kinds: kinds})
		run(t, w)
		d.serve(Route)
		d.markStale(Route.GroupVersion(), errors.New("no endpoints yet"))
		pass(time.Minute)
		if w.Current().Has(Route) {
			t.Error("the API counts as served before discovery succeeded")
		}
		d.markStale(Route.GroupVersion(), nil)
		pass(maxBackoff)
		if !w.Current().Has(Route) {
			t.Error("the API does not count as served after discovery succeeded")
		}
	})
}

// However much of the first answers is missing: before one there is nothing, and from the first one on nothing that is served is
// ever missing, until discovery is well and knows the truth.
func TestInitialFailuresNeverDowngrade(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		served := rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(rt, "served")
		unserved := rapid.SliceOf(rapid.SampledFrom(kinds)).Draw(rt, "away")
		silent := rapid.Bool().Draw(rt, "silent")
		script := steps.Draw(rt, "steps")
		inBubble(t, rt, func(t *testing.T) string {
			env := newEnvironment(t)
			for _, k := range served {
				env.define(k)
				env.list(k)
			}
			for _, k := range unserved {
				if gv := k.GroupVersion(); !env.stale[gv] && listsSome(env.d, gv) {
					env.toggleStale(gv)
				}
			}
			if silent {
				env.toggleFailure()
			}
			w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
			run(t, w)
			for _, s := range script {
				if s.description%2 == 0 {
					env.toggleFailure()
				} else if listsSome(env.d, s.kind.GroupVersion()) {
					env.toggleStale(s.kind.GroupVersion())
				}
				pass(s.pause)
				answered := w.Ready(nil) == nil
				if answered && !w.Current().HasAll(served...) || !answered && len(w.Current().UnsortedList()) > 0 {
					return "answered " + map[bool]string{true: "once", false: "never"}[answered] + ", current " + w.Current().String()
				}
			}
			env.repair()
			pass(discoveryGracePeriod + maxBackoff + resyncPeriod + resyncPeriod/5)
			if !w.Current().Equal(env.expectedSet()) {
				return "in the end " + w.Current().String() + ", the truth is " + env.expectedSet().String()
			}
			return ""
		})
	})
}

// listsSome reports whether a fake announces a version.
func listsSome(d *fakeDiscovery, gv schema.GroupVersion) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lists[gv]) > 0
}
