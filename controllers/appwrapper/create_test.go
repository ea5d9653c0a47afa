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
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// existingPod returns a pod with the name of a component.
func existingPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "other-pod", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func withController(apiVersion, kind, name, uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
	}
}

func setTerminating(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{testFinalizer}
}

// [D9] [appwrapper-56] Group, kind and UID of the owner determine whether the AppWrapper controls an existing object.
func TestExistingObjects(t *testing.T) {
	group := awv1beta2.GroupVersion.String()
	for name, tc := range map[string]struct {
		pod         *corev1.Pod
		phase       awv1beta2.AppWrapperPhase
		wantMessage string
	}{
		"controlled by the AppWrapper":                         {existingPod(withController(group, "AppWrapper", "train", "aw-uid")), awv1beta2.PhaseRunning, ""},
		"controlled by an earlier AppWrapper of the same name": {existingPod(withController(group, "AppWrapper", "train", "earlier")), awv1beta2.PhaseResuming, "belongs to an earlier AppWrapper of this name: waiting"},
		"controlled by the AppWrapper, terminating":            {existingPod(withController(group, "AppWrapper", "train", "aw-uid"), setTerminating), awv1beta2.PhaseResuming, "is being deleted: waiting"},
		"without a controller, terminating":                    {existingPod(setTerminating), awv1beta2.PhaseResuming, "is being deleted: waiting"},
		"controlled by another kind of the same name":          {existingPod(withController("apps/v1", "ReplicaSet", "train", "aw-uid")), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
		"controlled by an AppWrapper of another group":         {existingPod(withController("example.com/v1", "AppWrapper", "train", "aw-uid")), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
		"without a controller, different from the template":    {existingPod(), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("deletionOnFailureGracePeriodDuration", "1h", "retryLimit", "0")), tc.pod)
			for range 12 {
				result, err := f.reconcileOnce()
				if err != nil || result.RequeueAfter > time.Second {
					break
				}
				f.clock.Step(result.RequeueAfter)
			}
			aw := f.get()
			if aw.Status.Phase != tc.phase {
				t.Fatalf("got phase %s, want %s; status %+v", aw.Status.Phase, tc.phase, aw.Status)
			}
			if got := aw.Status.ComponentStatus[0].Conditions[0].Message; !strings.Contains(got, tc.wantMessage) {
				t.Errorf("got message %q, want it to contain %q", got, tc.wantMessage)
			}
			if n := creationCount(f, "a"); n != 0 {
				t.Errorf("got %d creations, want none", n)
			}
		})
	}
}

// An existing object that cannot be read delays the creation. The message names the cause.
func TestExistingObjectCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		err         error
		wantMessage string
	}{
		"forbidden":  {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no")), "exists, but cannot be read: grant the ServiceAccount of the operator the verb get on it: "},
		"not served": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Pod"}, SearchedVersions: []string{"v1"}}, "exists, but cannot be read, since its kind is not served in this version: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("deletionOnFailureGracePeriodDuration", "1h")), existingPod())
			f.beforeRequest = func(request string) error {
				if request == "get Pod a" {
					return tc.err
				}
				return nil
			}
			aw := f.reconcileToPhase(awv1beta2.PhaseResuming)
			if got := aw.Status.ComponentStatus[0].Conditions[0].Message; !strings.Contains(got, tc.wantMessage) {
				t.Errorf("got message %q, want it to contain %q", got, tc.wantMessage)
			}
		})
	}
}

// [D11] An error is ambiguous if the API server may have created the object.
func TestAmbiguousErrors(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err       error
		ambiguous bool
	}{
		"connection lost":   {errors.New("unexpected EOF"), true},
		"timeout":           {apierrors.NewTimeoutError("no response", 1), true},
		"server timeout":    {apierrors.NewServerTimeout(pods, "create", 1), true},
		"internal":          {apierrors.NewInternalError(errors.New("etcd")), true},
		"forbidden":         {apierrors.NewForbidden(pods, "a", errors.New("no")), false},
		"quota conflict":    {apierrors.NewConflict(pods, "a", errors.New("quota")), false},
		"too many requests": {apierrors.NewTooManyRequests("too many requests", 1), false},
		"terminal":          {terminalError{errors.New("bad path")}, false},
		"not created":       {notCreatedError{errors.New("terminating")}, false},
	} {
		if got := isAmbiguous(tc.err); got != tc.ambiguous {
			t.Errorf("%s: got %t, want %t", name, got, tc.ambiguous)
		}
	}
}

// After an ambiguous error the component is Unknown until its object is found, and suspension deletes the object.
func TestSuspensionDeletesObjectWithLostCreateResponse(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.afterRequest = func(request string) error {
		if request == "create Pod a" {
			return errors.New("unexpected EOF")
		}
		return nil
	}
	for range 6 {
		if _, err := f.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	aw := f.get()
	if c := aw.Status.ComponentStatus[0].Conditions[0]; aw.Status.Phase != awv1beta2.PhaseResuming || c.Status != metav1.ConditionUnknown || c.Reason != awv1beta2.ReasonComponentInitiated {
		t.Errorf("got phase %s, condition %+v, want Resuming and ResourcesDeployed Unknown", aw.Status.Phase, c)
	}
	f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	crashed := false
	f.reconcileWithCrash(&crashed)
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseSuspended || countRequests(f.writes, "delete Pod a") != 1 {
		t.Errorf("got phase %s, writes %q, want Suspended after the pod was deleted", aw.Status.Phase, f.writes)
	}
}

func TestForbiddenCreationNamesMissingPermissions(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{configMapJSON}, withAnnotations("admissionGracePeriodDuration", "10s", "retryLimit", "0", "deletionOnFailureGracePeriodDuration", "1h")))
	f.beforeRequest = func(request string) error {
		if strings.HasPrefix(request, "create") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New(`User "op" cannot create resource "configmaps" in API group "" in the namespace "team"`))
		}
		return nil
	}
	aw := f.reconcileToPhase(awv1beta2.PhaseResuming)
	message := aw.Status.ComponentStatus[0].Conditions[0].Message
	for _, part := range []string{`cannot create resource "configmaps"`, "bind a ClusterRole with the verbs get, list, watch, create and delete", `"configmaps"`, "ServiceAccount of the operator"} {
		if !strings.Contains(message, part) {
			t.Errorf("got message %q, want it to contain %q", message, part)
		}
	}
	if err := f.reconcileUntilWait(5e9); err != nil {
		t.Fatal(err)
	}
	if aw := f.get(); aw.Status.Phase != awv1beta2.PhaseFailed || !strings.Contains(aw.Status.LastFailure.Message, "bind a ClusterRole") {
		t.Errorf("got phase %s, failure %+v, want Failed with the missing permissions", aw.Status.Phase, aw.Status.LastFailure)
	}
	if attempts := countRequests(f.writes, "create ConfigMap "+generateName("settings-", "aw-uid", 0)); attempts < 3 || attempts > 10 {
		t.Errorf("got %d attempts in ten seconds, want 3 to 10; writes %q", attempts, f.writes)
	}
}

// [D6] [appwrapper-57] The controller rejects cluster-scoped kinds and kinds that grant permissions, as the webhook does.
func TestForbiddenKindsAreRejected(t *testing.T) {
	for template, wantMessage := range map[string]string{
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"admin2"},"rules":[]}`: "grant permissions",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`:                                         "cannot create cluster-scoped objects such as Namespace",
	} {
		f := newFixture(t, newAppWrapper([]string{template}))
		if aw := f.reconcileToPhase(awv1beta2.PhaseFailed); aw.Status.Retries != 0 || !strings.Contains(aw.Status.LastFailure.Message, wantMessage) {
			t.Errorf("got status %+v, want a failure with %q and without retries", aw.Status, wantMessage)
		}
		if slices.ContainsFunc(f.writes, func(r string) bool { return strings.HasPrefix(r, "create") }) {
			t.Errorf("got writes %q, want no creation", f.writes)
		}
	}
}

// [D10] [appwrapper-40] The generated name depends only on the prefix, the UID of the AppWrapper and the index of the component.
func TestGeneratedNames(t *testing.T) {
	first := generateName("train-", "uid-1", 0)
	if first != generateName("train-", "uid-1", 0) || len(first) != len("train-")+suffixLength {
		t.Errorf("got name %q, want the same name again", first)
	}
	for _, other := range []string{generateName("train-", "uid-2", 0), generateName("train-", "uid-1", 1)} {
		if other == first {
			t.Errorf("got name %q for two components", other)
		}
	}
	if long := generateName(strings.Repeat("x", 100), "uid-1", 0); len(long) != maxGeneratedLength {
		t.Errorf("got a name of %d bytes, want %d", len(long), maxGeneratedLength)
	}
	f := newFixture(t, newAppWrapper([]string{configMapJSON}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if aw := f.get(); aw.Status.ComponentStatus[0].Name != generateName("settings-", "aw-uid", 0) {
		t.Errorf("got component %+v, want the generated name", aw.Status.ComponentStatus[0])
	}
}

// The CodeFlare operator stored no name for an announced component with generateName. Its object is found by label.
func TestLegacyObjectWithGeneratedNameIsFound(t *testing.T) {
	legacyConfigMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings-x7k2p", UID: "legacy", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}}}
	legacyAppWrapper := newAppWrapper([]string{configMapJSON}, func(aw *awv1beta2.AppWrapper) {
		aw.Finalizers = []string{awv1beta2.Finalizer}
		aw.Status.Phase = awv1beta2.PhaseResuming
		setCondition(&aw.Status.Conditions, rules.NewCondition(resourcesDeployed, metav1.ConditionTrue, "Resuming", ""), noon)
		status := awv1beta2.AppWrapperComponentStatus{Kind: "ConfigMap", APIVersion: "v1", PodSets: []awv1beta2.AppWrapperPodSet{}}
		setResourcesDeployed(&status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, "", noon)
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{status}
	})
	for _, suspended := range []bool{false, true} {
		aw := legacyAppWrapper.DeepCopy()
		aw.Spec.Suspend = suspended
		f := newFixture(t, aw, legacyConfigMap.DeepCopy())
		crashed := false
		f.reconcileWithCrash(&crashed)
		got := f.get()
		if suspended {
			if got.Status.Phase != awv1beta2.PhaseSuspended || countRequests(f.writes, "delete PartialObjectMetadata settings-x7k2p")+countRequests(f.writes, "delete ConfigMap settings-x7k2p") != 1 {
				t.Errorf("got phase %s, writes %q, want Suspended after the object was deleted", got.Status.Phase, f.writes)
			}
			continue
		}
		if got.Status.Phase != awv1beta2.PhaseRunning || got.Status.ComponentStatus[0].Name != "settings-x7k2p" || len(f.createdUIDs) != 0 {
			t.Errorf("got phase %s, component %+v, created objects %v, want Running with the existing object", got.Status.Phase, got.Status.ComponentStatus[0], f.createdUIDs)
		}
	}
}

// restoredPod returns a Pod that was restored from a backup without owner references.
func restoredPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := existingPod(func(p *corev1.Pod) {
		p.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "i"}}}
	})
	for _, change := range changes {
		change(p)
	}
	p.Name, p.UID, p.CreationTimestamp = name, types.UID("restored-"+name), metav1.NewTime(noon)
	p.Annotations = map[string]string{"example.com/backup": "1"}
	return p
}

func withAppWrapperLabel(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[awv1beta2.LabelAppWrapper] = name }
}

func withImage(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

// Restored objects without owner references are adopted if they have the label and equal the template, and are not created again.
func TestRestoredObjects(t *testing.T) {
	generatedPod := strings.Replace(podJSON("a-"), `"name":"a-"`, `"generateName":"a-"`, 1)
	otherGeneratedPod := strings.Replace(generatedPod, `"image":"i"`, `"image":"other"`, 1)
	generated := generateName("a-", "an-earlier-uid", 0)
	for name, tc := range map[string]struct {
		templates []string
		pods      []*corev1.Pod
		phase     awv1beta2.AppWrapperPhase
		// wantAdopted are the names of adopted objects by component, wantCreated is the number of new Pods.
		wantAdopted []string
		wantCreated int
	}{
		"equal to the template":                                               {[]string{podJSON("a")}, []*corev1.Pod{restoredPod("a")}, awv1beta2.PhaseRunning, []string{"a"}, 0},
		"with the label of another AppWrapper":                                {[]string{podJSON("a")}, []*corev1.Pod{restoredPod("a", withAppWrapperLabel("tune"))}, awv1beta2.PhaseFailed, nil, 0},
		"different from the template":                                         {[]string{podJSON("a")}, []*corev1.Pod{restoredPod("a", withImage("old"))}, awv1beta2.PhaseFailed, nil, 0},
		"generateName, name of this operator":                                 {[]string{generatedPod}, []*corev1.Pod{restoredPod(generated)}, awv1beta2.PhaseRunning, []string{generated}, 0},
		"generateName, name of the CodeFlare operator":                        {[]string{generatedPod}, []*corev1.Pod{restoredPod("a-x7k2p")}, awv1beta2.PhaseRunning, []string{"a-x7k2p"}, 0},
		"generateName, different from the template":                           {[]string{generatedPod}, []*corev1.Pod{restoredPod(generated, withImage("old"))}, awv1beta2.PhaseFailed, nil, 0},
		"generateName, with the label of another AppWrapper":                  {[]string{generatedPod}, []*corev1.Pod{restoredPod(generated, withAppWrapperLabel("tune"))}, awv1beta2.PhaseRunning, nil, 1},
		"generateName, with another controller":                               {[]string{generatedPod}, []*corev1.Pod{restoredPod(generated, withController("apps/v1", "ReplicaSet", "b", "rs"))}, awv1beta2.PhaseRunning, nil, 1},
		"generateName that is a prefix of another generateName":               {[]string{generatedPod}, []*corev1.Pod{restoredPod("a-b-x7k2p", withImage("old"))}, awv1beta2.PhaseRunning, nil, 1},
		"two components with the same template":                               {[]string{generatedPod, generatedPod}, []*corev1.Pod{restoredPod("a-11111"), restoredPod("a-22222")}, awv1beta2.PhaseRunning, []string{"a-11111", "a-22222"}, 0},
		"two components with the same generateName, objects in reverse order": {[]string{generatedPod, otherGeneratedPod}, []*corev1.Pod{restoredPod("a-11111", withImage("other")), restoredPod("a-22222")}, awv1beta2.PhaseRunning, []string{"a-22222", "a-11111"}, 0},
		"two components with the same generateName, one object":               {[]string{generatedPod, otherGeneratedPod}, []*corev1.Pod{restoredPod("a-11111", withImage("other"))}, awv1beta2.PhaseRunning, []string{"", "a-11111"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, p := range tc.pods {
				objects = append(objects, p)
			}
			f := newFixture(t, newAppWrapper(tc.templates, withAnnotations("deletionOnFailureGracePeriodDuration", "1h", "retryLimit", "0")), objects...)
			aw := f.reconcileToPhase(tc.phase)
			for i, want := range tc.wantAdopted {
				if got := aw.Status.ComponentStatus[i].Name; want != "" && (got != want || countRequests(f.writes, "patch Pod "+want) != 1) {
					t.Errorf("component %d: got name %q, want %q and one patch; writes %q", i, got, want, f.writes)
				}
			}
			if len(f.createdUIDs) != tc.wantCreated {
				t.Errorf("got created objects %v, want %d", f.createdUIDs, tc.wantCreated)
			}
			pods := &corev1.PodList{}
			if err := f.server.List(t.Context(), pods); err != nil {
				t.Fatal(err)
			}
			for i := range pods.Items {
				got := controls(aw, &pods.Items[i])
				if want := slices.Contains(tc.wantAdopted, pods.Items[i].Name) || len(f.createdUIDs[pods.Items[i].Name]) > 0; got != want {
					t.Errorf("%s: got controlled %t, want %t", pods.Items[i].Name, got, want)
				}
			}
		})
	}
}

// Without the permission to patch an object, the status of its component reports the error. The object is adopted once the permission is
// granted.
func TestAdoptionWaitsForPermission(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}, withAnnotations("deletionOnFailureGracePeriodDuration", "1h")), restoredPod("a"))
	f.beforeRequest = func(request string) error {
		if request == "patch Pod a" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		}
		return nil
	}
	if aw := f.reconcileToPhase(awv1beta2.PhaseResuming); !strings.Contains(aw.Status.ComponentStatus[0].Conditions[0].Message, "has no owner: grant the ServiceAccount of the operator the verb patch on it") {
		t.Errorf("got status %+v, want a message about the missing permission", aw.Status)
	}
	f.beforeRequest = func(string) error { return nil }
	f.reconcileToPhase(awv1beta2.PhaseRunning)
}

// Pods that were restored before their AppWrapper count, even after a restart. Other pods that are older than the AppWrapper do not count.
func TestRestoredPodsOlderThanAppWrapperCount(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		age     time.Duration
		restart bool
		ready   metav1.ConditionStatus
	}{
		"restored before the AppWrapper":                  {restoredPod("a"), time.Minute, false, metav1.ConditionTrue},
		"restored before the AppWrapper, after a restart": {restoredPod("a"), time.Minute, true, metav1.ConditionTrue},
		"restored in the same second":                     {restoredPod("a"), 0, false, metav1.ConditionTrue},
		"pod of an earlier AppWrapper of the same name":   {restoredPod("b", withController("apps/v1", "ReplicaSet", "b", "rs")), time.Minute, false, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.CreationTimestamp, tc.pod.Status.Phase = metav1.NewTime(noon.Add(-tc.age)), corev1.PodRunning
			f := newFixture(t, newAppWrapper([]string{podJSON("a")}), tc.pod)
			f.reconcileToPhase(awv1beta2.PhaseRunning)
			if tc.restart {
				f.restart()
				f.reconcileToPhase(awv1beta2.PhaseRunning)
			}
			if c := meta.FindStatusCondition(f.get().Status.Conditions, awv1beta2.ConditionPodsReady); c == nil || c.Status != tc.ready {
				t.Errorf("got PodsReady %+v, want status %s", c, tc.ready)
			}
		})
	}
}
