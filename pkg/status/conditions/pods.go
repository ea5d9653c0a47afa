package conditions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// maxDiagnosisBytes limits the length of a diagnosis.
const maxDiagnosisBytes = 400

// podProblem describes why a pod does not run. Lower ranks are closer to the root cause: an unscheduled pod has not pulled its image either.
type podProblem struct {
	rank int
	text string
}

const (
	rankScheduling = iota
	rankEvicted
	rankConfig
	rankImage
	rankCrash
	rankCreate
)

// Diagnose returns why pods do not run and how to fix it, in one line of at most 400 bytes, or "" without a problem. The result does not depend
// on the order or the names of the pods, and contains no counters. Terminating pods are ignored.
func Diagnose(pods []corev1.Pod) string {
	var all []podProblem
	for i := range pods {
		if pods[i].DeletionTimestamp.IsZero() {
			all = append(all, diagnosePod(&pods[i])...)
		}
	}
	if len(all) == 0 {
		return ""
	}
	worst := slices.MinFunc(all, func(a, b podProblem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text))
	})
	return redact.Clip(worst.text, maxDiagnosisBytes)
}

func diagnosePod(pod *corev1.Pod) []podProblem {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	var out []podProblem
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			out = append(out, podProblem{rankScheduling, unschedulable(c.Message)})
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "Evicted" {
		cause, _, _ := strings.Cut(oneLine(pod.Status.Message), ". ")
		out = append(out, podProblem{rankEvicted, "the pod was evicted (" + strings.TrimSuffix(cause, ".") +
			"); raise its requests or free the node"})
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		out = append(out, diagnoseContainer(status)...)
	}
	return out
}

func diagnoseContainer(status corev1.ContainerStatus) []podProblem {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
			return []podProblem{{rankImage, fmt.Sprintf("image %q of container %s cannot be pulled; check its name, the registry and the pull secrets",
				status.Image, status.Name)}}
		case "InvalidImageName":
			return []podProblem{{rankImage, fmt.Sprintf("image %q of container %s is not a valid image name; correct it",
				status.Image, status.Name)}}
		case "CreateContainerConfigError":
			return []podProblem{{rankConfig, configError(status.Name, waiting.Message)}}
		case "CreateContainerError", "RunContainerError", "StartError", "PreStartHookError", "PostStartHookError":
			return []podProblem{{rankCreate, fmt.Sprintf(
				"container %s cannot be started (%s); check its command, mounts and security context, and the events of the pod",
				status.Name, waiting.Reason)}}
		}
	}
	return diagnoseCrash(status)
}

// diagnoseCrash evaluates the last termination, because the current state alternates between waiting, running and terminated.
func diagnoseCrash(status corev1.ContainerStatus) []podProblem {
	terminated := status.State.Terminated
	if terminated == nil && !status.Ready {
		terminated = status.LastTerminationState.Terminated
	}
	isCrashLooping := status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
	switch {
	case terminated == nil && !isCrashLooping, terminated != nil && terminated.ExitCode == 0 && !isCrashLooping:
		return nil
	case terminated == nil:
		return []podProblem{{rankCrash, fmt.Sprintf("container %s keeps crashing; see its log", status.Name)}}
	case terminated.Reason == "OOMKilled":
		return []podProblem{{rankCrash, fmt.Sprintf(
			"container %s was killed because it used more memory than its limit; raise resources.limits.memory", status.Name)}}
	default:
		return []podProblem{{rankCrash, fmt.Sprintf("container %s ends with exit code %d; see its log", status.Name, terminated.ExitCode)}}
	}
}

var missingKey = regexp.MustCompile(`(?i)(secret|configmap) "?([^" ]+)"? not found|couldn't find key (\S+) in (Secret|ConfigMap) (\S+)`)

func configError(container, message string) string {
	m := missingKey.FindStringSubmatch(message)
	switch {
	case m == nil:
		return fmt.Sprintf("container %s cannot be configured: %s", container, oneLine(message))
	case m[1] != "":
		kind := map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[strings.ToLower(m[1])]
		return fmt.Sprintf("container %s needs %s %s, which does not exist; create it", container, kind, m[2])
	default:
		return fmt.Sprintf("container %s needs key %s of %s %s, which does not exist; add it", container, m[3], m[4], m[5])
	}
}

var (
	schedulingPrefix = regexp.MustCompile(`^\d+/\d+ nodes are available: `)
	schedulingCount  = regexp.MustCompile(`(^|, )\d+ `)
	schedulingNode   = regexp.MustCompile(`\bnode\(s\)`)
)

// unschedulable returns the problem in a message of the scheduler, without numbers of nodes, and its fix.
func unschedulable(message string) string {
	text := oneLine(message)
	text, _, _ = strings.Cut(text, " preemption: ")
	text = schedulingPrefix.ReplaceAllString(text, "")
	text = schedulingCount.ReplaceAllString(text, "$1")
	text = strings.Trim(schedulingNode.ReplaceAllString(text, "nodes"), " .")
	reasons := strings.Split(text, ", ")
	slices.Sort(reasons) // the scheduler sorts by count, which changes
	text = strings.Join(slices.Compact(reasons), ", ")
	switch {
	case strings.Contains(text, "PersistentVolumeClaim") || strings.Contains(text, "persistentvolumeclaim"):
		return "the pod cannot be scheduled (" + text + "); check the PersistentVolumeClaim and its storage class"
	case text == "" || text == "no nodes available to schedule pods":
		return "the pod cannot be scheduled because no node is available; add nodes"
	default:
		return "the pod cannot be scheduled (" + text + "); free capacity, or change resources, nodeSelector, affinity or tolerations"
	}
}

// oneLine replaces white space with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// PodCreationFailure returns why controllers could not create pods, from the last Event of a workload since a time, or "" without one. Most
// workloads have no condition for rejections by quotas, LimitRanges, Pod Security or SecurityContextConstraints.
func PodCreationFailure(events []corev1.Event, since time.Time, isWorkload func(name string) bool) string {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		failedCreate := strings.HasPrefix(e.Reason, "FailedCreate") || strings.HasPrefix(e.Reason, "FailedToCreate")
		if failedCreate && isWorkload(e.InvolvedObject.Name) && !lastSeen(e).Before(since) && (last == nil || lastSeen(e).After(lastSeen(last))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return "pods cannot be created: " + StableMessage(last.Message)
}

func lastSeen(e *corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.EventTime.After(last) {
		last = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}
