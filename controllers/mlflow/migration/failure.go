package migration

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// Failure describes how a Job failed. It never contains the termination message of a container, which may contain a password.
type Failure struct {
	// Terminal is true if a retry would fail in the same way.
	Terminal bool
	Message  string
}

// Classify returns the failure of a Job from its newest pod, or from the conditions of the Job.
func Classify(job *batchv1.Job, pods []corev1.Pod, supported string) Failure {
	if len(pods) > 0 {
		if f, found := podFailure(newestPod(pods), descriptionOf(job), supported); found {
			return f
		}
	}
	return conditionFailure(job, supported)
}

// FailedAttemptMessage returns why the last attempt of an unfinished Job failed, or "".
func FailedAttemptMessage(job *batchv1.Job, pods []corev1.Pod, supported string) string {
	failed := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodFailed })
	if len(failed) == 0 {
		return ""
	}
	if f, found := podFailure(newestPod(failed), descriptionOf(job), supported); found {
		return "an attempt failed (" + f.Message + "), and another follows; see the log of the failed pod"
	}
	return "an attempt failed, and another follows; see the log of the failed pod"
}

// ReportOf returns the exit code and report of the program of a finished Job from its newest pod. Without a terminated container, the code
// is from the conditions of the Job or 0, and the report is empty.
func ReportOf(job *batchv1.Job, pods []corev1.Pod) (code int32, report resources.ImageReport) {
	if len(pods) > 0 {
		for _, status := range newestPod(pods).Status.ContainerStatuses {
			if terminated := status.State.Terminated; terminated != nil && status.Name == resources.MigrationContainer {
				return terminated.ExitCode, resources.ParseImageReport(terminated)
			}
		}
	}
	return exitCodeInCondition(job), report
}

func newestPod(pods []corev1.Pod) *corev1.Pod {
	pod := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &pod
}

// descriptionOf returns the purpose of a Job, for messages.
func descriptionOf(job *batchv1.Job) string {
	if _, isCheck := job.Annotations[resources.CheckForAnnotation]; isCheck {
		return "check Job"
	}
	return "migration Job"
}

// podFailure returns the failure of a pod of the described Job from its terminatedState, and whether there is such a state.
func podFailure(pod *corev1.Pod, description, supported string) (Failure, bool) {
	terminated := terminatedState(pod)
	if terminated == nil {
		return Failure{}, false
	}
	if text, terminal, known := resources.MigrationExit(terminated.ExitCode, resources.ParseImageReport(terminated), supported); known {
		return Failure{Terminal: terminal, Message: text}, true
	}
	reason := terminated.Reason
	if reason == "Error" {
		reason = "" // it only repeats that there is an exit code
	}
	code := fmt.Sprintf("%s container exited with code %d", description, terminated.ExitCode)
	return Failure{Message: cmp.Or(pod.Status.Reason, reason, code)}, true
}

// terminatedState returns the state of the terminated migration container, or of another container that failed, or nil.
func terminatedState(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	var failed *corev1.ContainerStateTerminated
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		switch terminated := status.State.Terminated; {
		case terminated == nil:
		case status.Name == resources.MigrationContainer:
			return terminated
		case terminated.ExitCode != 0:
			failed = terminated
		}
	}
	return failed
}

// exitCodeInMessage matches the condition message of a Job that failed by a rule of its pod failure policy.
var exitCodeInMessage = regexp.MustCompile(`failed with exit code (\d+) matching FailJob rule`)

// exitCodeInCondition returns the exit code in the condition of a Job that failed by its pod failure policy, or 0.
func exitCodeInCondition(job *batchv1.Job) int32 {
	condition := FailedCondition(job)
	if condition == nil || condition.Reason != batchv1.JobReasonPodFailurePolicy {
		return 0
	}
	found := exitCodeInMessage.FindStringSubmatch(condition.Message)
	if found == nil {
		return 0
	}
	code, err := strconv.ParseInt(found[1], 10, 32)
	if err != nil {
		return 0
	}
	return int32(code)
}

// conditionFailure returns the failure of a Job from its condition Failed and its status.
func conditionFailure(job *batchv1.Job, supported string) Failure {
	condition := FailedCondition(job)
	if text, terminal, known := resources.MigrationExit(exitCodeInCondition(job), resources.ImageReport{}, supported); known {
		return Failure{Terminal: terminal, Message: text}
	}
	text := descriptionOf(job) + " failed"
	if job.Status.Failed > 0 {
		text += fmt.Sprintf(" after %d attempt(s)", job.Status.Failed)
	}
	if condition != nil {
		text = cmp.Or(condition.Message, condition.Reason, text)
	}
	return Failure{Message: text}
}

// PhaseOf returns the phase of a Job. A Job with only the condition FailureTarget is running, because its pods are still terminating.
func PhaseOf(job *batchv1.Job) jobPhase {
	switch {
	case FailedCondition(job) != nil:
		return JobFailed
	case job.Status.Succeeded > 0:
		return JobSucceeded
	default:
		return JobRunning
	}
}

// FailedCondition returns the condition Failed of a Job if it is True, or nil.
func FailedCondition(job *batchv1.Job) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// IsMigrating reports whether the migration container of an unfinished Job runs or has just finished. Failed pods are ignored: the
// Job may be replaced before it creates another pod.
func IsMigrating(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		if pod.Status.Phase == corev1.PodFailed {
			return false
		}
		return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == resources.MigrationContainer && (s.State.Running != nil || s.State.Terminated != nil)
		})
	})
}
