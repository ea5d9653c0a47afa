package appwrapper

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// reconcileUntilIdle reconciles until idle.
func (f *fixture) reconcileUntilIdle() *awv1beta2.AppWrapper {
	f.Helper()
	none := false
	f.reconcileWithCrash(&none)
	return f.get()
}

// expectCondition expects the status and reason of a condition, as "True/Reason".
func (f *fixture) expectCondition(kind, want string) {
	f.Helper()
	c := meta.FindStatusCondition(f.get().Status.Conditions, kind)
	if c == nil || string(c.Status)+"/"+c.Reason != want {
		f.Errorf("%s is %+v, want %s", kind, c, want)
	}
}

// place sets the node of a pod and adds a GPU request.
func (f *fixture) place(name, node string) {
	f.Helper()
	pod := &corev1.Pod{}
	if err := f.server.Get(f.Context(), requestFor(name).NamespacedName, pod); err != nil {
		f.Fatal(err)
	}
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	if err := f.server.Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
	f.setPodPhase(corev1.PodRunning)
}

// [appwrapper-46] A pod with a GPU on a node with label EVICT: Resetting, then Running on another node, without counting a retry.
func TestNoExecuteNodeResetsWorkload(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("retryPausePeriodDuration", "5s")))
	nodes := badNodes{}
	w.nodes = nodes
	w.must(awv1beta2.PhaseRunning)
	w.place("a", "n1")
	w.reconcileUntilIdle()
	w.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
	nodes["n1"] = "nvidia.com/gpu"
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseResetting || aw.Status.LastFailure.Reason != awv1beta2.ReasonAutopilotNoExecute {
		t.Fatalf("phase %s, failure %+v", aw.Status.Phase, aw.Status.LastFailure)
	}
	w.reconcileUntilIdle()
	w.place("a", "n2")
	aw := w.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseRunning || aw.Status.Retries != 0 || created(w, "a") != 2 {
		t.Errorf("phase %s, %d retries, created %d times", aw.Status.Phase, aw.Status.Retries, created(w, "a"))
	}
	w.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
	w.expectCondition(awv1beta2.ConditionUnhealthy, "False/Resuming")
}

// [D1] [appwrapper-52] After a run of an hour the objects are retained for the whole time to live.
func TestTTLStartsAtCompletion(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("successTTLDuration", "10m")))
	w.must(awv1beta2.PhaseRunning)
	w.setPodPhase(corev1.PodRunning)
	w.reconcileUntilIdle()
	w.clock.Step(time.Hour)
	w.setPodPhase(corev1.PodSucceeded)
	w.must(awv1beta2.PhaseSucceeded)
	w.clock.Step(9 * time.Minute)
	w.must(awv1beta2.PhaseSucceeded)
	if slices.Contains(w.writes, "delete Pod a") {
		t.Fatalf("deleted before its time: %q", w.writes)
	}
	w.expectCondition(rd, "True/Succeeded")
	w.clock.Step(time.Minute)
	w.reconcileUntilIdle()
	w.expectCondition(rd, "False/Succeeded")
	w.expectCondition(qr, "False/Succeeded")
}

// [D2] [appwrapper-53] The delay after a failure counts once, also after an earlier reset, and deletion completes.
func TestDelayAfterFailureAppliesOnce(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("deletionOnFailureGracePeriodDuration", "10m",
		"failureGracePeriodDuration", "0s", "retryLimit", "1", "retryPausePeriodDuration", "0s")))
	w.must(awv1beta2.PhaseRunning)
	w.setPodPhase(corev1.PodFailed)
	w.reconcileUntilIdle()
	w.clock.Step(20 * time.Second)
	w.setPodPhase(corev1.PodFailed)
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseFailed {
		t.Fatalf("phase %s", aw.Status.Phase)
	}
	w.expectCondition(awv1beta2.ConditionDeletingResources, "False/DeletionPaused")
	w.expectCondition(qr, "True/Resuming")
	before := count(w.writes, "delete Pod a")
	w.clock.Step(9 * time.Minute)
	w.reconcileUntilIdle()
	if count(w.writes, "delete Pod a") != before {
		t.Fatal("the pod was deleted before the delay ended")
	}
	w.clock.Step(time.Minute)
	w.addFinalizer("a")
	w.reconcileUntilIdle()
	w.expectCondition(awv1beta2.ConditionDeletingResources, "True/DeletionInitiated")
	w.clock.Step(11 * time.Minute) // longer than the delay and than the period after which deletion is forced
	for range 3 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	w.expectCondition(awv1beta2.ConditionDeletingResources, "True/DeletionInitiated")
	if n := count(w.writes, "delete Pod a") - before; n < 2 {
		t.Errorf("%d deletions; the second one has to be by force: %q", n, w.writes)
	}
	pod := &corev1.Pod{}
	if err := w.server.Get(t.Context(), requestFor("a").NamespacedName, pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = nil
	if err := w.server.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(rules.UnwatchedInterval)
	w.reconcileUntilIdle()
	w.expectCondition(rd, "False/Failed")
	w.expectCondition(qr, "False/Failed")
}

// Suspension during retries of a creation leaves no objects.
func TestSuspensionWhileCreationIsRetried(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a"), wrappedPod("b")}))
	w.before = func(request string) error {
		if request == "create Pod b" {
			return apierrors.NewTooManyRequests("slowly", 1)
		}
		return nil
	}
	w.must(awv1beta2.PhaseResuming)
	w.expectCondition(rd, "True/Resuming")
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw := w.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseSuspended || count(w.writes, "delete Pod a") != 1 || count(w.writes, "delete Pod b") != 0 {
		t.Errorf("phase %s, writes %q", aw.Status.Phase, w.writes)
	}
	w.expectCondition(qr, "False/Suspended")
}

// A foreign object that is created between two attempts makes the creation fail permanently, and is not changed.
func TestCreationFailsForForeignObject(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}), owned())
	aw := w.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseFailed || !strings.Contains(aw.Status.LastFailure.Message, "delete it or recreate it under another name") {
		t.Errorf("phase %s, failure %+v", aw.Status.Phase, aw.Status.LastFailure)
	}
	if count(w.writes, "delete Pod a") != 0 {
		t.Errorf("writes %q", w.writes)
	}
}

// [appwrapper-51] Deletion stays in Terminating until all pods are deleted, and then removes the finalizer.
func TestDeletionWaitsForPods(t *testing.T) {
	w := newFixture(t, wrapper([]string{mapTemplate}), grandchild("late"))
	w.must(awv1beta2.PhaseRunning)
	if err := w.server.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseTerminating {
		t.Fatalf("phase %s", aw.Status.Phase)
	}
	w.expectCondition(qr, "True/Resuming")
	w.expectCondition(conditions.Ready, "False/Terminating")
	if err := w.server.Delete(t.Context(), grandchild("late")); err != nil {
		t.Fatal(err)
	}
	none := false
	w.reconcileWithCrash(&none)
	if err := w.server.Get(t.Context(), awKey, &awv1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
		t.Errorf("the AppWrapper is still there: %v", err)
	}
}

// A template that cannot be decoded is a permanent failure, and a rejected component stops the creation of later ones.
func TestRejectedComponentStopsCreation(t *testing.T) {
	for name, tc := range map[string]struct {
		templates []string
		before    func(string) error
		says      string
	}{
		"another namespace": {[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"other"},"spec":{"containers":[{"name":"c","image":"i"}]}}`}, nil, `metadata.namespace is "other"`},
		"an unknown kind":   {[]string{`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a"}}`}, nil, "no matches for kind"},
		"rejected as invalid": {[]string{wrappedPod("a"), wrappedPod("b")}, func(request string) error {
			if request == "create Pod a" {
				return apierrors.NewInvalid(podKind.GroupKind(), "a", nil)
			}
			return nil
		}, "is invalid"},
		"another controller": {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]}}`}, nil, "the AppWrapper cannot be the controller of ConfigMap a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, wrapper(tc.templates))
			if tc.before != nil {
				w.before = tc.before
			}
			aw := w.reconcileUntilIdle()
			if aw.Status.Phase != awv1beta2.PhaseFailed || aw.Status.Retries != 0 || !strings.Contains(aw.Status.LastFailure.Message, tc.says) {
				t.Errorf("phase %s, failure %+v", aw.Status.Phase, aw.Status.LastFailure)
			}
			if len(w.born) != 0 {
				t.Errorf("made %v", w.born)
			}
		})
	}
}

// A failed status update sends no Event and is retried.
func TestFailedStatusUpdateIsRetried(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.before = func(request string) error {
		if strings.HasPrefix(request, "patch status") {
			return errors.New("no route to host")
		}
		return nil
	}
	if _, err := w.reconcileOnce(); err == nil || len(w.events.Events) != 0 {
		t.Errorf("error %v, %d events", err, len(w.events.Events))
	}
	w.before = func(string) error { return nil }
	w.must(awv1beta2.PhaseRunning)
}

// TestRefusedPods shows that PodsReady quotes the rejection of pods while the workload waits, and lastFailure after the deletion.
func TestRefusedPods(t *testing.T) {
	refused := func(about, reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: awKey.Namespace, Name: about + reason}, Type: corev1.EventTypeWarning, Reason: reason,
			Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Hour)), InvolvedObject: corev1.ObjectReference{Name: about}}
	}
	w := newFixture(t, wrapper([]string{wrappedJob("job", 1)}),
		refused("job", "FailedCreate", `Error creating: pods "job-x7" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`),
		refused("job", "Unhealthy", "not this"), refused("other", "FailedCreate", "not of it"))
	w.must(awv1beta2.PhaseRunning)
	if err := w.rest(refusalInterval); err != nil {
		t.Fatal(err)
	}
	const cause = "0 pods pending; 0 pods running; 0 pods succeeded; pods cannot be created: exceeded quota: small, requested: pods=1, limited: pods=3"
	if c := meta.FindStatusCondition(w.get().Status.Conditions, awv1beta2.ConditionPodsReady); c == nil || c.Message != cause {
		t.Errorf("while it waits: %+v", c)
	}
	for w.get().Status.Phase != awv1beta2.PhaseFailed {
		w.clock.Step(time.Minute)
		if err := w.rest(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if failure := w.get().Status.LastFailure; failure == nil || !strings.Contains(failure.Message, "exceeded quota: small") {
		t.Errorf("unexpected failure: %+v", failure)
	}
}
