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

// catalogCause returns the cause for models with a label.
func (env *testEnv) catalogCause(label string) modelmesh.Cause {
	env.Helper()
	cause, known, err := env.Cause(env.Context(), "ns", label)
	if err != nil || !known {
		env.Fatalf("known %v, %v", known, err)
	}
	return cause
}

// [BR-F8]
func TestFindCause(t *testing.T) {
	broken := localRuntime("broken", "onnx")
	broken.Spec.GRPCEndpoint = nil
	w := newTestEnv(t, localRuntime("local", "sklearn"), broken, predictorOf("m", "sklearn"))
	if _, known, err := w.Cause(t.Context(), "ns", "mt:sklearn"); known || err != nil {
		t.Errorf("known %v before the first reconcile, %v", known, err)
	}
	var changes int
	w.Causes.Subscribe(t.Context(), func(string) { changes++ })
	w.reconcileUntilStable("ns")
	if got := w.catalogCause("mt:sklearn"); got != (modelmesh.Cause{}) {
		t.Errorf("cause %+v of a Deployment without conditions", got)
	}
	if got := w.catalogCause("mt:onnx"); !got.Invalid || !strings.HasPrefix(got.Message, "runtime broken: ") {
		t.Errorf("%+v of an invalid runtime", got)
	}
	if changes == 0 {
		t.Error("no change of the causes was reported")
	}
	d := w.deploymentOf("local")
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "x" is forbidden: exceeded quota: tight`,
	}}}
	w.updateStatus(d)
	w.reconcileUntilStable("ns")
	if got := w.catalogCause("mt:sklearn"); got.Invalid || got.Message != "runtime local: pods cannot be created: exceeded quota: tight" {
		t.Errorf("%+v of pods that are refused", got)
	}
	d.Status.Conditions = nil
	w.updateStatus(d)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: d.Spec.Selector.MatchLabels}}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient cpu.",
	}}
	if err := w.api.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.reconcileUntilStable("ns")
	if got := w.catalogCause("mt:sklearn"); !strings.Contains(got.Message, "Insufficient cpu") {
		t.Errorf("%+v of a pod that has no node", got)
	}
	reported := changes
	w.reconcileUntilStable("ns")
	if changes != reported {
		t.Error("unchanged causes were reported again")
	}
	d.Status.AvailableReplicas = 1
	w.updateStatus(d)
	w.reconcileUntilStable("ns")
	if got := w.catalogCause("mt:sklearn"); got != (modelmesh.Cause{}) {
		t.Errorf("%+v of a runtime that serves", got)
	}
}

func (env *testEnv) updateStatus(o client.Object) {
	env.Helper()
	if err := env.api.Status().Update(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

func TestCauseOfMultipleRuntimes(t *testing.T) {
	w := newTestEnv(t, localRuntime("a", "onnx"), localRuntime("b", "onnx"), localRuntime("c", "sklearn"))
	invalid, refused := modelmesh.Cause{Message: "no container", Invalid: true}, modelmesh.Cause{Message: "quota"}
	for _, c := range []struct {
		causes map[string]modelmesh.Cause
		want   modelmesh.Cause
	}{
		{map[string]modelmesh.Cause{"a": invalid, "b": invalid}, modelmesh.Cause{Message: "runtime a: no container", Invalid: true}},
		{map[string]modelmesh.Cause{"a": invalid, "b": refused}, modelmesh.Cause{Message: "runtime b: quota"}},
		{map[string]modelmesh.Cause{"a": refused, "b": invalid}, modelmesh.Cause{Message: "runtime a: quota"}},
		{map[string]modelmesh.Cause{"a": refused}, modelmesh.Cause{}}, // b may only be starting
		{map[string]modelmesh.Cause{"c": refused}, modelmesh.Cause{}},
	} {
		w.Causes.Set("ns", c.causes)
		if got := w.catalogCause("mt:onnx"); got != c.want {
			t.Errorf("%+v of %+v, want %+v", got, c.causes, c.want)
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
		"a pod that cannot pull":   podProblemChanged().Update(event.UpdateEvent{ObjectOld: pod("ContainerCreating"), ObjectNew: pod("ImagePullBackOff")}),
		"created with a problem":   podProblemChanged().Create(event.CreateEvent{Object: pod("ErrImagePull")}),
		"a Deployment that serves": availabilityChanged().Update(event.UpdateEvent{ObjectOld: deployment(0), ObjectNew: deployment(1)}),
	} {
		if !got {
			t.Errorf("%s is not seen", name)
		}
	}
	for name, got := range map[string]bool{
		"a pod that starts":        podProblemChanged().Create(event.CreateEvent{Object: pod("ContainerCreating")}),
		"another available pod":    availabilityChanged().Update(event.UpdateEvent{ObjectOld: deployment(1), ObjectNew: deployment(2)}),
		"a pod that starts longer": podProblemChanged().Update(event.UpdateEvent{ObjectOld: pod(""), ObjectNew: pod("ContainerCreating")}),
	} {
		if got {
			t.Errorf("%s causes work", name)
		}
	}
}
