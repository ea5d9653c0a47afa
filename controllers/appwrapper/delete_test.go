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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// addFinalizer adds a finalizer to a pod.
func (f *fixture) addFinalizer(name string) {
	f.Helper()
	pod := &corev1.Pod{}
	if err := f.server.Get(f.Context(), types.NamespacedName{Namespace: "team", Name: name}, pod); err != nil {
		f.Fatal(err)
	}
	pod.Finalizers = []string{testFinalizer}
	if err := f.server.Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
}

// componentPod returns a pod of a component.
func componentPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon),
		Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// [D37] Forced deletion deletes pods only after their owners.
func TestForcedDeletionDeletesOwnersBeforePods(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{jobJSON("j", 1)}, withAnnotations("forcefulDeletionGracePeriodDuration", "10s")), componentPod("j-0"))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	isForbidden := true
	f.beforeRequest = func(request string) error {
		if isForbidden && request == "delete Job j" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("no"))
		}
		return nil
	}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if err := f.reconcileUntilWait(time.Second); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(time.Minute)
	for range 4 {
		f.clock.Step(rules.DeletionPollInterval)
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	aw := f.get()
	if aw.Status.Phase != awv1beta2.PhaseSuspending || countRequests(f.writes, "delete Pod j-0") != 0 {
		t.Fatalf("got phase %s, writes %q, want Suspending without a delete of the pod", aw.Status.Phase, f.writes)
	}
	if c := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionDeletingResources); !strings.Contains(c.Message, "deleting Job j") {
		t.Errorf("got message %q, want it to name the Job", c.Message)
	}
	isForbidden = false
	for range 4 {
		f.clock.Step(rules.DeletionPollInterval)
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.reconcileUntilWait(time.Second); err != nil {
		t.Fatal(err)
	}
	job, pod := slices.Index(f.writes, "delete Job j"), slices.Index(f.writes, "delete Pod j-0")
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseSuspended || pod < job || countRequests(f.writes, "delete Pod j-0") != 1 {
		t.Errorf("got phase %s, writes %q, want Suspended and the Job deleted before the pod", aw.Status.Phase, f.writes)
	}
}

// A forced delete request is repeated until the grace period of the object is 0. After that, only finalizers prevent its removal.
func TestNeedsDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		terminating           bool
		gracePeriod           *int64
		wantDelete, wantForce bool
	}{
		"not terminating":                    {wantDelete: true, wantForce: true},
		"terminating":                        {terminating: true, gracePeriod: new(int64(30)), wantForce: true},
		"terminating with grace period 0":    {terminating: true, gracePeriod: new(int64(0))},
		"terminating without a grace period": {terminating: true, wantForce: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionGracePeriodSeconds: tc.gracePeriod}}
			if tc.terminating {
				pod.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			if got, forced := needsDelete(pod, false), needsDelete(pod, true); got != tc.wantDelete || forced != tc.wantForce {
				t.Errorf("got %t without force and %t with force, want %t and %t", got, forced, tc.wantDelete, tc.wantForce)
			}
		})
	}
}

// Further reconciles do not repeat the delete request for a terminating object.
func TestDeletionIsSentOnce(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.addFinalizer("a")
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 10 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRequests(f.writes, "delete Pod a"); n != 1 {
		t.Errorf("got %d delete requests, want 1; writes %q", n, f.writes)
	}
	if aw := f.get(); !meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionQuotaReserved) {
		t.Error("QuotaReserved is not True, although a pod exists")
	}
}

// Quota is reserved until the API server has no pod, even if the cache holds none.
func TestUncachedPodsHoldQuota(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{configMapJSON}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	uncachedPod := componentPod("late")
	if err := f.server.Create(f.Context(), uncachedPod); err != nil {
		t.Fatal(err)
	}
	f.kinds.cache = &cacheWithoutPods{fakeCache{WithWatch: f.server, fixture: f}}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 6 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || !meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionQuotaReserved) {
		t.Errorf("got phase %s while a pod exists, want Suspending with the quota reserved", aw.Status.Phase)
	}
	if err := f.server.Delete(f.Context(), uncachedPod); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(rules.DeletionPollInterval)
	f.reconcileToPhase(awv1beta2.PhaseSuspended)
}

// Objects of another controller are not deleted, regardless of their name.
func TestDeletesControlledObjectsOnly(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	pod := &corev1.Pod{}
	if err := f.server.Get(f.Context(), types.NamespacedName{Namespace: "team", Name: "a"}, pod); err != nil {
		t.Fatal(err)
	}
	pod.OwnerReferences[0].UID, pod.Labels = "another", nil
	if err := f.server.Update(f.Context(), pod); err != nil {
		t.Fatal(err)
	}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw := f.reconcileToPhase(awv1beta2.PhaseSuspended)
	if countRequests(f.writes, "delete Pod a") != 0 {
		t.Errorf("got writes %q, want no delete of the pod", f.writes)
	}
	// [D33] Clients expect the spelling of the CodeFlare operator.
	if c := aw.Status.ComponentStatus[0].Conditions[0]; c.Reason != "CompononetDeleted" {
		t.Errorf("got reason %q, want CompononetDeleted", c.Reason)
	}
}

// [D33] A component with either spelling of the reason counts as not created.
func TestBothSpellingsOfDeletedAreAccepted(t *testing.T) {
	for _, reason := range []string{awv1beta2.ReasonComponentDeleted, awv1beta2.ReasonComponentDeletedTypo} {
		status := &awv1beta2.AppWrapperComponentStatus{}
		setResourcesDeployed(status, metav1.ConditionFalse, reason, "", noon)
		if got := stageOf(status); got != rules.NotCreated {
			t.Errorf("%s: got stage %d, want %d", reason, got, rules.NotCreated)
		}
	}
}

// [D7] Objects that the cache lacks are read from the API server before a terminal decision.
func TestMissingComponentIsConfirmed(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.uncached["a"] = true
	for range 3 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.reads) != 0 {
		t.Errorf("got reads %q of a recently created object, want none", f.reads)
	}
	f.clock.Step(creationLag)
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if !slices.Contains(f.reads, "get PartialObjectMetadata a") && !slices.Contains(f.reads, "get Pod a") {
		t.Errorf("got reads %q, want a read of the pod", f.reads)
	}
	if err := f.server.Delete(f.Context(), componentPod("a")); err != nil {
		t.Fatal(err)
	}
	f.reconcileToPhase(awv1beta2.PhaseFailed)
}

// [D21] An error of a read is returned, and the phase does not change.
func TestReadErrorsAreReturned(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.uncached["a"] = true
	f.clock.Step(creationLag)
	f.beforeRequest = func(request string) error {
		if strings.HasPrefix(request, "get") {
			return apierrors.NewInternalError(errors.New("etcd"))
		}
		return nil
	}
	if _, err := f.reconcileOnce(); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("got error %v, want the error of the read", err)
	}
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseRunning {
		t.Errorf("got phase %s, want Running", aw.Status.Phase)
	}
}

// [D4] A component that is deleted right after its success counts as succeeded, even if no reconcile read the success.
func TestSuccessOfDeletedComponentIsStored(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{jobJSON("j", 1), podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.setPodPhase(corev1.PodRunning)
	completeJob := withStatus("batch/v1", "Job", conditionsOf("Complete", "True"))
	completeJob.SetNamespace("team")
	completeJob.SetName("j")
	completeJob.SetUID(f.createdUIDs["j"][0])
	completeJob.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}})
	handler := componentHandler(discardQueue{}, f.memory.setSucceeded)
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: completeJob})
	deletedJob := withStatus("batch/v1", "Job", nil)
	deletedJob.SetNamespace("team")
	deletedJob.SetName("j")
	if err := f.server.Delete(f.Context(), deletedJob); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(creationLag)
	aw := f.reconcileToPhase(awv1beta2.PhaseRunning)
	if !meta.IsStatusConditionTrue(aw.Status.ComponentStatus[0].Conditions, awv1beta2.ConditionCompleted) {
		t.Errorf("got component %+v, want it completed", aw.Status.ComponentStatus[0])
	}
	f.restart()
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.setPodPhase(corev1.PodSucceeded)
	f.reconcileToPhase(awv1beta2.PhaseSucceeded)
}
