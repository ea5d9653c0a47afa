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

// addFinalizer adds a finalizer to an object.
func (f *fixture) addFinalizer(name string) {
	f.Helper()
	pod := &corev1.Pod{}
	if err := f.server.Get(f.Context(), types.NamespacedName{Namespace: "team", Name: name}, pod); err != nil {
		f.Fatal(err)
	}
	pod.Finalizers = []string{finalizer}
	if err := f.server.Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
}

// grandchild returns a pod of a component.
func grandchild(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon),
		Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// [D37] Forced deletion deletes pods only after their owners.
func TestForcedDeletionEndsOwnersBeforePods(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedJob("j", 1)}, annotated("forcefulDeletionGracePeriodDuration", "10s")), grandchild("j-0"))
	w.must(awv1beta2.PhaseRunning)
	refused := true
	w.before = func(request string) error {
		if refused && request == "delete Job j" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("no"))
		}
		return nil
	}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if err := w.rest(time.Second); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	for range 4 {
		w.clock.Step(rules.UnwatchedInterval)
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	aw := w.get()
	if aw.Status.Phase != awv1beta2.PhaseSuspending || count(w.writes, "delete Pod j-0") != 0 {
		t.Fatalf("phase %s, writes %q", aw.Status.Phase, w.writes)
	}
	if c := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionDeletingResources); !strings.Contains(c.Message, "deleting Job j") {
		t.Errorf("message %q", c.Message)
	}
	refused = false
	for range 4 {
		w.clock.Step(rules.UnwatchedInterval)
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.rest(time.Second); err != nil {
		t.Fatal(err)
	}
	job, pod := slices.Index(w.writes, "delete Job j"), slices.Index(w.writes, "delete Pod j-0")
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseSuspended || pod < job || count(w.writes, "delete Pod j-0") != 1 {
		t.Errorf("phase %s, writes %q", aw.Status.Phase, w.writes)
	}
}

// A forced deletion is repeated until the grace period is 0, and not while finalizers remain.
func TestNeedsDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting        bool
		grace           *int64
		ordered, forced bool
	}{
		"deleted object exists": {ordered: true, forced: true},
		"ending":                {deleting: true, grace: new(int64(30)), forced: true},
		"ending by force":       {deleting: true, grace: new(int64(0))},
		"without a period":      {deleting: true, forced: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionGracePeriodSeconds: tc.grace}}
			if tc.deleting {
				pod.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			if ordered, forced := needsDelete(pod, false), needsDelete(pod, true); ordered != tc.ordered || forced != tc.forced {
				t.Errorf("ordered %t, forced %t, want %t and %t", ordered, forced, tc.ordered, tc.forced)
			}
		})
	}
}

// A deletion of a terminating object is not repeated by further reconciles.
func TestDeletionIsSentOnce(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.addFinalizer("a")
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 10 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(w.writes, "delete Pod a"); n != 1 {
		t.Errorf("%d deletions: %q", n, w.writes)
	}
	if aw := w.get(); !meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionQuotaReserved) {
		t.Error("QuotaReserved is not True, although a pod exists")
	}
}

// Quota is held until the API server has no pod.
func TestUncachedPodsHoldQuota(t *testing.T) {
	w := newFixture(t, wrapper([]string{mapTemplate}))
	w.must(awv1beta2.PhaseRunning)
	late := grandchild("late")
	if err := w.server.Create(w.Context(), late); err != nil {
		t.Fatal(err)
	}
	w.kinds.cache = &blindToPods{fakeCache{WithWatch: w.server, fixture: w}}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 6 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || !meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionQuotaReserved) {
		t.Errorf("phase %s with a pod left", aw.Status.Phase)
	}
	if err := w.server.Delete(w.Context(), late); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(rules.UnwatchedInterval)
	w.must(awv1beta2.PhaseSuspended)
}

// Objects of another controller are not deleted, regardless of their name.
func TestDeletesControlledObjectsOnly(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	pod := &corev1.Pod{}
	if err := w.server.Get(w.Context(), types.NamespacedName{Namespace: "team", Name: "a"}, pod); err != nil {
		t.Fatal(err)
	}
	pod.OwnerReferences[0].UID, pod.Labels = "another", nil
	if err := w.server.Update(w.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw := w.must(awv1beta2.PhaseSuspended)
	if count(w.writes, "delete Pod a") != 0 {
		t.Errorf("writes %q", w.writes)
	}
	// [D33] Clients expect the spelling of the CodeFlare operator.
	if c := aw.Status.ComponentStatus[0].Conditions[0]; c.Reason != "CompononetDeleted" {
		t.Errorf("reason %q", c.Reason)
	}
}

// [D33] Stored components with either spelling are recreated.
func TestBothSpellingsOfDeletedAreAccepted(t *testing.T) {
	for _, reason := range []string{awv1beta2.ReasonComponentDeleted, awv1beta2.ReasonComponentDeletedTypo} {
		status := &awv1beta2.AppWrapperComponentStatus{}
		setResourcesDeployed(status, metav1.ConditionFalse, reason, "", noon)
		if got := stageOf(status); got != rules.NotCreated {
			t.Errorf("%s: stage %d, want %d", reason, got, rules.NotCreated)
		}
	}
}

// [D7] Objects that the cache lacks are read from the API server before a terminal decision.
func TestAMissingComponentIsConfirmed(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.hidden["a"] = true
	for range 3 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.reads) != 0 {
		t.Errorf("reads of what was created a moment ago: %q", w.reads)
	}
	w.clock.Step(creationLag)
	w.must(awv1beta2.PhaseRunning)
	if !slices.Contains(w.reads, "get PartialObjectMetadata a") && !slices.Contains(w.reads, "get Pod a") {
		t.Errorf("reads %q", w.reads)
	}
	if err := w.server.Delete(w.Context(), grandchild("a")); err != nil {
		t.Fatal(err)
	}
	w.must(awv1beta2.PhaseFailed)
}

// [D21] A failed read is an error, which is retried.
func TestReadErrorsAreReturned(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.hidden["a"] = true
	w.clock.Step(creationLag)
	w.before = func(request string) error {
		if strings.HasPrefix(request, "get") {
			return apierrors.NewInternalError(errors.New("etcd"))
		}
		return nil
	}
	if _, err := w.reconcileOnce(); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("error %v", err)
	}
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseRunning {
		t.Errorf("phase %s", aw.Status.Phase)
	}
}

// [D4] A component that is deleted right after its success has succeeded, even if no reconcile saw it.
func TestSuccessIsStoredBeforeDeletion(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedJob("j", 1), wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.setPodPhase(corev1.PodRunning)
	done := withStatus("batch/v1", "Job", conditionsOf("Complete", "True"))
	done.SetNamespace("team")
	done.SetName("j")
	done.SetUID(w.born["j"][0])
	done.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}})
	heard := componentHandler(noWorkers{}, w.memory.setSucceeded)
	heard.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: done})
	job := withStatus("batch/v1", "Job", nil)
	job.SetNamespace("team")
	job.SetName("j")
	if err := w.server.Delete(w.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(creationLag)
	aw := w.must(awv1beta2.PhaseRunning)
	if !meta.IsStatusConditionTrue(aw.Status.ComponentStatus[0].Conditions, awv1beta2.ConditionCompleted) {
		t.Errorf("component %+v", aw.Status.ComponentStatus[0])
	}
	w.restart()
	w.must(awv1beta2.PhaseRunning)
	w.setPodPhase(corev1.PodSucceeded)
	w.must(awv1beta2.PhaseSucceeded)
}
