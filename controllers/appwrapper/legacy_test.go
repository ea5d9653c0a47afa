package appwrapper

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// withLegacyStatus sets a status as the CodeFlare operator stored it, without newer fields. componentReason is the reason of
// ResourcesDeployed of the component; "" for a component that was never announced.
func withLegacyStatus(phase awv1beta2.AppWrapperPhase, componentReason string, conditions ...metav1.Condition) func(*awv1beta2.AppWrapper) {
	return func(aw *awv1beta2.AppWrapper) {
		aw.Finalizers = []string{awv1beta2.Finalizer}
		aw.Status.Phase = phase
		for _, c := range conditions {
			setCondition(&aw.Status.Conditions, c, noon.Add(-5*time.Minute))
		}
		status := awv1beta2.AppWrapperComponentStatus{PodSets: []awv1beta2.AppWrapperPodSet{{Path: "template", Replicas: new(int32(1))}}}
		if componentReason != "" {
			status.Name, status.Kind, status.APIVersion = "a", "Pod", "v1"
			value := map[string]metav1.ConditionStatus{awv1beta2.ReasonComponentCreated: metav1.ConditionTrue, awv1beta2.ReasonComponentInitiated: metav1.ConditionUnknown}[componentReason]
			if value == "" {
				value = metav1.ConditionFalse
			}
			setResourcesDeployed(&status, value, componentReason, "", noon.Add(-5*time.Minute))
		}
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{status}
	}
}

// legacyPod returns a pod that the CodeFlare operator created.
func legacyPod(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "pod-uid", CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// An AppWrapper continues from the phase that the CodeFlare operator stored, and its existing objects are not created again.
func TestLegacyPhasesAreContinued(t *testing.T) {
	trueCondition := func(conditionType string) metav1.Condition {
		return rules.NewCondition(conditionType, metav1.ConditionTrue, awv1beta2.ReasonResuming, "")
	}
	falseCondition := func(conditionType, reason string) metav1.Condition {
		return rules.NewCondition(conditionType, metav1.ConditionFalse, reason, "")
	}
	deployed := []metav1.Condition{trueCondition(quotaReserved), trueCondition(resourcesDeployed), falseCondition(awv1beta2.ConditionPodsReady, awv1beta2.ReasonResuming), falseCondition(awv1beta2.ConditionUnhealthy, awv1beta2.ReasonResuming)}
	unhealthy := append(append([]metav1.Condition{}, deployed...), rules.NewCondition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, awv1beta2.ReasonFoundFailedPods, ""))
	for name, tc := range map[string]struct {
		stored      func(*awv1beta2.AppWrapper)
		pod         *corev1.Pod
		suspend     bool
		want        awv1beta2.AppWrapperPhase
		wantCreated int
		wantTrue    []string // types of conditions, in the order of the loop below
	}{
		"suspended":                             {withLegacyStatus(awv1beta2.PhaseSuspended, ""), nil, true, awv1beta2.PhaseSuspended, 0, nil},
		"suspended with suspend false":          {withLegacyStatus(awv1beta2.PhaseSuspended, ""), nil, false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"suspended after a run":                 {withLegacyStatus(awv1beta2.PhaseSuspended, awv1beta2.ReasonComponentDeletedTypo, falseCondition(quotaReserved, "Suspended"), falseCondition(resourcesDeployed, "Suspended")), nil, false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"resuming, no object created":           {withLegacyStatus(awv1beta2.PhaseResuming, "", deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"resuming, object announced":            {withLegacyStatus(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentInitiated, deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"resuming, object created":              {withLegacyStatus(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentInitiated, deployed...), legacyPod(corev1.PodRunning), false, awv1beta2.PhaseRunning, 0, []string{quotaReserved, resourcesDeployed, awv1beta2.ConditionPodsReady}},
		"resuming after a reset":                {withLegacyStatus(awv1beta2.PhaseResuming, awv1beta2.ReasonComponentDeletedTypo, deployed...), nil, false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"running":                               {withLegacyStatus(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, deployed...), legacyPod(corev1.PodRunning), false, awv1beta2.PhaseRunning, 0, []string{quotaReserved, resourcesDeployed, awv1beta2.ConditionPodsReady}},
		"running, completed during the upgrade": {withLegacyStatus(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, deployed...), legacyPod(corev1.PodSucceeded), false, awv1beta2.PhaseSucceeded, 0, []string{resourcesDeployed, awv1beta2.ConditionPodsReady}},
		"resetting":                             {withLegacyStatus(awv1beta2.PhaseResetting, awv1beta2.ReasonComponentCreated, unhealthy...), legacyPod(corev1.PodFailed), false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"suspending":                            {withLegacyStatus(awv1beta2.PhaseSuspending, awv1beta2.ReasonComponentCreated, deployed...), legacyPod(corev1.PodRunning), true, awv1beta2.PhaseSuspended, 0, nil},
		"suspending with suspend false":         {withLegacyStatus(awv1beta2.PhaseSuspending, awv1beta2.ReasonComponentCreated, deployed...), legacyPod(corev1.PodRunning), false, awv1beta2.PhaseRunning, 1, []string{quotaReserved, resourcesDeployed}},
		"succeeded, objects retained":           {withLegacyStatus(awv1beta2.PhaseSucceeded, awv1beta2.ReasonComponentCreated, falseCondition(quotaReserved, "Succeeded"), trueCondition(resourcesDeployed), trueCondition(awv1beta2.ConditionPodsReady)), legacyPod(corev1.PodSucceeded), false, awv1beta2.PhaseSucceeded, 0, []string{resourcesDeployed, awv1beta2.ConditionPodsReady}},
		"succeeded, objects deleted":            {withLegacyStatus(awv1beta2.PhaseSucceeded, awv1beta2.ReasonComponentDeletedTypo, falseCondition(quotaReserved, "Succeeded"), falseCondition(resourcesDeployed, "Succeeded")), nil, false, awv1beta2.PhaseSucceeded, 0, nil},
		"failed, objects exist":                 {withLegacyStatus(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentCreated, unhealthy...), legacyPod(corev1.PodFailed), false, awv1beta2.PhaseFailed, 0, []string{awv1beta2.ConditionUnhealthy}},
		"failed, objects deleted":               {withLegacyStatus(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentDeletedTypo, falseCondition(quotaReserved, "Failed"), falseCondition(resourcesDeployed, "Failed")), nil, false, awv1beta2.PhaseFailed, 0, nil},
		"failed, objects terminating":           {withLegacyStatus(awv1beta2.PhaseFailed, awv1beta2.ReasonComponentCreated, append(unhealthy, trueCondition(awv1beta2.ConditionDeletingResources))...), legacyPod(corev1.PodFailed), false, awv1beta2.PhaseFailed, 0, []string{awv1beta2.ConditionUnhealthy}},
	} {
		t.Run(name, func(t *testing.T) {
			aw := newAppWrapper([]string{podJSON("a")}, tc.stored)
			aw.Spec.Suspend = tc.suspend
			f := newFixture(t, aw)
			if tc.pod != nil {
				f = newFixture(t, aw, tc.pod)
			}
			crashed := false
			f.reconcileWithCrash(&crashed)
			got := f.get()
			status, err := json.Marshal(got.Status)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Phase != tc.want || len(f.createdUIDs["a"]) != tc.wantCreated {
				t.Errorf("got phase %s and %d created objects, want %s and %d; status %s", got.Status.Phase, len(f.createdUIDs["a"]), tc.want, tc.wantCreated, status)
			}
			var trueConditions []string
			for _, conditionType := range []string{quotaReserved, resourcesDeployed, awv1beta2.ConditionPodsReady, awv1beta2.ConditionUnhealthy, awv1beta2.ConditionDeletingResources} {
				if meta.IsStatusConditionTrue(got.Status.Conditions, conditionType) {
					trueConditions = append(trueConditions, conditionType)
				}
			}
			if !slices.Equal(trueConditions, tc.wantTrue) {
				t.Errorf("got conditions %q True, want %q; status %s", trueConditions, tc.wantTrue, status)
			}
			if isTerminal := tc.want == awv1beta2.PhaseSucceeded || tc.want == awv1beta2.PhaseFailed; isTerminal && got.Status.CompletionTime == nil {
				t.Errorf("want a completion time; status %s", status)
			}
			if sets := got.Status.ComponentStatus[0].PodSets; len(sets) != 1 || sets[0].Path != "template" {
				t.Errorf("got pod sets %+v, want one with path template", sets)
			}
		})
	}
}

// The deletion of an AppWrapper continues from the phase Terminating that the CodeFlare operator stored.
func TestLegacyDeletionIsContinued(t *testing.T) {
	aw := newAppWrapper([]string{podJSON("a")}, withLegacyStatus(awv1beta2.PhaseTerminating, awv1beta2.ReasonComponentCreated,
		rules.NewCondition(resourcesDeployed, metav1.ConditionTrue, "Resuming", ""), rules.NewCondition(quotaReserved, metav1.ConditionTrue, "Resuming", "")))
	aw.DeletionTimestamp = &metav1.Time{Time: noon}
	f := newFixture(t, aw, legacyPod(corev1.PodRunning))
	crashed := false
	f.reconcileWithCrash(&crashed)
	if err := f.server.Get(t.Context(), awKey, aw); !apierrors.IsNotFound(err) || countRequests(f.writes, "delete Pod a") != 1 {
		t.Errorf("got error %v, writes %q, want the pod and the AppWrapper deleted", err, f.writes)
	}
}

// Stored pod sets are not recomputed from the template.
func TestStoredPodSetsAreTrusted(t *testing.T) {
	aw := newAppWrapper([]string{podJSON("a")}, withLegacyStatus(awv1beta2.PhaseRunning, awv1beta2.ReasonComponentCreated, rules.NewCondition(resourcesDeployed, metav1.ConditionTrue, "Resuming", ""), rules.NewCondition(quotaReserved, metav1.ConditionTrue, "Resuming", "")))
	aw.Status.ComponentStatus[0].PodSets[0].Replicas = new(int32(2))
	f := newFixture(t, aw, legacyPod(corev1.PodRunning))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	facts, err := f.collectFacts(t.Context(), aw)
	if err != nil || facts.Expected() != 2 {
		t.Errorf("got %d expected pods, error %v, want 2", facts.Expected(), err)
	}
}

// AppWrappers of another controller or in an unknown phase are not changed.
func TestAppWrappersOfOtherControllersAreIgnored(t *testing.T) {
	for name, change := range map[string]func(*awv1beta2.AppWrapper){
		"another controller": func(aw *awv1beta2.AppWrapper) { aw.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") },
		"unknown phase":      withLegacyStatus("Hibernating", ""),
	} {
		f := newFixture(t, newAppWrapper([]string{podJSON("a")}, change))
		if err := f.reconcileUntilWait(time.Second); err != nil || len(f.writes)+len(f.reads) != 0 {
			t.Errorf("%s: got error %v, writes %q, reads %q, want none", name, err, f.writes, f.reads)
		}
	}
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	if _, err := f.base.Reconcile(t.Context(), requestFor("deleted")); err != nil {
		t.Errorf("deleted AppWrapper: got error %v, want none", err)
	}
}

// The memory drops the state of a deleted AppWrapper.
func TestMemoryDropsDeletedAppWrapper(t *testing.T) {
	f := newFixture(t, newAppWrapper([]string{podJSON("a")}))
	f.reconcileToPhase(awv1beta2.PhaseRunning)
	if object, _ := f.memory.component("aw-uid", 0); object.uid == "" || len(f.memory.states) != 1 {
		t.Fatalf("got states %+v, want one with the object of the component", f.memory.states)
	}
	if err := f.server.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}
	crashed := false
	f.reconcileWithCrash(&crashed)
	if len(f.memory.states) != 0 {
		t.Errorf("got states %+v, want none", f.memory.states)
	}
	if _, succeeded := f.memory.component(types.UID("aw-uid"), 0); succeeded {
		t.Error("the component of an unknown AppWrapper has succeeded")
	}
}
