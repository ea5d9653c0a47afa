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

// reconcileUntilIdle reconciles until no write follows, and returns the AppWrapper.
func (f *fixture) reconcileUntilIdle() *awv1beta2.AppWrapper {
	f.Helper()
	crashed := false
	f.reconcileWithCrash(&crashed)
	return f.get()
}

// expectCondition expects the status and reason of a condition, as "True/Reason".
func (f *fixture) expectCondition(conditionType, want string) {
	f.Helper()
	c := meta.FindStatusCondition(f.get().Status.Conditions, conditionType)
	if c == nil || string(c.Status)+"/"+c.Reason != want {
		f.Errorf("got condition %s %+v, want %s", conditionType, c, want)
	}
}

// placeOnNode sets the node and a GPU limit of a pod, and sets the phase of all pods to Running.
func (f *fixture) placeOnNode(name, node string) {
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

// [appwrapper-46] A workload with a pod on a node whose GPUs are NoExecute is reset without counting a retry.
func TestNoExecuteNodeResetsWorkload(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("retryPausePeriodDuration", "5s")))
	nodes := unhealthyNodes{}
	f.nodes = nodes
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.placeOnNode("a", "n1")
	f.reconcileUntilIdle()
	f.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
	nodes["n1"] = "nvidia.com/gpu"
	if _, err := f.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseResetting || aw.Status.LastFailure.Reason != awv1beta2.ReasonAutopilotNoExecute {
		t.Fatalf("got phase %s, failure %+v, want Resetting with reason AutopilotNoExecute", aw.Status.Phase, aw.Status.LastFailure)
	}
	f.reconcileUntilIdle()
	f.placeOnNode("a", "n2")
	aw := f.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseRunning || aw.Status.Retries != 0 || creationCount(f, "a") != 2 {
		t.Errorf("got phase %s, %d retries, %d creations, want Running, 0 and 2", aw.Status.Phase, aw.Status.Retries, creationCount(f, "a"))
	}
	f.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
	f.expectCondition(awv1beta2.ConditionUnhealthy, "False/Resuming")
}

// [D1] [appwrapper-52] The time to live of the objects starts when the workload completes, not when it starts.
func TestTTLStartsAtCompletion(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("successTTLDuration", "10m")))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.setPodPhase(corev1.PodRunning)
	f.reconcileUntilIdle()
	f.clock.Step(time.Hour)
	f.setPodPhase(corev1.PodSucceeded)
	f.reconcileToPhase(awv1beta2.PhaseSucceeded)
	f.clock.Step(9 * time.Minute)
	f.reconcileToPhase(awv1beta2.PhaseSucceeded)
	if slices.Contains(f.writes, "delete Pod a") {
		t.Fatalf("got writes %q, want no delete before the time to live has expired", f.writes)
	}
	f.expectCondition(resourcesDeployed, "True/Succeeded")
	f.clock.Step(time.Minute)
	f.reconcileUntilIdle()
	f.expectCondition(resourcesDeployed, "False/Succeeded")
	f.expectCondition(quotaReserved, "False/Succeeded")
}

// [D2] [appwrapper-53] Deletion after a failure is delayed once, even after an earlier reset, and then completes.
func TestDelayAfterFailureAppliesOnce(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("deletionOnFailureGracePeriodDuration", "10m",
		"failureGracePeriodDuration", "0s", "retryLimit", "1", "retryPausePeriodDuration", "0s")))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.setPodPhase(corev1.PodFailed)
	f.reconcileUntilIdle()
	f.clock.Step(20 * time.Second)
	f.setPodPhase(corev1.PodFailed)
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseFailed {
		t.Fatalf("got phase %s, want Failed", aw.Status.Phase)
	}
	f.expectCondition(awv1beta2.ConditionDeletingResources, "False/DeletionPaused")
	f.expectCondition(quotaReserved, "True/Resuming")
	before := countRequests(f.writes, "delete Pod a")
	f.clock.Step(9 * time.Minute)
	f.reconcileUntilIdle()
	if countRequests(f.writes, "delete Pod a") != before {
		t.Fatal("the pod was deleted before the delay ended")
	}
	f.clock.Step(time.Minute)
	f.addFinalizer("a")
	f.reconcileUntilIdle()
	f.expectCondition(awv1beta2.ConditionDeletingResources, "True/DeletionInitiated")
	f.clock.Step(11 * time.Minute) // longer than the delay, and than the grace period of forced deletion
	for range 3 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	f.expectCondition(awv1beta2.ConditionDeletingResources, "True/DeletionInitiated")
	if n := countRequests(f.writes, "delete Pod a") - before; n < 2 {
		t.Errorf("got %d delete requests, want a second one with force; writes %q", n, f.writes)
	}
	pod := &corev1.Pod{}
	if err := f.server.Get(t.Context(), requestFor("a").NamespacedName, pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = nil
	if err := f.server.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(rules.DeletionPollInterval)
	f.reconcileUntilIdle()
	f.expectCondition(resourcesDeployed, "False/Failed")
	f.expectCondition(quotaReserved, "False/Failed")
}

// Suspension while a creation is retried deletes the objects that were created.
func TestSuspensionWhileCreationIsRetried(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a"), podJSON("b")}))
	f.beforeRequest = func(request string) error {
		if request == "create Pod b" {
			return apierrors.NewTooManyRequests("too many requests", 1)
		}
		return nil
	}
	f.reconcileToPhase(awv1beta2.PhaseResuming)
	f.expectCondition(resourcesDeployed, "True/Resuming")
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw := f.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseSuspended || countRequests(f.writes, "delete Pod a") != 1 || countRequests(f.writes, "delete Pod b") != 0 {
		t.Errorf("got phase %s, writes %q, want Suspended after only pod a was deleted", aw.Status.Phase, f.writes)
	}
	f.expectCondition(quotaReserved, "False/Suspended")
}

// The workload fails if an object of another client has the name of a component. The object is not deleted.
func TestCreationFailsForExistingObject(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}), existingPod())
	aw := f.reconcileUntilIdle()
	if aw.Status.Phase != awv1beta2.PhaseFailed || !strings.Contains(aw.Status.LastFailure.Message, "delete it or recreate it under another name") {
		t.Errorf("got phase %s, failure %+v, want Failed because the object exists", aw.Status.Phase, aw.Status.LastFailure)
	}
	if countRequests(f.writes, "delete Pod a") != 0 {
		t.Errorf("got writes %q, want no delete of the pod", f.writes)
	}
}

// The workload fails if two components with pods are the same object. Objects without pods may be repeated.
func TestSameComponentTwiceFailsIfItHasPods(t *testing.T) {
	for phase, template := range map[awv1beta2.AppWrapperPhase]string{awv1beta2.PhaseFailed: podJSON("a"), awv1beta2.PhaseRunning: namedConfigMapJSON} {
		f := newFixture(t, newAppWrapper([]string{template, template}))
		aw := f.reconcileToPhase(phase)
		if phase == awv1beta2.PhaseFailed && !strings.Contains(aw.Status.LastFailure.Message, "Pod team/a is the object of spec.components[0] and") {
			t.Errorf("got failure %+v, want it to name both components", aw.Status.LastFailure)
		}
	}
}

// [appwrapper-51] The phase is Terminating until all pods are deleted. Then the finalizer is removed.
func TestDeletionWaitsForPods(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{configMapJSON}), componentPod("pod"))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if err := f.server.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseTerminating {
		t.Fatalf("got phase %s, want Terminating", aw.Status.Phase)
	}
	f.expectCondition(quotaReserved, "True/Resuming")
	f.expectCondition(conditions.Ready, "False/Terminating")
	if err := f.server.Delete(t.Context(), componentPod("pod")); err != nil {
		t.Fatal(err)
	}
	crashed := false
	f.reconcileWithCrash(&crashed)
	if err := f.server.Get(t.Context(), awKey, &awv1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want the AppWrapper deleted", err)
	}
}

// A component that cannot be created fails the workload, and no later component is created.
func TestRejectedComponentStopsCreation(t *testing.T) {
	for name, tc := range map[string]struct {
		templates     []string
		beforeRequest func(string) error
		wantMessage   string
	}{
		"another namespace": {[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"other"},"spec":{"containers":[{"name":"c","image":"i"}]}}`}, nil, `metadata.namespace is "other"`},
		"unknown kind":      {[]string{`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a"}}`}, nil, "no matches for kind"},
		"rejected as invalid": {[]string{podJSON("a"), podJSON("b")}, func(request string) error {
			if request == "create Pod a" {
				return apierrors.NewInvalid(podKind.GroupKind(), "a", nil)
			}
			return nil
		}, "is invalid"},
		"another controller": {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]}}`}, nil, "the AppWrapper cannot be the controller of ConfigMap a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newAppWrapper(tc.templates))
			if tc.beforeRequest != nil {
				f.beforeRequest = tc.beforeRequest
			}
			aw := f.reconcileUntilIdle()
			if aw.Status.Phase != awv1beta2.PhaseFailed || aw.Status.Retries != 0 || !strings.Contains(aw.Status.LastFailure.Message, tc.wantMessage) {
				t.Errorf("got phase %s, failure %+v, want Failed with %q", aw.Status.Phase, aw.Status.LastFailure, tc.wantMessage)
			}
			if len(f.createdUIDs) != 0 {
				t.Errorf("got created objects %v, want none", f.createdUIDs)
			}
		})
	}
}

// An AppWrapper whose pods cannot be counted, because no webhook checked it, fails with the cause and can be deleted.
func TestAppWrapperWithUnknownPodSetsFailsAndIsDeleted(t *testing.T) {
	for name, wantPhase := range map[string]awv1beta2.AppWrapperPhase{"before it failed": awv1beta2.PhaseEmpty, "after it failed": awv1beta2.PhaseFailed} {
		t.Run(name, func(t *testing.T) {
			aw := newAppWrapper([]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`})
			aw.Finalizers = []string{awv1beta2.Finalizer}
			f := newFixture(t, aw)
			if wantPhase == awv1beta2.PhaseFailed {
				failed := f.reconcileToPhase(wantPhase)
				if failed.Status.LastFailure.Reason != awv1beta2.ReasonCreateFailed || !strings.Contains(failed.Status.LastFailure.Message, "spec.components[0]") {
					t.Errorf("got failure %+v, want CreateFailed with the component", failed.Status.LastFailure)
				}
				writes := len(f.writes)
				if f.reconcileToPhase(wantPhase); len(f.writes) != writes {
					t.Errorf("got writes %q after the failure, want none", f.writes[writes:])
				}
			}
			if err := f.server.Delete(t.Context(), f.get()); err != nil {
				t.Fatal(err)
			}
			crashed := false
			f.reconcileWithCrash(&crashed)
			if err := f.server.Get(t.Context(), awKey, &awv1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
				t.Errorf("got error %v, want the AppWrapper deleted", err)
			}
			if len(f.memory.states) != 0 {
				t.Errorf("got %d states in memory, want none after the deletion", len(f.memory.states))
			}
		})
	}
}

// A failed status update sends no Event and is retried.
func TestFailedStatusUpdateIsRetried(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.beforeRequest = func(request string) error {
		if strings.HasPrefix(request, "patch status") {
			return errors.New("no route to host")
		}
		return nil
	}
	if _, err := f.reconcileOnce(); err == nil || len(f.events.Events) != 0 {
		t.Errorf("got error %v, %d Events, want an error without Events", err, len(f.events.Events))
	}
	f.beforeRequest = func(string) error { return nil }
	f.reconcileToPhase(awv1beta2.PhaseRunning)
}

// PodsReady contains the reason why pods cannot be created, and lastFailure contains it after the workload has failed.
func TestRejectedPodsAreReported(t *testing.T) {
	warningEvent := func(objectName, reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: awKey.Namespace, Name: objectName + reason}, Type: corev1.EventTypeWarning, Reason: reason,
			Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Hour)), InvolvedObject: corev1.ObjectReference{Name: objectName}}
	}
	f := newFixture(t, newAppWrapper([]string{jobJSON("job", 1)}),
		warningEvent("job", "FailedCreate", `Error creating: pods "job-x7" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`),
		warningEvent("job", "Unhealthy", "another reason"), warningEvent("other", "FailedCreate", "another object"))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if err := f.reconcileUntilWait(eventsInterval); err != nil {
		t.Fatal(err)
	}
	const cause = "0 pods pending; 0 pods running; 0 pods succeeded; pods cannot be created: exceeded quota: small, requested: pods=1, limited: pods=3"
	if c := meta.FindStatusCondition(f.get().Status.Conditions, awv1beta2.ConditionPodsReady); c == nil || c.Message != cause {
		t.Errorf("got PodsReady %+v, want message %q", c, cause)
	}
	for f.get().Status.Phase != awv1beta2.PhaseFailed {
		f.clock.Step(time.Minute)
		if err := f.reconcileUntilWait(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if failure := f.get().Status.LastFailure; failure == nil || !strings.Contains(failure.Message, "exceeded quota: small") {
		t.Errorf("got failure %+v, want it to name the quota", failure)
	}
}
