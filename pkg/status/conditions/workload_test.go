package conditions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// rolledOut returns a Deployment of n replicas in the steady state, changed by the given functions.
func rolledOut(n int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 5},
		Spec:       appsv1.DeploymentSpec{Replicas: &n},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 5, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func withStatus(change func(*appsv1.DeploymentStatus)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { change(&d.Status) }
}

func withCondition(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return withStatus(func(s *appsv1.DeploymentStatus) {
		s.Conditions = []appsv1.DeploymentCondition{{Type: t, Status: status, Reason: reason, Message: message}}
	})
}

func TestRollout(t *testing.T) {
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		want       RolloutState
	}{
		"rolled out": {
			rolledOut(2),
			RolloutState{Ready: true, Serving: true, Desired: 2, ReadyReplicas: 2, Reason: ReasonRolledOut, Message: "all replicas are up to date and available"},
		},
		"default number of replicas": {
			rolledOut(1, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }),
			RolloutState{Ready: true, Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonRolledOut, Message: "all replicas are up to date and available"},
		},
		"scaled to zero": {
			rolledOut(0),
			RolloutState{Ready: true, Reason: ReasonScaledToZero, Message: "the Deployment is scaled to zero replicas"},
		},
		"created": {
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}},
			RolloutState{Desired: 1, Reason: ReasonNotObserved, Message: "the Deployment controller has not processed the last change yet"},
		},
		// [D18] After a change of the spec, the status still describes the previous generation.
		"unobserved change": {
			rolledOut(1, func(d *appsv1.Deployment) { d.Generation++ }),
			RolloutState{Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonNotObserved, Message: "the Deployment controller has not processed the last change yet"},
		},
		"unobserved change after a failure": {
			rolledOut(1, withCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, ReasonDeadlineExceeded, ""),
				func(d *appsv1.Deployment) { d.Generation++ }),
			RolloutState{Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonNotObserved, Message: "the Deployment controller has not processed the last change yet"},
		},
		"old pods are available during a rollout": {
			rolledOut(1, withStatus(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 0 })),
			RolloutState{Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonUpdating, Message: "new replicas are being created"},
		},
		"old pods are terminating": {
			rolledOut(1, withStatus(func(s *appsv1.DeploymentStatus) { s.Replicas = 2 })),
			RolloutState{Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonReplicasTerminating, Message: "old replicas are pending termination"},
		},
		"new pods are not ready": {
			rolledOut(1, withStatus(func(s *appsv1.DeploymentStatus) { s.ReadyReplicas, s.AvailableReplicas = 0, 0 })),
			RolloutState{Desired: 1, Reason: ReasonNotAvailable, Message: "replicas are not ready yet"},
		},
		"new pods have not been ready for minReadySeconds": {
			rolledOut(1, withStatus(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 })),
			RolloutState{Desired: 1, ReadyReplicas: 1, Reason: ReasonNotAvailable, Message: "replicas are ready and must stay ready for minReadySeconds"},
		},
		"progress deadline exceeded": {
			rolledOut(1, withCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, ReasonDeadlineExceeded, `ReplicaSet "x-5b6c" has timed out`),
				withStatus(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas, s.ReadyReplicas = 0, 0 })),
			RolloutState{Failed: true, Desired: 1, Reason: ReasonDeadlineExceeded, Message: "the rollout made no progress within its deadline: see the Events of its pods"},
		},
		"pods rejected by a quota": {
			rolledOut(1, withCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate",
				`pods "mlflow-6d5f9c7b8-x2x4z" is forbidden: exceeded quota: small, requested: cpu=2,memory=1Gi, used: cpu=7,memory=3Gi, limited: cpu=8,memory=4Gi`),
				withStatus(func(s *appsv1.DeploymentStatus) {
					*s = appsv1.DeploymentStatus{ObservedGeneration: 5, Conditions: s.Conditions}
				})),
			RolloutState{Failed: true, Desired: 1, Reason: ReasonReplicaFailure,
				Message: "pods cannot be created: exceeded quota: small, requested: cpu=2,memory=1Gi, limited: cpu=8,memory=4Gi"},
		},
		"pods rejected for an unknown cause": {
			rolledOut(1, withCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "")),
			RolloutState{Failed: true, Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonReplicaFailure,
				Message: "pods cannot be created: the cause is unknown, see the events of the ReplicaSet"},
		},
		"resolved failure": {
			rolledOut(1, withCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionFalse, "", "")),
			RolloutState{Ready: true, Serving: true, Desired: 1, ReadyReplicas: 1, Reason: ReasonRolledOut, Message: "all replicas are up to date and available"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Rollout(tc.deployment)); diff != "" {
				t.Errorf("RolloutState (-want +got):\n%s", diff)
			}
		})
	}
}

// Without the condition ReplicaFailure, which kubectl ignores, Rollout is ready if and only if kubectl rollout status reports success.
func TestRolloutMatchesKubectl(t *testing.T) {
	replicas := rapid.Int32Range(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		d := rolledOut(replicas.Draw(t, "desired"), withStatus(func(s *appsv1.DeploymentStatus) {
			s.ObservedGeneration = rapid.Int64Range(4, 6).Draw(t, "observed")
			s.Replicas = replicas.Draw(t, "replicas")
			s.UpdatedReplicas = replicas.Draw(t, "updated")
			s.ReadyReplicas = replicas.Draw(t, "ready")
			s.AvailableReplicas = replicas.Draw(t, "available")
			s.Conditions[0].Reason = rapid.SampledFrom([]string{"NewReplicaSetAvailable", ReasonDeadlineExceeded}).Draw(t, "progress")
		}))
		s := d.Status
		kubectl := d.Generation <= s.ObservedGeneration && s.Conditions[0].Reason != ReasonDeadlineExceeded &&
			s.UpdatedReplicas >= *d.Spec.Replicas && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
		got := Rollout(d)
		if got.Ready != kubectl {
			t.Fatalf("got ready %t, want %t as in kubectl rollout status, for %+v", got.Ready, kubectl, s)
		}
		if got.Reason == "" || got.Message == "" || (got.Ready && got.Failed) {
			t.Fatalf("got %+v, want a reason, a message and not both ready and failed", got)
		}
	})
}

// [BR-F3] The controller retries with another pod name, which must not change the status.
func TestStableMessageOmitsGeneratedNames(t *testing.T) {
	for message, want := range map[string]string{
		`pods "mlflow-6d4cf56db6-NAME" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`: "exceeded quota: q, requested: pods=1, limited: pods=3",
		`Pod "mlflow-6d4cf56db6-NAME" is invalid: spec.containers[0].image: Required value`:                               "spec.containers[0].image: Required value",
		`admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/team/mlflow-6d4cf56db6-NAME was blocked`: `admission webhook "validate.kyverno.svc-fail" denied the request: ` +
			"resource Pod/team/mlflow-6d4cf56db6 was blocked",
		`admission webhook "my-policy-check" denied the request: name mlflow-NAME`: `admission webhook "my-policy-check" denied the request: name mlflow-NAME`,
	} {
		first, second := strings.ReplaceAll(message, "6-NAME", "6-x7k2p"), strings.ReplaceAll(message, "6-NAME", "6-bcdfg")
		if got := StableMessage(first); got != want || StableMessage(second) != got {
			t.Errorf("got %q and %q, want %q", got, StableMessage(second), want)
		}
	}
}

func TestResourceErrorNamesFields(t *testing.T) {
	fields := ResourceFields{"server": "spec.rest.resources", "proxy": "spec.proxy.resources"}
	for message, want := range map[string]string{
		`failed quota: q: must specify limits.cpu for: proxy,server; limits.memory for: proxy`:                                             ": set spec.proxy.resources, spec.rest.resources",
		`failed quota: q: must specify limits.cpu for: proxy`:                                                                              ": set spec.proxy.resources",
		`failed quota: q: must specify limits.cpu for: injected`:                                                                           "",
		`minimum cpu usage per Container is 200m, but request is 100m`:                                                                     ": set spec.proxy.resources, spec.rest.resources",
		`Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "100m": must be less than or equal to cpu limit of 50m`: ": set spec.proxy.resources, spec.rest.resources",
		`exceeded quota: q, requested: cpu=1, limited: cpu=0`:                                                                              "",
		`violates PodSecurity "restricted:latest": unrestricted capabilities`:                                                              "",
	} {
		d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "a-b" is forbidden: ` + message,
		}}}}
		cause := Cause(d, nil)
		if got := fields.Cause(d, nil); got != cause+want {
			t.Errorf("got %q, want %q", got, cause+want)
		}
	}
	if got := fields.Cause(&appsv1.Deployment{}, []corev1.Pod{{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "must specify for: server",
	}}}}}); strings.Contains(got, "set spec") {
		t.Errorf("unschedulable pod: got %q, want no fields", got)
	}
}

// Evicted pods remain for a long time after they were replaced.
func TestCauseIgnoresReplacedPods(t *testing.T) {
	evicted := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}}
	current := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
	}}}}
	terminating := *current.DeepCopy()
	terminating.DeletionTimestamp = new(metav1.Now())
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"replaced":                   {[]corev1.Pod{evicted, current}, "cannot be pulled"},
		"not replaced":               {[]corev1.Pod{evicted}, "evicted"},
		"replacement is terminating": {[]corev1.Pod{evicted, terminating}, "evicted"},
	} {
		if got := Cause(&appsv1.Deployment{}, test.pods); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
