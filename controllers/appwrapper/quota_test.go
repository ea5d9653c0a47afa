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

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// rayPod returns a pod of KubeRay: it has the label of its cluster, but not of the RayJob.
func rayPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name,
		Labels:          map[string]string{awv1beta2.LabelAppWrapper: "train", "ray.io/cluster": "ray-x7k2p"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "ray-x7k2p", UID: "rc", Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// rayJobDone is the status of a RayJob that succeeded.
func (f *fixture) rayJobDone() {
	f.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(rayKind)
	if err := f.server.Get(f.Context(), requestFor("ray").NamespacedName, job); err != nil {
		f.Fatal(err)
	}
	job.Object["status"] = map[string]any{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "rayClusterName": "ray-x7k2p"}
	if err := f.server.Update(f.Context(), job); err != nil {
		f.Fatal(err)
	}
}

// A RayJob that keeps its cluster running holds its quota until the pods have finished.
func TestQuotaIsKeptWhilePodsRun(t *testing.T) {
	w := newFixture(t, wrapper([]string{rayTemplate}))
	w.must(awv1beta2.PhaseRunning)
	for _, name := range []string{"ray-head", "ray-worker"} {
		if err := w.server.Create(t.Context(), rayPod(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.setPodPhase(corev1.PodRunning)
	w.rayJobDone()
	w.reconcileUntilIdle()
	w.clock.Step(6 * 24 * time.Hour)
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseRunning {
		t.Fatalf("phase %s", aw.Status.Phase)
	}
	w.expectCondition(qr, "True/PodsRunning")
	w.setPodPhase(corev1.PodSucceeded, "ray-worker")
	if err := w.server.Delete(t.Context(), rayPod("ray-head")); err != nil {
		t.Fatal(err)
	}
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSucceeded || aw.Status.Retries != 0 {
		t.Errorf("phase %s after %d retries", aw.Status.Phase, aw.Status.Retries)
	}
	w.expectCondition(qr, "False/Succeeded")
	w.expectCondition(awv1beta2.ConditionPodsReady, "True/SufficientPodsReady")
}

// Failures of idle pods of a finished RayJob do not count, also if its success was stored earlier.
func TestADoneRayJobIsNotResetByItsIdlePods(t *testing.T) {
	w := newFixture(t, wrapper([]string{rayTemplate, wrappedPod("other")}))
	w.must(awv1beta2.PhaseRunning)
	if err := w.server.Create(t.Context(), rayPod("ray-worker")); err != nil {
		t.Fatal(err)
	}
	w.setPodPhase(corev1.PodRunning)
	w.rayJobDone()
	w.reconcileUntilIdle()
	w.setPodPhase(corev1.PodFailed, "ray-worker")
	w.reconcileUntilIdle()
	w.clock.Step(2 * time.Minute)
	w.restart()
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseRunning || aw.Status.Retries != 0 || created(w, "ray") != 1 {
		t.Errorf("phase %s, %d retries, made %d times: %+v", aw.Status.Phase, aw.Status.Retries, created(w, "ray"), aw.Status.LastFailure)
	}
	w.setPodPhase(corev1.PodSucceeded, "other")
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSucceeded {
		t.Errorf("phase %s", aw.Status.Phase)
	}
}

// Suspension by Kueue has precedence over the paused annotation, so that a pause holds no quota.
func TestSuspensionEndsAPause(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.setPodPhase(corev1.PodRunning)
	w.reconcileUntilIdle()
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Annotations = map[string]string{names.PausedAnnotation: "true"} })
	w.reconcileUntilIdle()
	w.expectCondition("Paused", "True/Annotation")
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseSuspended {
		t.Errorf("phase %s", aw.Status.Phase)
	}
	w.expectCondition(qr, "False/Suspended")
}

// [appwrapper-8] While pods are terminating the phase is Suspending, with both conditions True.
func TestSuspendingKeepsObjectsUntilDeleted(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	w.addFinalizer("a")
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	for range 6 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || !meta.IsStatusConditionTrue(aw.Status.Conditions, qr) ||
		!meta.IsStatusConditionTrue(aw.Status.Conditions, rd) {
		t.Errorf("%s: unexpected Status.Conditions: %+v", aw.Status.Phase, aw.Status.Conditions)
	}
}

// conflictAfter makes the status update after a creation fail.
func (f *fixture) conflictAfter(name string) {
	once := true
	f.before = func(request string) error {
		if once && strings.HasPrefix(request, "patch status") && created(f, name) == 1 {
			once = false
			return apierrors.NewConflict(schema.GroupResource{Resource: "appwrappers"}, "train", errors.New("annotated meanwhile"))
		}
		return nil
	}
}

func wrappedGenerated(prefix string) string {
	return strings.Replace(wrappedJob("x", 1), `"name":"x"`, `"generateName":"`+prefix+`"`, 1)
}

// [D10] A component with generateName keeps its own object among others of the kind.
func TestGeneratedNameOfAnotherComponentIsNotAdopted(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedGenerated("z-"), wrappedJob("b", 1), wrappedGenerated("")}))
	if aw := w.must(awv1beta2.PhaseFailed); !strings.Contains(aw.Status.LastFailure.Message, "name") {
		t.Fatalf("a template without any name: %+v", aw.Status.LastFailure)
	}
	w = newFixture(t, wrapper([]string{wrappedGenerated("z-"), wrappedJob("b", 1), wrappedGenerated("z-")}))
	w.conflictAfter("b")
	want := []string{generateName("z-", "aw-uid", 0), "b", generateName("z-", "aw-uid", 2)}
	aw := w.reconcileUntilIdle()
	for i, name := range want {
		if got := aw.Status.ComponentStatus[i].Name; got != name || created(w, name) != 1 {
			t.Errorf("component %d is %q, want %q, made %d times", i, got, name, created(w, name))
		}
	}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	aw = w.reconcileUntilIdle()
	jobs := &batchv1.JobList{}
	if err := w.server.List(t.Context(), jobs); err != nil || len(jobs.Items) > 0 || aw.Status.Phase != awv1beta2.PhaseSuspended {
		t.Errorf("phase %s, %d Jobs are left, %v", aw.Status.Phase, len(jobs.Items), err)
	}
}

// An object of the CodeFlare operator is used only if its name has the prefix and is not announced for another component.
func TestLegacyObjectIsMatchedByName(t *testing.T) {
	managed := []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}
	foreign := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), OwnerReferences: managed,
			Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	}
	for name, tc := range map[string]struct {
		exists, want string
	}{
		"begins otherwise":                         {"other-x7k2p", ""},
		"of another component":                     {"settings-fixed", ""},
		"generated name of an unfinished creation": {"settings-x7k2p", "settings-x7k2p"},
	} {
		aw := wrapper([]string{mapTemplate, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-fixed"}}`})
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{{Kind: "ConfigMap", APIVersion: "v1"}, {Kind: "ConfigMap", APIVersion: "v1", Name: "settings-fixed"}}
		w := newFixture(t, aw, foreign(tc.exists))
		got, err := w.findExisting(t.Context(), aw, 0, instantiated(t, aw, 0), "settings-")
		if err != nil || got != tc.want {
			t.Errorf("%s: findExisting returned %q, error %v", name, got, err)
		}
	}
}

// instantiated returns the object of a component from its template.
func instantiated(t *testing.T, aw *awv1beta2.AppWrapper, index int) *unstructured.Unstructured {
	t.Helper()
	object, _, err := buildObject(aw, index, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// A spec with other components than the status causes no panic: the workload fails, and its objects are deleted.
func TestChangedComponentsFail(t *testing.T) {
	for name, change := range map[string]func(*awv1beta2.AppWrapper){
		"fewer":         func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = aw.Spec.Components[:1] },
		"no components": func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = nil },
		"more":          func(aw *awv1beta2.AppWrapper) { aw.Spec.Components = append(aw.Spec.Components, aw.Spec.Components...) },
	} {
		for _, from := range []awv1beta2.AppWrapperPhase{awv1beta2.PhaseSuspended, awv1beta2.PhaseResuming, awv1beta2.PhaseRunning, awv1beta2.PhaseResetting} {
			t.Run(name+" while "+string(from), func(t *testing.T) {
				w := newFixture(t, wrapper([]string{wrappedPod("a"), wrappedPod("b")}, annotated("retryPausePeriodDuration", "1h"),
					func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = from == awv1beta2.PhaseSuspended }))
				if from == awv1beta2.PhaseResuming {
					w.before = func(request string) error {
						if request == "create Pod b" {
							return apierrors.NewTooManyRequests("slowly", 1)
						}
						return nil
					}
				}
				for range 20 {
					if w.get().Status.Phase == from {
						break
					}
					if _, err := w.reconcileOnce(); err != nil {
						t.Fatal(err)
					}
					w.clock.Step(time.Second)
					if from == awv1beta2.PhaseResetting && w.get().Status.Phase == awv1beta2.PhaseRunning {
						w.setPodPhase(corev1.PodFailed)
						w.clock.Step(time.Minute)
					}
				}
				if got := w.get().Status.Phase; got != from {
					t.Fatalf("phase %s, want %s", got, from)
				}
				w.spec(func(aw *awv1beta2.AppWrapper) {
					aw.Spec.Suspend = false
					change(aw)
				})
				w.clock.Step(2 * time.Hour)
				aw := w.reconcileUntilIdle()
				if aw.Status.Phase != awv1beta2.PhaseFailed || aw.Status.LastFailure.Reason != awv1beta2.ReasonComponentsChanged {
					t.Errorf("phase %s, failure %+v", aw.Status.Phase, aw.Status.LastFailure)
				}
				left := &corev1.PodList{}
				if err := w.server.List(t.Context(), left); err != nil || len(left.Items) > 0 {
					t.Errorf("%d pods are left, %v", len(left.Items), err)
				}
			})
		}
	}
}

// An AppWrapper that was stored without the webhook is not created with the permissions of the operator, unless reviews are disabled.
func TestUnreviewedAppWrapperFails(t *testing.T) {
	stored := wrapper([]string{wrappedPod("a")}, func(aw *awv1beta2.AppWrapper) { aw.Labels = nil })
	w := newFixture(t, stored.DeepCopy())
	if aw := w.reconcileUntilIdle(); aw.Status.Phase != awv1beta2.PhaseFailed || created(w, "a") != 0 || aw.Status.LastFailure.Reason != awv1beta2.ReasonNotReviewed {
		t.Errorf("phase %s, made %d times: %+v", aw.Status.Phase, created(w, "a"), aw.Status.LastFailure)
	}
	w = newFixture(t, stored.DeepCopy())
	w.settings.UserRBACAdmissionCheck = false
	w.must(awv1beta2.PhaseRunning)
}

// Objects of a kind that is temporarily not served, or served in another version, count as existing.
func TestUnservedKindIsNotDeleted(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: jobKind.GroupKind(), SearchedVersions: []string{"v1"}}
	noResource := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", "404 page not found", 0, true)
	for name, answer := range map[string]error{"unknown to discovery": noMatch, "unknown to the API server": noResource} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, wrapper([]string{wrappedJob("j", 1)}, annotated("forcefulDeletionGracePeriodDuration", "10m")), grandchild("j-0"))
			w.must(awv1beta2.PhaseRunning)
			w.clock.Step(time.Minute)
			w.hidden["j"] = true
			w.before = func(request string) error {
				if request == "get Job j" || request == "delete Job j" {
					return answer
				}
				return nil
			}
			if aw := w.must(awv1beta2.PhaseRunning); !meta.IsStatusConditionTrue(aw.Status.Conditions, qr) {
				t.Errorf("conditions %+v", aw.Status.Conditions)
			}
			w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
			for range 5 {
				if _, err := w.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				w.clock.Step(rules.UnwatchedInterval)
			}
			aw := w.get()
			c := meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionDeletingResources)
			if aw.Status.Phase != awv1beta2.PhaseSuspending || stageOf(&aw.Status.ComponentStatus[0]) != rules.Deployed || c == nil || !strings.Contains(c.Message, "not served") {
				t.Errorf("phase %s, condition %+v", aw.Status.Phase, c)
			}
			if count(w.writes, "delete Pod j-0") != 0 {
				t.Error("a pod was deleted, although its Job could recreate it")
			}
			// A permanently unserved kind does not block the AppWrapper forever.
			w.clock.Step(10 * time.Minute)
			for range 8 {
				if _, err := w.reconcileOnce(); err != nil {
					t.Fatal(err)
				}
				w.clock.Step(rules.UnwatchedInterval)
			}
			if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseSuspending || count(w.writes, "delete Pod j-0") != 0 {
				t.Errorf("phase %s, writes %q", aw.Status.Phase, w.writes)
			}
			if err := w.server.Delete(t.Context(), grandchild("j-0")); err != nil {
				t.Fatal(err)
			}
			w.clock.Step(rules.UnwatchedInterval)
			if aw := w.must(awv1beta2.PhaseSuspended); stageOf(&aw.Status.ComponentStatus[0]) != rules.NotCreated {
				t.Errorf("want the component not created, got %+v", aw.Status.ComponentStatus[0])
			}
		})
	}
}

// If the API was deleted, deletion waits only for pods.
func TestComponentOfDeletedAPIIsDeleted(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedJob("j", 1)}, annotated("forcefulDeletionGracePeriodDuration", "10m")))
	w.must(awv1beta2.PhaseRunning)
	w.apiDeleted, w.hidden["j"] = true, true
	w.before = func(request string) error {
		if request == "get Job j" {
			return &meta.NoKindMatchError{GroupKind: jobKind.GroupKind(), SearchedVersions: []string{"v1"}}
		}
		return nil
	}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	if aw := w.must(awv1beta2.PhaseSuspended); stageOf(&aw.Status.ComponentStatus[0]) != rules.NotCreated {
		t.Errorf("want the component not created, got %+v", aw.Status.ComponentStatus[0])
	}
	if _, watched := w.kinds.watched[jobKind]; watched {
		t.Error("the kind is still watched")
	}
}

// The announced identity equals that of the created object: field names are case-sensitive.
func TestIdentifyReadsAsCreationDoes(t *testing.T) {
	aw := wrapper([]string{`{"apiVersion":"batch/v1","kind":"Job","Kind":"ConfigMap","metadata":{"name":"j","Name":"zzz"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`})
	if id := identify(aw, 0); id != (componentID{apiVersion: "batch/v1", kind: "Job", name: "j"}) {
		t.Errorf("identify: %+v, want %+v", id, (componentID{apiVersion: "batch/v1", kind: "Job", name: "j"}))
	}
}

// Creation is not retried after a rejection by a webhook or the API server.
func TestRefusalsAreFinal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	denial := apierrors.NewForbidden(pods, "a", errors.New("no"))
	denial.ErrStatus.Message = `admission webhook "v.example.com" denied the request: the name is too long`
	for name, tc := range map[string]struct {
		err   error
		final bool
	}{
		"denied by a webhook": {denial, true},
		"bad request":         {apierrors.NewBadRequest("no such field"), true},
		"forbidden by quota":  {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: compute")), false},
		"webhook unavailable": {apierrors.NewInternalError(errors.New(`failed calling webhook "v.example.com"`)), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("retryLimit", "0")))
			w.before = func(request string) error {
				if request == "create Pod a" {
					return tc.err
				}
				return nil
			}
			aw := w.must(map[bool]awv1beta2.AppWrapperPhase{true: awv1beta2.PhaseFailed, false: awv1beta2.PhaseResuming}[tc.final])
			if tries := count(w.writes, "create Pod a"); (tries == 1) != tc.final {
				t.Errorf("tried %d times: %+v", tries, aw.Status.LastFailure)
			}
		})
	}
}

// Late events of a deleted AppWrapper store no state.
func TestLateEventsOfDeletedAppWrapper(t *testing.T) {
	w := newFixture(t, wrapper(nil))
	w.memory.setObserved("aw", 0, "job")
	w.memory.setSucceeded("aw", "job")
	if _, succeeded := w.memory.component("aw", 0); !succeeded {
		t.Error("the recorded success was lost")
	}
	w.memory.forget("aw")
	w.memory.setSucceeded("aw", "job")
	if len(w.memory.objects) > 0 {
		t.Errorf("unexpected memory.objects: %+v", w.memory.objects)
	}
}

// A restored AppWrapper in phase Terminating without deletionTimestamp starts again after all objects are deleted.
func TestRestoredTerminatingPhaseRestarts(t *testing.T) {
	aw := wrapper([]string{wrappedPod("a")}, original(awv1beta2.PhaseTerminating, awv1beta2.ReasonComponentCreated,
		rules.NewCondition(qr, metav1.ConditionTrue, "Resuming", ""), rules.NewCondition(rd, metav1.ConditionTrue, "Resuming", "")))
	w := newFixture(t, aw, foreign(corev1.PodRunning))
	if got := w.reconcileUntilIdle(); got.Status.Phase != awv1beta2.PhaseRunning || created(w, "a") != 1 || !slices.Contains(w.writes, "delete Pod a") {
		t.Errorf("phase %s, writes %q", got.Status.Phase, w.writes)
	}
}

// A Job with a short TTL is kept long enough to read its success after downtime of the operator.
func TestAShortTTLIsRaised(t *testing.T) {
	w := newFixture(t, wrapper([]string{strings.Replace(wrappedJob("j", 1), `"parallelism"`, `"ttlSecondsAfterFinished":1,"parallelism"`, 1)}))
	w.must(awv1beta2.PhaseRunning)
	job := &batchv1.Job{}
	if err := w.server.Get(t.Context(), requestFor("j").NamespacedName, job); err != nil || *job.Spec.TTLSecondsAfterFinished != 3600 {
		t.Errorf("unexpected job.Spec.TTLSecondsAfterFinished %+v, error %v", job.Spec.TTLSecondsAfterFinished, err)
	}
}
