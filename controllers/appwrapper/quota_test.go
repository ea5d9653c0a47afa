package appwrapper

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// rayPod returns a pod as KubeRay creates it: with a label for the RayCluster, but none for the RayJob.
func rayPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name,
		Labels:          map[string]string{awv1beta2.LabelAppWrapper: "train", "ray.io/cluster": "ray-x7k2p"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "ray-x7k2p", UID: "rc", Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// completeRayJob sets the status of a RayJob that succeeded.
func (f *fixture) completeRayJob() {
	f.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(rayJobKind)
	if err := f.server.Get(f.Context(), requestFor("ray").NamespacedName, job); err != nil {
		f.Fatal(err)
	}
	job.Object["status"] = map[string]any{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "rayClusterName": "ray-x7k2p"}
	if err := f.server.Update(f.Context(), job); err != nil {
		f.Fatal(err)
	}
}

// The quota of a RayJob that retains its cluster stays reserved until the pods have finished.
func TestQuotaIsReservedWhilePodsRun(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{rayJobJSON}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	for _, name := range []string{"ray-head", "ray-worker"} {
		if err := f.server.Create(t.Context(), rayPod(name)); err != nil {
			t.Fatal(err)
		}
	}
	f.setPodPhase(corev1.PodRunning)
	f.completeRayJob()
	f.reconcileUntilIdle()
	f.clock.Step(6 * 24 * time.Hour)
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseRunning {
		t.Fatalf("got phase %s, want Running", aw.Status.Phase)
	}
	f.expectCondition(quotaReserved, "True/PodsRunning")
	f.setPodPhase(corev1.PodSucceeded, "ray-worker")
	if err := f.server.Delete(t.Context(), rayPod("ray-head")); err != nil {
		t.Fatal(err)
	}
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSucceeded || aw.Status.Retries != 0 {
		t.Errorf("got phase %s after %d retries, want Succeeded after 0", aw.Status.Phase, aw.Status.Retries)
	}
	f.expectCondition(quotaReserved, "False/Succeeded")
	f.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
}

// Failures of idle pods of a finished RayJob do not count, even if its success was stored before a restart.
func TestFinishedRayJobIsNotResetByIdlePods(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{rayJobJSON, podJSON("other")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if err := f.server.Create(t.Context(), rayPod("ray-worker")); err != nil {
		t.Fatal(err)
	}
	f.setPodPhase(corev1.PodRunning)
	f.completeRayJob()
	f.reconcileUntilIdle()
	f.setPodPhase(corev1.PodFailed, "ray-worker")
	f.reconcileUntilIdle()
	f.clock.Step(2 * time.Minute)
	f.restart()
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseRunning || aw.Status.Retries != 0 || creationCount(f, "ray") != 1 {
		t.Errorf("got phase %s, %d retries, %d creations, want Running, 0 and 1; last failure %+v", aw.Status.Phase, aw.Status.Retries, creationCount(f, "ray"), aw.Status.LastFailure)
	}
	f.setPodPhase(corev1.PodSucceeded, "other")
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSucceeded {
		t.Errorf("got phase %s, want Succeeded", aw.Status.Phase)
	}
}

// Suspension by Kueue has precedence over the paused annotation: a paused AppWrapper must not reserve quota.
func TestSuspensionOverridesPause(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.setPodPhase(corev1.PodRunning)
	f.reconcileUntilIdle()
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Annotations = map[string]string{names.PausedAnnotation: "true"} })
	f.reconcileUntilIdle()
	f.expectCondition("Paused", "True/Annotation")
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSuspended {
		t.Errorf("got phase %s, want Suspended", aw.Status.Phase)
	}
	f.expectCondition(quotaReserved, "False/Suspended")
}

// [appwrapper-8] While pods are terminating, the phase is Suspending, with QuotaReserved and ResourcesDeployed True.
func TestPhaseIsSuspendingWhilePodsTerminate(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.addFinalizer("a")
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 6 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || !meta.IsStatusConditionTrue(aw.Status.Conditions, quotaReserved) ||
		!meta.IsStatusConditionTrue(aw.Status.Conditions, resourcesDeployed) {
		t.Errorf("got phase %s, want Suspending with both conditions True; conditions %+v", aw.Status.Phase, aw.Status.Conditions)
	}
}

// failStatusUpdateAfterCreation lets the first status update after the creation of an object fail with a conflict.
func (f *fixture) failStatusUpdateAfterCreation(name string) {
	failNext := true
	f.beforeRequest = func(request string) error {
		if failNext && strings.HasPrefix(request, "patch status") && creationCount(f, name) == 1 {
			failNext = false
			return apierrors.NewConflict(schema.GroupResource{Resource: "appwrappers"}, "train", errors.New("changed concurrently"))
		}
		return nil
	}
}

func generatedJobJSON(prefix string) string {
	return strings.Replace(jobJSON("x", 1), `"name":"x"`, `"generateName":"`+prefix+`"`, 1)
}

// [D10] A component with generateName does not adopt objects of other components of the kind.
func TestGeneratedNameOfAnotherComponentIsNotAdopted(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{generatedJobJSON("z-"), jobJSON("b", 1), generatedJobJSON("")}))
	if aw := f.reconcileToPhase(awv1beta2.PhaseFailed); !strings.Contains(aw.Status.LastFailure.Message, "name") {
		t.Fatalf("template without a name: got failure %+v, want one about the name", aw.Status.LastFailure)
	}
	f = newFixture(t, newAppWrapper([]string{generatedJobJSON("z-"), jobJSON("b", 1), generatedJobJSON("z-")}))
	f.failStatusUpdateAfterCreation("b")
	want := []string{generateName("z-", "aw-uid", 0), "b", generateName("z-", "aw-uid", 2)}
	aw := f.reconcileUntilIdle()
	for i, name := range want {
		if got := aw.Status.ComponentStatus[i].Name; got != name || creationCount(f, name) != 1 {
			t.Errorf("component %d: got name %q, want %q; created %d times, want once", i, got, name, creationCount(f, name))
		}
	}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw = f.reconcileUntilIdle()
	jobs := &batchv1.JobList{}
	if err := f.server.List(t.Context(), jobs); err != nil || len(jobs.Items) > 0 || aw.Status.Phase != awv1beta2.PhaseSuspended {
		t.Errorf("got phase %s, %d Jobs, error %v, want Suspended without Jobs", aw.Status.Phase, len(jobs.Items), err)
	}
}

// findExisting returns an object of the CodeFlare operator only if its name has the prefix and no other component has the name.
func TestLegacyObjectIsMatchedByName(t *testing.T) {
	ownerReferences := []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}
	legacyConfigMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), OwnerReferences: ownerReferences,
			Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	}
	for name, tc := range map[string]struct {
		existing, want string
	}{
		"name with another prefix":  {"other-x7k2p", ""},
		"name of another component": {"settings-fixed", ""},
		"generated name":            {"settings-x7k2p", "settings-x7k2p"},
	} {
		aw := newAppWrapper([]string{configMapJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-fixed"}}`})
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{{Kind: "ConfigMap", APIVersion: "v1"}, {Kind: "ConfigMap", APIVersion: "v1", Name: "settings-fixed"}}
		f := newFixture(t, aw, legacyConfigMap(tc.existing))
		got, err := f.findExisting(t.Context(), aw, 0, objectOfComponent(t, aw, 0), "settings-")
		if err != nil || got != tc.want {
			t.Errorf("%s: got %q, error %v, want %q", name, got, err, tc.want)
		}
	}
}

// objectOfComponent returns the object that buildObject returns for a component.
func objectOfComponent(t *testing.T, aw *awv1beta2.AppWrapper, index int) *unstructured.Unstructured {
	t.Helper()
	object, _, err := buildObject(aw, index, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// A workload fails if the number of its components changes, and its objects are deleted.
func TestChangedComponentsFail(t *testing.T) {
	for name, change := range map[string]func(*awv1beta2.AppWrapper){
		"fewer components": func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = aw.Spec.Components[:1] },
		"no components":    func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = nil },
		"more components":  func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = append(aw.Spec.Components, aw.Spec.Components...) },
	} {
		for _, phase := range []awv1beta2.AppWrapperPhase{awv1beta2.PhaseSuspended, awv1beta2.PhaseResuming, awv1beta2.PhaseRunning, awv1beta2.PhaseResetting} {
			t.Run(name+" while "+string(phase), func(t *testing.T) {
				f := newFixture(t, newAppWrapper([]string{podJSON("a"), podJSON("b")}, withAnnotations("retryPausePeriodDuration", "1h"),
					func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = phase == awv1beta2.PhaseSuspended }))
				if phase == awv1beta2.PhaseResuming {
					f.beforeRequest = func(request string) error {
						if request == "create Pod b" {
							return apierrors.NewTooManyRequests("too many requests", 1)
						}
						return nil
					}
				}
				for range 20 {
					if f.get().Status.Phase == phase {
						break
					}
					if _, err := f.reconcileOnce(); err != nil {
						t.Fatal(err)
					}
					f.clock.Step(time.Second)
					if phase == awv1beta2.PhaseResetting && f.get().Status.Phase == awv1beta2.PhaseRunning {
						f.setPodPhase(corev1.PodFailed)
						f.clock.Step(time.Minute)
					}
				}
				if got := f.get().Status.Phase; got != phase {
					t.Fatalf("got phase %s, want %s", got, phase)
				}
				f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) {
					aw.Spec.Suspend = false
					change(aw)
				})
				f.clock.Step(2 * time.Hour)
				aw := f.reconcileUntilIdle()
				if aw.Status.Phase != awv1beta2.PhaseFailed || aw.Status.LastFailure.Reason != awv1beta2.ReasonComponentsChanged {
					t.Errorf("got phase %s, failure %+v, want Failed with reason ComponentsChanged", aw.Status.Phase, aw.Status.LastFailure)
				}
				remaining := &corev1.PodList{}
				if err := f.server.List(t.Context(), remaining); err != nil || len(remaining.Items) > 0 {
					t.Errorf("got %d pods, error %v, want none", len(remaining.Items), err)
				}
			})
		}
	}
}

// No component is created for an AppWrapper that was stored without the webhook, unless the permission check is disabled.
func TestUnreviewedAppWrapperFails(t *testing.T) {
	stored := newAppWrapper([]string{podJSON("a")}, func(aw *awv1beta2.AppWrapper) { aw.Labels = nil })
	f := newFixture(t, stored.DeepCopy())
	if aw := f.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseFailed || creationCount(f, "a") != 0 || aw.Status.LastFailure.Reason != awv1beta2.ReasonNotReviewed {
		t.Errorf("got phase %s, %d creations, want Failed and none; last failure %+v", aw.Status.Phase, creationCount(f, "a"), aw.Status.LastFailure)
	}
	f = newFixture(t, stored.DeepCopy())
	f.settings.UserRBACAdmissionCheck = false
	f.reconcileToPhase(awv1beta2.PhaseRunning)
}

// Objects of a kind that is temporarily not served, or served in another version, count as existing.
func TestObjectsOfUnservedKindCountAsExisting(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: jobKind.GroupKind(), SearchedVersions: []string{"v1"}}
	noResource := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", "404 page not found", 0, true)
	for name, readErr := range map[string]error{"kind missing in discovery": noMatch, "resource not found by the API server": noResource} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newAppWrapper([]string{jobJSON("j", 1)}, withAnnotations("forcefulDeletionGracePeriodDuration", "10m")), componentPod("j-0"))
			f.reconcileToPhase(awv1beta2.PhaseRunning)
			f.clock.Step(time.Minute)
			f.uncached["j"] = true
			f.beforeRequest = func(request string) error {
				if request == "get Job j" || request == "delete Job j" {
					return readErr
				}
				return nil
			}
			if aw := f.reconcileToPhase(awv1beta2.PhaseRunning); !meta.IsStatusConditionTrue(aw.Status.Conditions, quotaReserved) {
				t.Errorf("got conditions %+v, want QuotaReserved True", aw.Status.Conditions)
			}
			f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
			for range 5 {
				if _, err := f.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				f.clock.Step(rules.DeletionPollInterval)
			}
			aw := f.get()
			c := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionDeletingResources)
			if aw.Status.Phase != awv1beta2.PhaseSuspending || stageOf(&aw.Status.ComponentStatus[0]) != rules.Deployed || c == nil || !strings.Contains(c.Message, "not served") {
				t.Errorf("got phase %s, condition %+v, want Suspending with a message that the kind is not served", aw.Status.Phase, c)
			}
			if countRequests(f.writes, "delete Pod j-0") != 0 {
				t.Error("a pod was deleted, although its Job could recreate it")
			}
			// After the forced deletion period, the AppWrapper waits only for pods.
			f.clock.Step(10 * time.Minute)
			for range 8 {
				if _, err := f.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				f.clock.Step(rules.DeletionPollInterval)
			}
			if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || countRequests(f.writes, "delete Pod j-0") != 0 {
				t.Errorf("got phase %s, writes %q, want Suspending without a delete of the pod", aw.Status.Phase, f.writes)
			}
			if err := f.server.Delete(t.Context(), componentPod("j-0")); err != nil {
				t.Fatal(err)
			}
			f.clock.Step(rules.DeletionPollInterval)
			if aw := f.reconcileToPhase(awv1beta2.PhaseSuspended); stageOf(&aw.Status.ComponentStatus[0]) != rules.NotCreated {
				t.Errorf("got component %+v, want it not created", aw.Status.ComponentStatus[0])
			}
		})
	}
}

// After the deletion of the API, deletion of a component waits only for pods.
func TestComponentOfDeletedAPIIsDeleted(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{jobJSON("j", 1)}, withAnnotations("forcefulDeletionGracePeriodDuration", "10m")))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	f.apiDeleted, f.uncached["j"] = true, true
	f.beforeRequest = func(request string) error {
		if request == "get Job j" {
			return &meta.NoKindMatchError{GroupKind: jobKind.GroupKind(), SearchedVersions: []string{"v1"}}
		}
		return nil
	}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if aw := f.reconcileToPhase(awv1beta2.PhaseSuspended); stageOf(&aw.Status.ComponentStatus[0]) != rules.NotCreated {
		t.Errorf("got component %+v, want it not created", aw.Status.ComponentStatus[0])
	}
	if _, watched := f.kinds.watched[jobKind]; watched {
		t.Error("want the watch of the kind stopped")
	}
}

// identify returns the kind and name of the created object: field names are case-sensitive.
func TestIdentifyMatchesCreatedObject(t *testing.T) {
	aw := newAppWrapper([]string{`{"apiVersion":"batch/v1","kind":"Job","Kind":"ConfigMap","metadata":{"name":"j","Name":"zzz"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`})
	if id := identify(aw, 0); id != (componentID{apiVersion: "batch/v1", kind: "Job", name: "j"}) {
		t.Errorf("got %+v, want %+v", id, (componentID{apiVersion: "batch/v1", kind: "Job", name: "j"}))
	}
}

// Creation is not retried after a denial by a webhook or an invalid request. It is after an exceeded quota.
func TestRejectedCreationIsNotRetried(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	denial := apierrors.NewForbidden(pods, "a", errors.New("no"))
	denial.ErrStatus.Message = `admission webhook "v.example.com" denied the request: the name is too long`
	for name, tc := range map[string]struct {
		err          error
		wantTerminal bool
	}{
		"denied by a webhook": {denial, true},
		"bad request":         {apierrors.NewBadRequest("no such field"), true},
		"forbidden by quota":  {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: compute")), false},
		"webhook unavailable": {apierrors.NewInternalError(errors.New(`failed calling webhook "v.example.com"`)), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("retryLimit", "0")))
			f.beforeRequest = func(request string) error {
				if request == "create Pod a" {
					return tc.err
				}
				return nil
			}
			aw := f.reconcileToPhase(map[bool]awv1beta2.AppWrapperPhase{true: awv1beta2.PhaseFailed, false: awv1beta2.PhaseResuming}[tc.wantTerminal])
			if attempts := countRequests(f.writes, "create Pod a"); (attempts == 1) != tc.wantTerminal {
				t.Errorf("got %d attempts, want a single one: %t; last failure %+v", attempts, tc.wantTerminal, aw.Status.LastFailure)
			}
		})
	}
}

// The memory stores no state for events after the deletion of an AppWrapper.
func TestMemoryIgnoresEventsOfDeletedAppWrapper(t *testing.T) {
	f := newFixture(t, newAppWrapper(nil))
	f.memory.setObserved("aw", 0, "job")
	f.memory.setSucceeded("aw", "job")
	if _, succeeded := f.memory.component("aw", 0); !succeeded {
		t.Error("the memory lost a success")
	}
	f.memory.forget("aw")
	f.memory.setSucceeded("aw", "job")
	if len(f.memory.states) > 0 {
		t.Errorf("got states %+v, want none", f.memory.states)
	}
}

// A restored AppWrapper in phase Terminating without a deletionTimestamp starts again after its objects are deleted.
func TestRestoredTerminatingPhaseRestarts(t *testing.T) {
	aw := newAppWrapper([]string{podJSON("a")}, withLegacyStatus(awv1beta2.PhaseTerminating, awv1beta2.ReasonComponentCreated,
		rules.NewCondition(quotaReserved, metav1.ConditionTrue, "Resuming", ""), rules.NewCondition(resourcesDeployed, metav1.ConditionTrue, "Resuming", "")))
	f := newFixture(t, aw, legacyPod(corev1.PodRunning))
	if got := f.reconcileUntilIdle(); got.Status.Phase != awv1beta2.PhaseRunning || creationCount(f, "a") != 1 || !slices.Contains(f.writes, "delete Pod a") {
		t.Errorf("got phase %s, writes %q, want Running after the pod was deleted and created", got.Status.Phase, f.writes)
	}
}

// A short TTL of a Job is raised: the Job must exist until the operator reads its success, even after a restart.
func TestShortTTLIsRaised(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{strings.Replace(jobJSON("j", 1), `"parallelism"`, `"ttlSecondsAfterFinished":1,"parallelism"`, 1)}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	job := &batchv1.Job{}
	if err := f.server.Get(t.Context(), requestFor("j").NamespacedName, job); err != nil || ptr.Deref(job.Spec.TTLSecondsAfterFinished, 0) != 3600 {
		t.Errorf("got ttlSecondsAfterFinished %d, error %v, want 3600", ptr.Deref(job.Spec.TTLSecondsAfterFinished, 0), err)
	}
}
