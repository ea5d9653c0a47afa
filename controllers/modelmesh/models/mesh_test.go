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

// onJourney runs a test against the fake, in a time of its own.
func onJourney(t *testing.T, test func(t *testing.T, j *journey), change ...func(*modelmesh.LayerOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := newJourney(t, change...)
		defer func() { _ = j.mesh.Close() }()
		test(t, j)
	})
}

// expectStable looks each second whether a status is right.
func (j *journey) expectStable(t *testing.T, name string, d time.Duration, right func(v1alpha1.PredictorStatus) bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		j.run(t, time.Second)
		if s := j.statusOf(t, name); !right(s) {
			t.Fatalf("%s: got status %+v", name, s)
		}
	}
}

// after returns how long it takes until a status is right.
func (j *journey) after(t *testing.T, name string, right func(v1alpha1.PredictorStatus) bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < 10*time.Minute {
		j.run(t, 50*time.Millisecond)
		if right(j.statusOf(t, name)) {
			return time.Since(begin)
		}
	}
	t.Fatalf("%s: unexpected status: %+v", name, j.statusOf(t, name))
	return 0
}

func isLoaded(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loaded && s.Available
}

func waitForPodCondition(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loading && !s.Available && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.RuntimeUnhealthy
}

// [modelmesh-68] [modelmesh-85] Only an order to load makes the mesh report that no runtime supports a model. A status that is
// correct only briefly is not enough.
func TestAnUnsupportedModelStaysFailed(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.edit(t, "p1", "unheard", "good", false)
		j.edit(t, "s1", "unheard", "good", false)
		j.run(t, time.Second)
		for _, name := range []string{"p1", "s1"} {
			j.expectStable(t, name, 10*time.Minute, func(s v1alpha1.PredictorStatus) bool {
				return s.ActiveModelState == v1alpha1.FailedToLoad && !s.Available && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.NoSupportingRuntime
			})
		}
		service := &v1beta1.InferenceService{}
		if err := j.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s1"}, service); err != nil {
			t.Fatal(err)
		}
		for _, c := range service.Status.Conditions {
			if c.Status != corev1.ConditionFalse {
				t.Errorf("%s is %s", c.Type, c.Status)
			}
		}
	})
}

// [modelmesh-86] [modelmesh-98] A model waits for a pod of its runtime, and is loaded within three seconds of it.
func TestAModelWaitsForItsPod(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.supports = true
		j.edit(t, "p1", "b", "good", false)
		j.run(t, time.Second)
		j.expectStable(t, "p1", 5*time.Minute, waitForPodCondition)
		j.mesh.taking = 0
		other := modelmesh.Instance{ID: "two", Labels: []string{"mt:b"}}
		if err := j.mesh.SetInstances(t.Context(), []modelmesh.Instance{sklearnPod, other}); err != nil {
			t.Fatal(err)
		}
		j.onEndpointsChanged() // before clients can reach it
		if j.run(t, 3*time.Second); j.mesh.loadCount("good") != 1 {
			t.Error("want one load within three seconds after the pod is ready")
		}
		if took := j.after(t, "p1", isLoaded); took > 5*time.Second {
			t.Errorf("shown %s after it was loaded", took)
		}
		j.expectStable(t, "p1", 5*time.Minute, isLoaded)
	})
}

func TestLoadedIsShownWithinFiveSeconds(t *testing.T) {
	for _, taking := range []time.Duration{time.Second, 40 * time.Second, 5 * time.Minute} {
		onJourney(t, func(t *testing.T, j *journey) {
			j.mesh.taking = taking
			j.edit(t, "p1", "a", "good", false)
			if took := j.after(t, "p1", isLoaded); took < taking || took > taking+5*time.Second {
				t.Errorf("a load of %s is shown after %s", taking, took)
			}
			calls := j.mesh.Calls()["setVModel"]
			if j.run(t, time.Hour); j.mesh.Calls()["setVModel"] != calls {
				t.Error("the mesh was called in the steady state")
			}
		})
	}
}

// Models that do not all fit are dropped for each other. To order each that was dropped would never end.
func TestModelsDoNotEvictEachOther(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.supports = true
		paths := []string{"one", "two", "three", "four", "five", "huge"}
		for n, path := range paths {
			j.edit(t, "p"+path, "a", path, false)
			j.run(t, time.Duration(n+5)*time.Second)
		}
		j.run(t, 5*time.Minute)
		j.startManager(t) // a manager that starts has forgotten who was dropped
		j.run(t, 5*time.Minute)
		j.onEndpointsChanged()
		j.run(t, 5*time.Minute)
		for _, path := range paths {
			if got := j.mesh.loadCount(path); got != 1 {
				t.Errorf("%s was loaded %d times", path, got)
			}
			if s := j.statusOf(t, "p"+path); !s.Available || s.ActiveModelState != v1alpha1.Loaded && s.ActiveModelState != v1alpha1.Standby {
				t.Errorf("%s: got status %+v, want an available model, Loaded or Standby", path, s)
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

// A model that cannot be loaded is loaded once on each instance; its failure is written once.
func TestModelThatFailsToLoadIsLoadedOnce(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.edit(t, "p1", "a", "bad", false)
		j.run(t, 5*time.Second)
		writes := len(j.patches)
		for range 30 {
			j.enqueue(types.NamespacedName{Namespace: "ksp_ns", Name: "p1"})
			j.states.markDirty(types.NamespacedName{Namespace: "ksp_ns", Name: "p1"})
			j.run(t, 10*time.Second)
		}
		s := j.statusOf(t, "p1")
		if s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo.Message != "INVALID_ARGUMENT: cannot load" || s.LastFailureInfo.Location != "one" {
			t.Errorf("got status %+v, want FailedToLoad with message and location of the instance", s)
		}
		if got := j.mesh.loadCount("bad"); got != 1 || len(j.patches) != writes {
			t.Errorf("%d loads, %d writes after the failure", got, len(j.patches)-writes)
		}
	})
}

// Nothing else notices that the pod with the only copy was killed.
func TestLostCopyIsReloaded(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.edit(t, "p1", "a", "good", false)
		j.after(t, "p1", isLoaded)
		next := modelmesh.Instance{ID: "two", Labels: []string{"mt:a"}}
		if err := j.mesh.SetInstances(t.Context(), []modelmesh.Instance{sklearnPod, next}); err != nil {
			t.Fatal(err)
		}
		j.run(t, time.Second)
		j.mesh.Kill("one")
		j.onEndpointsChanged()
		j.run(t, 5*time.Second)
		j.expectStable(t, "p1", time.Minute, isLoaded)
		if got := j.mesh.loadCount("good"); got != 2 {
			t.Errorf("loaded %d times", got)
		}
	})
}

// A target without a supporting runtime stays in transition without an error from the mesh; the status has the cause.
func TestAnUnsupportedTargetIsReported(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.edit(t, "p1", "a", "good", false)
		j.after(t, "p1", isLoaded)
		j.edit(t, "p1", "unheard", "good", false)
		j.run(t, 5*time.Second)
		j.expectStable(t, "p1", time.Minute, func(s v1alpha1.PredictorStatus) bool {
			return s.Available && s.TransitionStatus == v1alpha1.BlockedByFailedLoad && s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.NoSupportingRuntime
		})
	})
}

// A mesh that does not answer is reported in the status, once, and not taken for a model that is not served.
func TestAMeshThatDoesNotAnswerIsReported(t *testing.T) {
	onJourney(t, func(t *testing.T, j *journey) {
		j.edit(t, "p1", "a", "good", false)
		j.after(t, "p1", isLoaded)
		j.edit(t, "p2", "a", "good", false)
		j.mesh.silent = true
		j.run(t, 2*time.Minute)
		writes := len(j.patches)
		j.expectStable(t, "p2", 10*time.Minute, func(s v1alpha1.PredictorStatus) bool {
			return s.ActiveModelState == v1alpha1.Pending && isMeshUnreachable(s.LastFailureInfo) && strings.Contains(s.LastFailureInfo.Message, "connection refused")
		})
		if !isLoaded(j.statusOf(t, "p1")) || len(j.patches) != writes {
			t.Errorf("%+v, %d writes", j.statusOf(t, "p1"), len(j.patches)-writes)
		}
		j.mesh.silent = false
		if took := j.after(t, "p2", isLoaded); took > 2*time.Minute {
			t.Errorf("loaded after %s", took)
		}
		if s := j.statusOf(t, "p2"); s.LastFailureInfo != nil {
			t.Errorf("got status %+v, want no failure after the mesh answered", s)
		}
	})
}
