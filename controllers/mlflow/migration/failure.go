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

// Failure is how a Job failed, in words that may be shown to all readers of the MLflow: what a program
// wrote about its end is never repeated, because it could hold a password.
type Failure struct {
	// Terminal: repetition would end the same way.
	Terminal bool
	// Message for the conditions.
	Message string
}

// Classify looks at the newest pod of a failed Job, and without one at what the Job itself says.
func Classify(job *batchv1.Job, pods []corev1.Pod, supported string) Failure {
	if len(pods) > 0 {
		if f, found := podFailure(newestPod(pods), supported); found {
			return f
		}
	}
	return conditionFailure(job, supported)
}

// FailedAttempt says why the last attempt of an unfinished Job failed; empty when none has.
func FailedAttemptMessage(pods []corev1.Pod, supported string) string {
	ended := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodFailed })
	if len(ended) == 0 {
		return ""
	}
	if f, found := podFailure(newestPod(ended), supported); found {
		return "an attempt failed (" + f.Message + "), and another follows; see the log of its pod"
	}
	return "an attempt failed, and another follows"
}

// FoundBy returns what the program of a Job that has ended found; nothing if its pods are gone, or never ran it.
func ReportFromPods(pods []corev1.Pod) (code int32, found resources.ImageReport) {
	if len(pods) == 0 {
		return 0, found
	}
	for _, status := range newestPod(pods).Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil && status.Name == resources.MigrationContainer {
			return end.ExitCode, resources.ParseImageReport(end)
		}
	}
	return 0, found
}

func newestPod(pods []corev1.Pod) *corev1.Pod {
	pod := slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &pod
}

// podFailure reads the end of the container that migrates, or else of any other.
func podFailure(pod *corev1.Pod, supported string) (Failure, bool) {
	end := terminatedState(pod)
	if end == nil {
		return Failure{}, false
	}
	if text, terminal, known := resources.MigrationExit(end.ExitCode, resources.ParseImageReport(end), supported); known {
		return Failure{Terminal: terminal, Message: text}, true
	}
	reason := end.Reason
	if reason == "Error" {
		reason = "" // it only repeats that there is an exit code
	}
	code := fmt.Sprintf("migration Job container exited with code %d", end.ExitCode)
	return Failure{Message: cmp.Or(pod.Status.Reason, reason, code)}, true
}

func terminatedState(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	var other *corev1.ContainerStateTerminated
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		switch end := status.State.Terminated; {
		case end == nil:
		case status.Name == resources.MigrationContainer:
			return end
		case end.ExitCode != 0: // one that ended well is not what failed
			other = end
		}
	}
	return other
}

// exitInMessage is how Kubernetes reports a container that a rule of the Job's pod failure policy fits.
var exitCodeInMessage = regexp.MustCompile(`failed with exit code (\d+) matching FailJob rule`)

// conditionFailure is for a Job whose pods are gone.
func conditionFailure(job *batchv1.Job, supported string) Failure {
	condition := FailedCondition(job)
	if condition != nil && condition.Reason == batchv1.JobReasonPodFailurePolicy {
		if found := exitCodeInMessage.FindStringSubmatch(condition.Message); found != nil {
			code, err := strconv.ParseInt(found[1], 10, 32)
			if text, terminal, known := resources.MigrationExit(int32(code), resources.ImageReport{}, supported); known && err == nil {
				return Failure{Terminal: terminal, Message: text}
			}
		}
	}
	text := "migration Job failed"
	if job.Status.Failed > 0 {
		text = fmt.Sprintf("migration Job failed after %d attempt(s)", job.Status.Failed)
	}
	if condition != nil {
		text = cmp.Or(condition.Message, condition.Reason, text)
	}
	return Failure{Message: text}
}

// PhaseOf reads the end of a Job from its Failed condition and its count of successes. FailureTarget alone announces a
// failure, while pods are still being ended.
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

// FailedCondition is the condition that says that a Job failed; nil while it did not.
func FailedCondition(job *batchv1.Job) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// RunsProgram reports that one of the pods of an unfinished Job migrates at this moment, or has just done so. A pod that
// failed does nothing any more; the Job that would make another may be replaced.
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
