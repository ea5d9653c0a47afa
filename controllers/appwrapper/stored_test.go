package appwrapper

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// original returns a status of the CodeFlare operator, without newer fields.
func original(phase awv1beta2.AppWrapperPhase, component string, conditions ...metav1.Condition) func(*awv1beta2.AppWrapper) {
	return func(aw *awv1beta2.AppWrapper) {
		aw.Finalizers = []string{awv1beta2.Finalizer}
		aw.Status.Phase = phase
		for _, c := range conditions {
			setCondition(&aw.Status.Conditions, c, noon.Add(-5*time.Minute))
		}
		status := awv1beta2.AppWrapperComponentStatus{PodSets: []awv1beta2.AppWrapperPodSet{{Path: "template", Replicas: new(int32(1))}}}
		if component != "" {
			status.Name, status.Kind, status.APIVersion = "a", "Pod", "v1"
			value := map[string]metav1.ConditionStatus{awv1beta2.ReasonComponentCreated: metav1.ConditionTrue, awv1beta2.ReasonComponentInitiated: metav1.ConditionUnknown}[component]
			if value == "" {
				value = metav1.ConditionFalse
			}
			setResourcesDeployed(&status, value, component, "", noon.Add(-5*time.Minute))
		}
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{status}
	}
}

// foreign is the pod that the CodeFlare operator created.
func foreign(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "pod-uid", CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// Every stored phase of the CodeFlare operator is continued, and existing objects are not created again.
func TestLegacyPhasesAreContinued(t *testing.T) {
	yes := func(kind string) metav1.Condition {
		return rules.NewCondition(kind, metav1.ConditionTrue, awv1beta2.ReasonResuming, "")
	}
	no := func(kind, reason string) metav1.Condition {
		return rules.NewCondition(kind, metav1.ConditionFalse, reason, "")
	}
	deployed := []metav1.Condition{yes(qr), yes(rd), no(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResuming), no(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming)}
	unhealthy := append(append([]metav1.Condition{}, deployed...), rules.NewCondition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFoundFailedPods, ""))
	for name, tc := range map[string]struct {
		stored  func(*awv1beta2.AppWrapper)
		pod     *corev1.Pod
		suspend bool
		want    awv1beta2.AppWrapperPhase
		made    int
		held    []string // conditions that are True in the end
	}{
		"suspended":                             {original(awv1beta2.PhaseSuspended, ""), nil, true, awv1beta2.PhaseSuspended, 0, nil},
		"suspended, to be resumed":              {original(awv1beta2.PhaseSuspended, ""), nil, false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"resumed before":                        {original(awv1beta2.PhaseSuspended, awv1beta2.ReasonComponentDeletedTypo, no(qr, "Suspended"), no(rd, "Suspended")), nil, false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"resuming, no object created":           {original(awv1beta2.PhaseResuming, "", deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"resuming, announced":                   {original(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentInitiated, deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"resuming, created":                     {original(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentInitiated, deployed...), foreign(corev1.PodRunning), false, awv1beta2.PhaseRunning, 0, []string{qr, rd, awv1beta2.ConditionPodsReady}},
		"resuming after a reset":                {original(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentDeletedTypo, deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"running":                               {original(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, deployed...), foreign(corev1.PodRunning), false, awv1beta2.PhaseRunning, 0, []string{qr, rd, awv1beta2.ConditionPodsReady}},
		"running, completed during the upgrade": {original(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, deployed...), foreign(corev1.PodSucceeded), false, awv1beta2.PhaseSucceeded, 0, []string{rd, awv1beta2.ConditionPodsReady}},
		"resetting":                             {original(awv1beta2.PhaseResetting, awv1beta2.ReasonComponentCreated, unhealthy...), foreign(corev1.PodFailed), false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"suspending":                            {original(awv1beta2.PhaseSuspending, awv1beta2.ReasonComponentCreated, deployed...), foreign(corev1.PodRunning), true, awv1beta2.PhaseSuspended, 0, nil},
		"suspending, resumed since":             {original(awv1beta2.PhaseSuspending, awv1beta2.ReasonComponentCreated, deployed...), foreign(corev1.PodRunning), false, awv1beta2.PhaseRunning, 1, []string{qr, rd}},
		"succeeded, kept":                       {original(awv1beta2.PhaseSucceeded, awv1beta2.ReasonComponentCreated, no(qr, "Succeeded"), yes(rd), yes(awv1beta2.ConditionPodsReady)), foreign(corev1.PodSucceeded), false, awv1beta2.PhaseSucceeded, 0, []string{rd, awv1beta2.ConditionPodsReady}},
		"succeeded, cleaned up":                 {original(awv1beta2.PhaseSucceeded, awv1beta2.ReasonComponentDeletedTypo, no(qr, "Succeeded"), no(rd, "Succeeded")), nil, false, awv1beta2.PhaseSucceeded, 0, nil},
		"failed, to be cleaned up":              {original(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentCreated, unhealthy...), foreign(corev1.PodFailed), false, awv1beta2.PhaseFailed, 0, []string{awv1beta2.ConditionUnhealthy}},
		"failed, cleaned up":                    {original(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentDeletedTypo, no(qr, "Failed"), no(rd, "Failed")), nil, false, awv1beta2.PhaseFailed, 0, nil},
		"failed while being deleted":            {original(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentCreated, append(unhealthy, yes(awv1beta2.ConditionDeletingResources))...), foreign(corev1.PodFailed), false, awv1beta2.PhaseFailed, 0, []string{awv1beta2.ConditionUnhealthy}},
	} {
		t.Run(name, func(t *testing.T) {
			aw := wrapper([]string{wrappedPod("a")}, tc.stored)
			aw.Spec.Suspend = tc.suspend
			w := newFixture(t, aw)
			if tc.pod != nil {
				w = newFixture(t, aw, tc.pod)
			}
			none := false
			w.reconcileWithCrash(&none)
			got := w.get()
			status, err := json.Marshal(got.Status)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Phase != tc.want || len(w.born["a"]) != tc.made {
				t.Errorf("phase %s, %d made, want %s and %d: %s", got.Status.Phase, len(w.born["a"]), tc.want, tc.made, status)
			}
			var trueConditions []string
			for _, kind := range []string{qr, rd, awv1beta2.ConditionPodsReady, awv1beta2.ConditionUnhealthy, awv1beta2.ConditionDeletingResources} {
				if meta.IsStatusConditionTrue(got.Status.Conditions, kind) {
					trueConditions = append(trueConditions, kind)
				}
			}
			if len(trueConditions) != len(tc.held) {
				t.Errorf("True are %q, want %q: %s", trueConditions, tc.held, status)
			}
			if ended := tc.want == awv1beta2.PhaseSucceeded || tc.want == awv1beta2.PhaseFailed; ended && got.Status.CompletionTime == nil {
				t.Errorf("no time of completion: %s", status)
			}
			if sets := got.Status.ComponentStatus[0].PodSets; len(sets) != 1 || sets[0].Path != "template" {
				t.Errorf("pod sets %+v", sets)
			}
		})
	}
}

// Stored pod sets are not recomputed from the template.
func TestStoredPodSetsAreTrusted(t *testing.T) {
	aw := wrapper([]string{wrappedPod("a")}, original(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, rules.NewCondition(rd, metav1.ConditionTrue, "Resuming", ""), rules.NewCondition(qr, metav1.ConditionTrue, "Resuming", "")))
	aw.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(2))
	w := newFixture(t, aw, foreign(corev1.PodRunning))
	w.must(awv1beta2.PhaseRunning)
	f, err := w.collectFacts(t.Context(), aw)
	if err != nil || f.Expected() != 2 {
		t.Errorf("expected %d, error %v", f.Expected(), err)
	}
}

// AppWrappers of another controller, and paused ones, are not changed.
func TestAppWrappersOfOtherControllersAreIgnored(t *testing.T) {
	for name, change := range map[string]func(*awv1beta2.AppWrapper){
		"another manager": func(aw *awv1beta2.AppWrapper) { aw.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") },
		"a newer phase":   original("Hibernating", ""),
	} {
		w := newFixture(t, wrapper([]string{wrappedPod("a")}, change))
		if err := w.rest(time.Second); err != nil || len(w.writes)+len(w.reads) != 0 {
			t.Errorf("%s: %v, writes %q, reads %q", name, err, w.writes, w.reads)
		}
	}
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	if _, err := w.shell.Reconcile(t.Context(), requestFor("gone")); err != nil {
		t.Errorf("deleted AppWrapper: %v", err)
	}
}

// The state of a deleted AppWrapper is dropped.
func TestMemoryIsForgotten(t *testing.T) {
	w := newFixture(t, wrapper([]string{wrappedPod("a")}))
	w.must(awv1beta2.PhaseRunning)
	if object, _ := w.memory.component("aw-uid", 0); object.uid == "" || len(w.memory.objects) != 1 {
		t.Fatalf("memory %+v", w.memory.objects)
	}
	if err := w.server.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	none := false
	w.reconcileWithCrash(&none)
	if len(w.memory.objects) != 0 {
		t.Errorf("memory %+v", w.memory.objects)
	}
	if _, succeeded := w.memory.component(types.UID("aw-uid"), 0); succeeded {
		t.Error("the component of an unknown AppWrapper has succeeded")
	}
}
