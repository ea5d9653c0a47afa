package capability

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// environment is a cluster whose APIs are added and removed, and whose discovery lags and fails. It records the real state.
type environment struct {
	fakeAPIServer
	defined map[schema.GroupVersionKind]bool // the CRD exists
	listed  map[schema.GroupVersionKind]bool // discovery lists it
	failing bool
	stale   map[schema.GroupVersion]bool
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	return &environment{
		fakeAPIServer: fakeAPIServer{newDiscovery(), newCluster(t)},
		defined:       map[schema.GroupVersionKind]bool{}, listed: map[schema.GroupVersionKind]bool{},
		stale: map[schema.GroupVersion]bool{},
	}
}

// toggleCRD creates the CRD of a kind, or deletes it.
func (env *environment) toggleCRD(k schema.GroupVersionKind) {
	if env.defined[k] {
		env.cluster.remove(crdName(k))
	} else {
		env.cluster.create(crdName(k))
	}
	env.defined[k] = !env.defined[k]
}

// list updates discovery for a kind.
func (env *environment) list(k schema.GroupVersionKind) {
	switch {
	case env.defined[k] && !env.listed[k]:
		env.d.serve(k)
	case !env.defined[k] && env.listed[k]:
		env.d.remove(k)
	}
	env.listed[k] = env.defined[k]
}

func (env *environment) toggleFailure() {
	env.failing = !env.failing
	if env.failing {
		env.d.setError(errors.New("connection refused"))
		return
	}
	env.d.setError(nil)
}

func (env *environment) toggleStale(gv schema.GroupVersion) {
	env.stale[gv] = !env.stale[gv]
	if env.stale[gv] {
		env.d.markStale(gv, errors.New("stale"))
		return
	}
	env.d.markStale(gv, nil)
}

// repair ends all failures and updates discovery.
func (env *environment) repair() {
	if env.failing {
		env.toggleFailure()
	}
	for gv, stale := range env.stale {
		if stale {
			env.toggleStale(gv)
		}
	}
	for _, k := range kinds {
		env.list(k)
	}
}

// expectedSet returns the kinds whose CRD exists: after repair the API server serves them.
func (env *environment) expectedSet() Set {
	var out []schema.GroupVersionKind
	for k, defined := range env.defined {
		if defined {
			out = append(out, k)
		}
	}
	return NewSet(out...)
}

// step is a random event, drawn before the synctest bubble starts.
type step struct {
	kind   schema.GroupVersionKind
	action int
	pause  time.Duration
}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
		action: rapid.IntRange(0, 5).Draw(t, "action"),
		pause:  time.Duration(rapid.IntRange(0, 40_000).Draw(t, "pause")) * time.Millisecond,
	}
}), 1, 12)

func (env *environment) runStep(s step) {
	switch s.action {
	case 0, 1:
		env.toggleCRD(s.kind)
	case 2:
		env.list(s.kind)
	case 3:
		env.toggleFailure()
	case 4:
		env.toggleStale(s.kind.GroupVersion())
	case 5:
		env.toggleCRD(s.kind)
		env.list(s.kind)
	}
	advance(s.pause)
}

// runInBubble runs a history in virtual time, and reports its problem to rapid outside of the bubble.
func runInBubble(t *testing.T, rt *rapid.T, history func(t *testing.T) (problem string)) {
	var problem string
	synctest.Test(t, func(t *testing.T) { problem = history(t) })
	if problem != "" {
		rt.Fatal(problem)
	}
}

// After any history of changes, lags and failures, the watcher converges to the served kinds once discovery works. Its last notification and
// its informers match them.
func TestAnyHistoryConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := steps.Draw(rt, "steps")
		runInBubble(t, rt, func(t *testing.T) string {
			env, recorder, watched := newEnvironment(t), &changes{}, map[schema.GroupVersionKind]*fakeCache{}
			w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
			w.Subscribe(t.Context(), recorder.add)
			var sources []source.Source
			for _, k := range kinds {
				watched[k] = &fakeCache{}
				sources = append(sources, w.Kind(watched[k], k, nil, &handler.EnqueueRequestForObject{}))
			}
			defer startController(t, newController(t, sources...))()
			run(t, w)
			for _, s := range history {
				env.runStep(s)
			}
			env.repair()
			advance(discoveryGracePeriod + maxBackoff + resyncPeriod + resyncPeriod/5)
			if problem := compare(w, env.expectedSet(), recorder.sets, watched); problem != "" {
				return problem
			}
			before := env.d.callCount()
			advance(resyncPeriod / 2)
			if n := env.d.callCount() - before; n > 1 {
				return fmt.Sprintf("got %d discovery calls in the steady state, want at most 1", n)
			}
			return ""
		})
	})
}

// compare returns the first difference between an idle watcher and the real state, or "".
func compare(w *Watcher, expected Set, notified []Set, watched map[schema.GroupVersionKind]*fakeCache) string {
	if !w.Current().Equal(expected) {
		return fmt.Sprintf("got served kinds %q, want %q", w.Current(), expected)
	}
	for i, set := range notified {
		if i > 0 && set.Equal(notified[i-1]) {
			return fmt.Sprintf("notification %d repeats the previous set %q", i, set)
		}
	}
	if n := len(notified); n > 0 && !notified[n-1].Equal(expected) {
		return fmt.Sprintf("got last notification %q, want %q", notified[n-1], expected)
	}
	for k, s := range watched {
		if want := expected.Has(k); (s.running == 1) != want || s.running > 1 {
			return fmt.Sprintf("got %d running informers of %s, served: %t", s.running, k.Kind, want)
		}
	}
	return ""
}

// Served kinds are kept while discovery fails.
func TestFailuresNeverRemoveKinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		served := rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(rt, "served")
		history := steps.Draw(rt, "steps")
		runInBubble(t, rt, func(t *testing.T) (problem string) {
			env := newEnvironment(t)
			for _, k := range served {
				env.toggleCRD(k)
				env.list(k)
			}
			w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
			run(t, w)
			for i, s := range history {
				if s.action%2 == 0 {
					env.toggleFailure()
				} else {
					env.toggleStale(s.kind.GroupVersion())
				}
				env.cluster.create(fmt.Sprintf("things%d.%s", i, Route.Group)) // triggers discovery
				advance(10 * s.pause)
				if !w.Current().HasAll(served...) {
					return fmt.Sprintf("got served kinds %q after failures, want none removed", w.Current())
				}
			}
			return ""
		})
	})
}
