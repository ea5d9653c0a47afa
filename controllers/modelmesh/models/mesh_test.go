package models

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// simulate runs a test with a simulation, in the fake time of a synctest bubble.
func simulate(t *testing.T, test func(t *testing.T, sim *simulation), change ...func(*modelmesh.LayerOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation(t, change...)
		defer func() { _ = sim.mesh.Close() }()
		test(t, sim)
	})
}

// expectStable checks each second, for the given duration, that matches returns true for the status of a model.
func (sim *simulation) expectStable(t *testing.T, name string, d time.Duration, matches func(v1alpha1.PredictorStatus) bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		sim.run(t, time.Second)
		if s := sim.statusOf(t, name); !matches(s) {
			t.Fatalf("%s: unexpected status %+v", name, s)
		}
	}
}

// waitFor returns the time until matches returns true for the status of a model.
func (sim *simulation) waitFor(t *testing.T, name string, matches func(v1alpha1.PredictorStatus) bool) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 10*time.Minute {
		sim.run(t, 50*time.Millisecond)
		if matches(sim.statusOf(t, name)) {
			return time.Since(start)
		}
	}
	t.Fatalf("%s: unexpected status %+v after ten minutes", name, sim.statusOf(t, name))
	return 0
}

func isLoaded(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loaded && s.Available
}

func isWaitingForPod(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loading && !s.Available && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.RuntimeUnhealthy
}

// [modelmesh-68] [modelmesh-85] A model that no runtime supports stays failed: the mesh reports that only in responses to calls with
// LoadNow.
func TestUnsupportedModelStaysFailed(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.edit(t, "p1", "unsupported", "good", false)
		sim.edit(t, "s1", "unsupported", "good", false)
		sim.run(t, time.Second)
		for _, name := range []string{"p1", "s1"} {
			sim.expectStable(t, name, 10*time.Minute, func(s v1alpha1.PredictorStatus) bool {
				return s.ActiveModelState == v1alpha1.FailedToLoad && !s.Available && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.NoSupportingRuntime
			})
		}
		service := &v1beta1.InferenceService{}
		if err := sim.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s1"}, service); err != nil {
			t.Fatal(err)
		}
		for _, c := range service.Status.Conditions {
			if c.Status != corev1.ConditionFalse {
				t.Errorf("condition %s is %s, want False", c.Type, c.Status)
			}
		}
	})
}

// [modelmesh-86] [modelmesh-98] A model waits for a pod of its runtime, and is loaded within three seconds after the pod is ready.
func TestModelWaitsForPod(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.hasRuntime = true
		sim.edit(t, "p1", "b", "good", false)
		sim.run(t, time.Second)
		sim.expectStable(t, "p1", 5*time.Minute, isWaitingForPod)
		sim.mesh.loadTime = 0
		other := modelmesh.Instance{ID: "two", Labels: []string{"mt:b"}}
		if err := sim.mesh.SetInstances(t.Context(), []modelmesh.Instance{podOfFormatA, other}); err != nil {
			t.Fatal(err)
		}
		sim.onEndpointsChanged() // before clients can call the pod
		if sim.run(t, 3*time.Second); sim.mesh.loadCount("good") != 1 {
			t.Error("want one load within three seconds after the pod is ready")
		}
		if elapsed := sim.waitFor(t, "p1", isLoaded); elapsed > 5*time.Second {
			t.Errorf("the status was Loaded %s after the load", elapsed)
		}
		sim.expectStable(t, "p1", 5*time.Minute, isLoaded)
	})
}

func TestLoadedIsReportedWithinFiveSeconds(t *testing.T) {
	for _, loadTime := range []time.Duration{time.Second, 40 * time.Second, 5 * time.Minute} {
		simulate(t, func(t *testing.T, sim *simulation) {
			sim.mesh.loadTime = loadTime
			sim.edit(t, "p1", "a", "good", false)
			if elapsed := sim.waitFor(t, "p1", isLoaded); elapsed < loadTime || elapsed > loadTime+5*time.Second {
				t.Errorf("a load of %s was reported after %s", loadTime, elapsed)
			}
			calls := sim.mesh.Calls()["setVModel"]
			if sim.run(t, time.Hour); sim.mesh.Calls()["setVModel"] != calls {
				t.Error("the mesh was called in steady state")
			}
		})
	}
}

// Evicted models are not loaded again before an inference request: loading them would evict others, without end.
func TestEvictedModelsAreNotReloaded(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.hasRuntime = true
		paths := []string{"one", "two", "three", "four", "five", "huge"}
		for n, path := range paths {
			sim.edit(t, "p"+path, "a", path, false)
			sim.run(t, time.Duration(n+5)*time.Second)
		}
		sim.run(t, 5*time.Minute)
		sim.restartOperator(t) // a restart loses the states of the models
		sim.run(t, 5*time.Minute)
		sim.onEndpointsChanged()
		sim.run(t, 5*time.Minute)
		for _, path := range paths {
			if got := sim.mesh.loadCount(path); got != 1 {
				t.Errorf("%s was loaded %d times, want once", path, got)
			}
			if s := sim.statusOf(t, "p"+path); !s.Available || s.ActiveModelState != v1alpha1.Loaded && s.ActiveModelState != v1alpha1.Standby {
				t.Errorf("%s: status %+v, want an available model, Loaded or Standby", path, s)
			}
		}
	}, func(o *modelmesh.LayerOptions) {
		o.Capacity, o.FirstRound = 1024, 24*time.Hour
		o.Size = func(l modelmesh.Load) int {
			if l.Path == "huge" {
				return 1500
			}
			return 300
		}
	})
}

// A model that fails to load is loaded once on its only instance, and its failure is written once.
func TestModelThatFailsToLoadIsLoadedOnce(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.edit(t, "p1", "a", "bad", false)
		sim.run(t, 5*time.Second)
		writes := len(sim.patches)
		for range 30 {
			sim.enqueue(types.NamespacedName{Namespace: "ns", Name: "ksp_p1"})
			sim.states.markDirty(types.NamespacedName{Namespace: "ns", Name: "ksp_p1"})
			sim.run(t, 10*time.Second)
		}
		s := sim.statusOf(t, "p1")
		if s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Message != "INVALID_ARGUMENT: cannot load" || s.LastFailureInfo.Location != "one" {
			t.Errorf("status %+v, want FailedToLoad with message and location of the instance", s)
		}
		if got := sim.mesh.loadCount("bad"); got != 1 || len(sim.patches) != writes {
			t.Errorf("%d loads and %d writes after the failure, want one load and no write", got, len(sim.patches)-writes)
		}
	})
}

// If the pod with the only copy is killed, the change of the pods triggers another load.
func TestLostCopyIsReloaded(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.edit(t, "p1", "a", "good", false)
		sim.waitFor(t, "p1", isLoaded)
		second := modelmesh.Instance{ID: "two", Labels: []string{"mt:a"}}
		if err := sim.mesh.SetInstances(t.Context(), []modelmesh.Instance{podOfFormatA, second}); err != nil {
			t.Fatal(err)
		}
		sim.run(t, time.Second)
		sim.mesh.Kill("one")
		sim.onEndpointsChanged()
		sim.run(t, 5*time.Second)
		sim.expectStable(t, "p1", time.Minute, isLoaded)
		if got := sim.mesh.loadCount("good"); got != 2 {
			t.Errorf("%d loads, want 2", got)
		}
	})
}

// The status reports that no runtime supports the target. The mesh returns no error for it.
func TestUnsupportedTargetIsReported(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.edit(t, "p1", "a", "good", false)
		sim.waitFor(t, "p1", isLoaded)
		sim.edit(t, "p1", "unsupported", "good", false)
		sim.run(t, 5*time.Second)
		sim.expectStable(t, "p1", time.Minute, func(s v1alpha1.PredictorStatus) bool {
			return s.Available && s.TransitionStatus == v1alpha1.BlockedByFailedLoad && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.NoSupportingRuntime
		})
	})
}

// The status reports an unreachable mesh once. Models that are loaded remain available.
func TestUnreachableMeshIsReported(t *testing.T) {
	simulate(t, func(t *testing.T, sim *simulation) {
		sim.edit(t, "p1", "a", "good", false)
		sim.waitFor(t, "p1", isLoaded)
		sim.edit(t, "p2", "a", "good", false)
		sim.mesh.unreachable = true
		sim.run(t, 2*time.Minute)
		writes := len(sim.patches)
		sim.expectStable(t, "p2", 10*time.Minute, func(s v1alpha1.PredictorStatus) bool {
			return s.ActiveModelState == v1alpha1.Pending && isMeshUnreachable(s.LastFailureInfo) && strings.Contains(s.LastFailureInfo.Message, "connection refused")
		})
		if !isLoaded(sim.statusOf(t, "p1")) || len(sim.patches) != writes {
			t.Errorf("status %+v, %d writes, want the loaded model unchanged", sim.statusOf(t, "p1"), len(sim.patches)-writes)
		}
		sim.mesh.unreachable = false
		if elapsed := sim.waitFor(t, "p2", isLoaded); elapsed > 2*time.Minute {
			t.Errorf("loaded %s after the mesh responded", elapsed)
		}
		if s := sim.statusOf(t, "p2"); s.LastFailureInfo != nil {
			t.Errorf("status %+v, want no failure after the mesh responded", s)
		}
	})
}
