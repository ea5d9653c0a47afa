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

// owned returns an object with the name of a component.
func owned(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "other-pod", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func ownedBy(apiVersion, kind, name, uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
	}
}

func terminating(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{finalizer}
}

// [D9] [appwrapper-56] Group, kind and uid of the owner determine who controls an existing object.
func TestExistingObjects(t *testing.T) {
	group := awv1beta2.GroupVersion.String()
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		phase awv1beta2.AppWrapperPhase
		says  string
	}{
		"owned by the AppWrapper":                    {owned(ownedBy(group, "AppWrapper", "train", "aw-uid")), awv1beta2.PhaseRunning, ""},
		"owned by an earlier AppWrapper of the name": {owned(ownedBy(group, "AppWrapper", "train", "earlier")), awv1beta2.PhaseResuming, "belongs to an earlier AppWrapper of this name: waiting"},
		"owned by the AppWrapper, terminating":       {owned(ownedBy(group, "AppWrapper", "train", "aw-uid"), terminating), awv1beta2.PhaseResuming, "is being deleted: waiting"},
		"foreign, on the way out":                    {owned(terminating), awv1beta2.PhaseResuming, "is being deleted: waiting"},
		"of another kind of that name":               {owned(ownedBy("apps/v1", "ReplicaSet", "train", "aw-uid")), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
		"of another group":                           {owned(ownedBy("example.com/v1", "AppWrapper", "train", "aw-uid")), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
		"without an owner":                           {owned(), awv1beta2.PhaseFailed, "exists, but is not controlled by appwrapper"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("deletionOnFailureGracePeriodDuration", "1h", "retryLimit", "0")), tc.pod)
			for range 12 {
				result, err := w.reconcileOnce()
				if err != nil || result.RequeueAfter > time.Second {
					break
				}
				w.clock.Step(result.RequeueAfter)
			}
			aw := w.get()
			if aw.Status.Phase != tc.phase {
				t.Fatalf("phase %s, want %s: %+v", aw.Status.Phase, tc.phase, aw.Status)
			}
			if got := aw.Status.ComponentStatus[0].Conditions[0].Message; !strings.Contains(got, tc.says) {
				t.Errorf("message %q, want it to contain %q", got, tc.says)
			}
			if n := created(w, "a"); n != 0 {
				t.Errorf("created %d times", n)
			}
		})
	}
}

// [D11] After an ambiguous error the component stays Unknown, and suspension deletes its object.
func TestAmbiguousErrors(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err       error
		ambiguous bool
	}{
		"connection lost":   {errors.New("unexpected EOF"), true},
		"timeout":           {apierrors.NewTimeoutError("no answer", 1), true},
		"server timeout":    {apierrors.NewServerTimeout(pods, "create", 1), true},
		"internal":          {apierrors.NewInternalError(errors.New("etcd")), true},
		"forbidden":         {apierrors.NewForbidden(pods, "a", errors.New("no")), false},
		"quota conflict":    {apierrors.NewConflict(pods, "a", errors.New("quota")), false},
		"too many requests": {apierrors.NewTooManyRequests("slowly", 1), false},
		"fatal":             {terminalError{errors.New("bad path")}, false},
		"waiting":           {notCreatedError{errors.New("going")}, false},
	} {
		if got := isAmbiguous(tc.err); got != tc.ambiguous {
			t.Errorf("%s: got %t, want %t", name, got, tc.ambiguous)
		}
	}
}

func TestSuspensionDeletesObjectWithLostCreateResponse(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.after = func(request string) error {
		if request == "create Pod a" {
			return errors.New("unexpected EOF")
		}
		return nil
	}
	for range 6 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	aw := w.get()
	if c := aw.Status.ComponentStatus[0].Conditions[0]; aw.Status.Phase != awv1beta2.PhaseRunning && (c.Status != metav1.ConditionUnknown || c.Reason != awv1beta2.ReasonComponentInitiated) {
		t.Errorf("phase %s, component %+v", aw.Status.Phase, c)
	}
	w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true })
	none := false
	w.reconcileWithCrash(&none)
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseSuspended || count(w.writes, "delete Pod a") != 1 {
		t.Errorf("phase %s, writes %q", aw.Status.Phase, w.writes)
	}
}

func TestForbiddenNamesRequiredRights(t *testing.T) {
	w := newFixture(t, wrapper([]string{mapTemplate}, annotated("admissionGracePeriodDuration", "10s", "retryLimit", "0", "deletionOnFailureGracePeriodDuration", "1h")))
	w.before = func(request string) error {
		if strings.HasPrefix(request, "create") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New(`User "op" cannot create resource "configmaps" in API group "" in the namespace "team"`))
		}
		return nil
	}
	aw := w.must(awv1beta2.PhaseResuming)
	message := aw.Status.ComponentStatus[0].Conditions[0].Message
	for _, part := range []string{`cannot create resource "configmaps"`, "bind a ClusterRole with the verbs get, list, watch, create and delete", `"configmaps"`, "service account of the operator"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q lacks %q", message, part)
		}
	}
	if err := w.rest(5e9); err != nil {
		t.Fatal(err)
	}
	if aw := w.get(); aw.Status.Phase != awv1beta2.PhaseFailed || !strings.Contains(aw.Status.LastFailure.Message, "bind a ClusterRole") {
		t.Errorf("phase %s, failure %+v", aw.Status.Phase, aw.Status.LastFailure)
	}
	if tries := count(w.writes, w.writes[3]); tries < 3 || tries > 10 {
		t.Errorf("%d tries in ten seconds: %q", tries, w.writes)
	}
}

// [D6] [appwrapper-57] The controller also rejects cluster-scoped kinds.
func TestKindsThatAreRefused(t *testing.T) {
	w := newFixture(t, wrapper([]string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"admin2"},"rules":[]}`}))
	if aw := w.must(awv1beta2.PhaseFailed); aw.Status.Retries != 0 || !strings.Contains(aw.Status.LastFailure.Message, "grant permissions") {
		t.Errorf("status %+v", aw.Status)
	}
	if slices.ContainsFunc(w.writes, func(r string) bool { return strings.HasPrefix(r, "create") }) {
		t.Errorf("writes %q", w.writes)
	}
}

// [D10] [appwrapper-40] A generateName is completed deterministically.
func TestGeneratedNames(t *testing.T) {
	first := generateName("train-", "uid-1", 0)
	if first != generateName("train-", "uid-1", 0) || len(first) != len("train-")+suffixLength {
		t.Errorf("name %q", first)
	}
	for _, other := range []string{generateName("train-", "uid-2", 0), generateName("train-", "uid-1", 1)} {
		if other == first {
			t.Errorf("%q twice", other)
		}
	}
	if long := generateName(strings.Repeat("x", 100), "uid-1", 0); len(long) != maxGeneratedLength {
		t.Errorf("%d bytes", len(long))
	}
	w := newFixture(t, wrapper([]string{mapTemplate}))
	w.must(awv1beta2.PhaseRunning)
	if aw := w.get(); aw.Status.ComponentStatus[0].Name != generateName("settings-", "aw-uid", 0) {
		t.Errorf("status %+v", aw.Status.ComponentStatus[0])
	}
}

// The CodeFlare operator announced objects with generateName without a name: they are found by label.
func TestLegacyObjectWithGeneratedNameIsFound(t *testing.T) {
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings-x7k2p", UID: "theirs", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}}}
	interrupted := wrapper([]string{mapTemplate}, func(aw *awv1beta2.AppWrapper) {
		aw.Finalizers = []string{awv1beta2.Finalizer}
		aw.Status.Phase = awv1beta2.PhaseResuming
		setCondition(&aw.Status.Conditions, rules.NewCondition(rd, metav1.ConditionTrue, "Resuming", ""), noon)
		status := awv1beta2.AppWrapperComponentStatus{Kind: "ConfigMap", APIVersion: "v1", PodSets: []awv1beta2.AppWrapperPodSet{}}
		setResourcesDeployed(&status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, "", noon)
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{status}
	})
	for _, suspended := range []bool{false, true} {
		aw := interrupted.DeepCopy()
		aw.Spec.Suspend = suspended
		w := newFixture(t, aw, foreign.DeepCopy())
		none := false
		w.reconcileWithCrash(&none)
		got := w.get()
		if suspended {
			if got.Status.Phase != awv1beta2.PhaseSuspended || count(w.writes, "delete PartialObjectMetadata settings-x7k2p")+count(w.writes, "delete ConfigMap settings-x7k2p") != 1 {
				t.Errorf("phase %s, writes %q", got.Status.Phase, w.writes)
			}
			continue
		}
		if got.Status.Phase != awv1beta2.PhaseRunning || got.Status.ComponentStatus[0].Name != "settings-x7k2p" || len(w.born) != 0 {
			t.Errorf("phase %s, component %+v, made %v", got.Status.Phase, got.Status.ComponentStatus[0], w.born)
		}
	}
}

// restored returns a Pod from a backup without owner references, with defaults of the API server.
func restored(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := owned(func(p *corev1.Pod) {
		p.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "i"}}}
	})
	for _, change := range changes {
		change(p)
	}
	p.Name, p.UID, p.CreationTimestamp = name, types.UID("restored-"+name), metav1.NewTime(noon)
	p.Annotations = map[string]string{"of": "a-backup"}
	return p
}

func podOf(wrapper string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[awv1beta2.LabelAppWrapper] = wrapper }
}

func withImage(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

// Restored objects without owners are adopted if they have the label and equal the template, and are not created twice.
func TestRestoredObjects(t *testing.T) {
	open := strings.Replace(wrappedPod("a-"), `"name":"a-"`, `"generateName":"a-"`, 1)
	other := strings.Replace(open, `"image":"i"`, `"image":"other"`, 1)
	generated := generateName("a-", "an-earlier-uid", 0)
	for name, tc := range map[string]struct {
		templates []string
		pods      []*corev1.Pod
		phase     awv1beta2.AppWrapperPhase
		// adopted are the components by name, made is the number of new Pods.
		adopted []string
		made    int
	}{
		"as described":           {[]string{wrappedPod("a")}, []*corev1.Pod{restored("a")}, awv1beta2.PhaseRunning, []string{"a"}, 0},
		"of another AppWrapper":  {[]string{wrappedPod("a")}, []*corev1.Pod{restored("a", podOf("tune"))}, awv1beta2.PhaseFailed, nil, 0},
		"changed":                {[]string{wrappedPod("a")}, []*corev1.Pod{restored("a", withImage("old"))}, awv1beta2.PhaseFailed, nil, 0},
		"with an open name":      {[]string{open}, []*corev1.Pod{restored(generated)}, awv1beta2.PhaseRunning, []string{generated}, 0},
		"of the legacy operator": {[]string{open}, []*corev1.Pod{restored("a-x7k2p")}, awv1beta2.PhaseRunning, []string{"a-x7k2p"}, 0},
		"open, changed":          {[]string{open}, []*corev1.Pod{restored(generated, withImage("old"))}, awv1beta2.PhaseFailed, nil, 0},
		"open, of another":       {[]string{open}, []*corev1.Pod{restored(generated, podOf("tune"))}, awv1beta2.PhaseRunning, nil, 1},
		"open, controlled":       {[]string{open}, []*corev1.Pod{restored(generated, ownedBy("apps/v1", "ReplicaSet", "b", "rs"))}, awv1beta2.PhaseRunning, nil, 1},
		"different generateName with the same prefix": {[]string{open}, []*corev1.Pod{restored("a-b-x7k2p", withImage("old"))}, awv1beta2.PhaseRunning, nil, 1},
		"two of one prefix":                           {[]string{open, open}, []*corev1.Pod{restored("a-11111"), restored("a-22222")}, awv1beta2.PhaseRunning, []string{"a-11111", "a-22222"}, 0},
		"two, in the wrong order":                     {[]string{open, other}, []*corev1.Pod{restored("a-11111", withImage("other")), restored("a-22222")}, awv1beta2.PhaseRunning, []string{"a-22222", "a-11111"}, 0},
		"one of two pods with the same generateName":  {[]string{open, other}, []*corev1.Pod{restored("a-11111", withImage("other"))}, awv1beta2.PhaseRunning, []string{"", "a-11111"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			for _, p := range tc.pods {
				there = append(there, p)
			}
			w := newFixture(t, wrapper(tc.templates, annotated("deletionOnFailureGracePeriodDuration", "1h", "retryLimit", "0")), there...)
			aw := w.must(tc.phase)
			for i, want := range tc.adopted {
				if got := aw.Status.ComponentStatus[i].Name; want != "" && (got != want || count(w.writes, "patch Pod "+want) != 1) {
					t.Errorf("component %d is %q, want %q: %q", i, got, want, w.writes)
				}
			}
			if len(w.born) != tc.made {
				t.Errorf("made %v, want %d", w.born, tc.made)
			}
			pods := &corev1.PodList{}
			if err := w.server.List(t.Context(), pods); err != nil {
				t.Fatal(err)
			}
			for i := range pods.Items {
				controlled := controls(aw, &pods.Items[i])
				if want := slices.Contains(tc.adopted, pods.Items[i].Name) || len(w.born[pods.Items[i].Name]) > 0; controlled != want {
					t.Errorf("%s is controlled: %t", pods.Items[i].Name, controlled)
				}
			}
		})
	}
}

// Without the permission to patch a kind the error is reported, and the workload continues once it is granted.
func TestAdoptionWaitsForItsRight(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}, annotated("deletionOnFailureGracePeriodDuration", "1h")), restored("a"))
	w.before = func(request string) error {
		if request == "patch Pod a" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		}
		return nil
	}
	if aw := w.must(awv1beta2.PhaseResuming); !strings.Contains(aw.Status.ComponentStatus[0].Conditions[0].Message, "has no owner: grant the service account of the operator patch on it") {
		t.Errorf("status %+v", aw.Status)
	}
	w.before = func(string) error { return nil }
	w.must(awv1beta2.PhaseRunning)
}

// Pods that were restored before their AppWrapper count, also in a process that did not adopt their component. Other older pods do not.
func TestPodsOlderThanTheAppWrapperCountAfterRestore(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		age     time.Duration
		restart bool
		ready   metav1.ConditionStatus
	}{
		"restored":                           {restored("a"), time.Minute, false, metav1.ConditionTrue},
		"restored, before a restart":         {restored("a"), time.Minute, true, metav1.ConditionTrue},
		"restored in the same second":        {restored("a"), 0, false, metav1.ConditionTrue},
		"of an earlier AppWrapper of a name": {restored("b", ownedBy("apps/v1", "ReplicaSet", "b", "rs")), time.Minute, false, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.CreationTimestamp, tc.pod.Status.Phase = metav1.NewTime(noon.Add(-tc.age)), corev1.PodRunning
			w := newFixture(t, wrapper([]string{wrappedPod("a")}), tc.pod)
			w.must(awv1beta2.PhaseRunning)
			if tc.restart {
				w.restart()
				w.must(awv1beta2.PhaseRunning)
			}
			if c := meta.FindStatusCondition(w.get().Status.Conditions, awv1beta2.ConditionPodsReady); c == nil || c.Status != tc.ready {
				t.Errorf("PodsReady %+v", c)
			}
		})
	}
}
