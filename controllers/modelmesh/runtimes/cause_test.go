package runtimes

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// causeFor returns the cause for models with a label.
func (env *testEnv) causeFor(label string) modelmesh.Cause {
	env.Helper()
	cause, known, err := env.Cause(env.Context(), "ns", label)
	if err != nil || !known {
		env.Fatalf("Cause returned known %v, error %v", known, err)
	}
	return cause
}

// [BR-F8]
func TestFindCause(t *testing.T) {
	invalid := newServingRuntime("invalid", "onnx")
	invalid.Spec.GRPCEndpoint = nil
	env := newTestEnv(t, newServingRuntime("local", "sklearn"), invalid, newPredictor("m", "sklearn"))
	if _, known, err := env.Cause(t.Context(), "ns", "mt:sklearn"); known || err != nil {
		t.Errorf("before the first reconcile: known %v, error %v", known, err)
	}
	var changes int
	env.NotServingCauses.Subscribe(t.Context(), func(string) { changes++ })
	env.reconcileUntilStable("ns")
	if got := env.causeFor("mt:sklearn"); got != (modelmesh.Cause{}) {
		t.Errorf("Deployment without conditions: cause %+v, want none", got)
	}
	if got := env.causeFor("mt:onnx"); !got.Invalid || !strings.HasPrefix(got.Message, "runtime invalid: ") {
		t.Errorf("invalid runtime: cause %+v", got)
	}
	if changes == 0 {
		t.Error("the listener was not called")
	}
	d := env.deploymentOf("local")
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "x" is forbidden: exceeded quota: tight`,
	}}}
	env.updateStatus(d)
	env.reconcileUntilStable("ns")
	if got := env.causeFor("mt:sklearn"); got.Invalid || got.Message != "runtime local: pods cannot be created: exceeded quota: tight" {
		t.Errorf("exceeded quota: cause %+v", got)
	}
	d.Status.Conditions = nil
	env.updateStatus(d)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: d.Spec.Selector.MatchLabels}}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient cpu.",
	}}
	if err := env.api.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable("ns")
	if got := env.causeFor("mt:sklearn"); !strings.Contains(got.Message, "Insufficient cpu") {
		t.Errorf("unschedulable pod: cause %+v", got)
	}
	changesBefore := changes
	env.reconcileUntilStable("ns")
	if changes != changesBefore {
		t.Error("the listener was called without a change")
	}
	d.Status.AvailableReplicas = 1
	env.updateStatus(d)
	env.reconcileUntilStable("ns")
	if got := env.causeFor("mt:sklearn"); got != (modelmesh.Cause{}) {
		t.Errorf("available runtime: cause %+v, want none", got)
	}
}

func (env *testEnv) updateStatus(o client.Object) {
	env.Helper()
	if err := env.api.Status().Update(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

func TestCauseOfMultipleRuntimes(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("a", "onnx"), newServingRuntime("b", "onnx"), newServingRuntime("c", "sklearn"))
	invalid, overQuota := modelmesh.Cause{Message: "no container", Invalid: true}, modelmesh.Cause{Message: "quota"}
	for _, c := range []struct {
		causes map[string]modelmesh.Cause
		want   modelmesh.Cause
	}{
		{map[string]modelmesh.Cause{"a": invalid, "b": invalid}, modelmesh.Cause{Message: "runtime a: no container", Invalid: true}},
		{map[string]modelmesh.Cause{"a": invalid, "b": overQuota}, modelmesh.Cause{Message: "runtime b: quota"}},
		{map[string]modelmesh.Cause{"a": overQuota, "b": invalid}, modelmesh.Cause{Message: "runtime a: quota"}},
		{map[string]modelmesh.Cause{"a": overQuota}, modelmesh.Cause{}}, // b may still be starting
		{map[string]modelmesh.Cause{"c": overQuota}, modelmesh.Cause{}},
	} {
		env.NotServingCauses.Set("ns", c.causes)
		if got := env.causeFor("mt:onnx"); got != c.want {
			t.Errorf("cause %+v of %+v, want %+v", got, c.causes, c.want)
		}
	}
}

func TestAvailabilityAndPodPredicates(t *testing.T) {
	pod := func(reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}}}
	}
	deployment := func(available int32) *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
	for name, got := range map[string]bool{
		"image pull fails":         podProblemChanged().Update(event.UpdateEvent{ObjectOld: pod("ContainerCreating"), ObjectNew: pod("ImagePullBackOff")}),
		"pod created with problem": podProblemChanged().Create(event.CreateEvent{Object: pod("ErrImagePull")}),
		"Deployment is available":  availabilityChanged().Update(event.UpdateEvent{ObjectOld: deployment(0), ObjectNew: deployment(1)}),
	} {
		if !got {
			t.Errorf("%s: the predicate dropped the event", name)
		}
	}
	for name, got := range map[string]bool{
		"pod created":          podProblemChanged().Create(event.CreateEvent{Object: pod("ContainerCreating")}),
		"second available pod": availabilityChanged().Update(event.UpdateEvent{ObjectOld: deployment(1), ObjectNew: deployment(2)}),
		"pod still starting":   podProblemChanged().Update(event.UpdateEvent{ObjectOld: pod(""), ObjectNew: pod("ContainerCreating")}),
	} {
		if got {
			t.Errorf("%s: the predicate passed the event", name)
		}
	}
}
