package conditions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxDiagnosisBytes limits the length of a diagnosis.
const maxDiagnosisBytes = 400

// finding is a problem of a pod. Lower ranks are closer to the root cause: an unscheduled pod has not pulled its image either.
type finding struct {
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
	var all []finding
	for i := range pods {
		if pods[i].DeletionTimestamp.IsZero() {
			all = append(all, diagnosePod(&pods[i])...)
		}
	}
	if len(all) == 0 {
		return ""
	}
	worst := slices.MinFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text))
	})
	return Clip(worst.text, maxDiagnosisBytes)
}

func diagnosePod(pod *corev1.Pod) []finding {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	var out []finding
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			out = append(out, finding{rankScheduling, unschedulable(c.Message)})
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "Evicted" {
		cause, _, _ := strings.Cut(oneLine(pod.Status.Message), ". ")
		out = append(out, finding{rankEvicted, "the pod was evicted (" + strings.TrimSuffix(cause, ".") +
			"); raise its requests or free the node"})
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		out = append(out, diagnoseContainer(status)...)
	}
	return out
}

func diagnoseContainer(status corev1.ContainerStatus) []finding {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
			return []finding{{rankImage, fmt.Sprintf("image %q of container %s cannot be pulled; check its name, the registry and the pull secrets",
				status.Image, status.Name)}}
		case "InvalidImageName":
			return []finding{{rankImage, fmt.Sprintf("image %q of container %s is not a valid image name; correct it",
				status.Image, status.Name)}}
		case "CreateContainerConfigError":
			return []finding{{rankConfig, configError(status.Name, waiting.Message)}}
		case "CreateContainerError", "RunContainerError", "StartError", "PreStartHookError", "PostStartHookError":
			return []finding{{rankCreate, fmt.Sprintf(
				"container %s cannot be started (%s); check its command, mounts and security context, and the events of the pod",
				status.Name, waiting.Reason)}}
		}
	}
	return diagnoseCrash(status)
}

// diagnoseCrash evaluates the last termination, so that the result does not change between back-off, start and failure.
func diagnoseCrash(status corev1.ContainerStatus) []finding {
	end := status.State.Terminated
	if end == nil && !status.Ready {
		end = status.LastTerminationState.Terminated
	}
	looping := status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
	switch {
	case end == nil && !looping, end != nil && end.ExitCode == 0 && !looping:
		return nil
	case end == nil:
		return []finding{{rankCrash, fmt.Sprintf("container %s keeps crashing; see its log", status.Name)}}
	case end.Reason == "OOMKilled":
		return []finding{{rankCrash, fmt.Sprintf(
			"container %s was killed because it used more memory than its limit; raise resources.limits.memory", status.Name)}}
	default:
		return []finding{{rankCrash, fmt.Sprintf("container %s ends with exit code %d; see its log", status.Name, end.ExitCode)}}
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

// unschedulable returns the reasons in a message of the scheduler without the numbers of nodes.
func unschedulable(message string) string {
	text := oneLine(message)
	text, _, _ = strings.Cut(text, " preemption: ")
	text = schedulingPrefix.ReplaceAllString(text, "")
	text = schedulingCount.ReplaceAllString(text, "$1")
	text = strings.Trim(schedulingNode.ReplaceAllString(text, "nodes"), " .")
	obstacles := strings.Split(text, ", ")
	slices.Sort(obstacles) // the scheduler sorts by count, which changes
	text = strings.Join(slices.Compact(obstacles), ", ")
	switch {
	case strings.Contains(text, "PersistentVolumeClaim") || strings.Contains(text, "persistentvolumeclaim"):
		return "the pod cannot be scheduled (" + text + "); check the PersistentVolumeClaim and its storage class"
	case text == "" || text == "no nodes available to schedule pods":
		return "the pod cannot be scheduled because no node is available; add nodes"
	default:
		return "the pod cannot be scheduled (" + text + "); free capacity, or change resources, nodeSelector, affinity or tolerations"
	}
}

// oneLine replaces white space by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// PodCreationFailure returns why controllers could not create pods, from the last Event since a time, or "" without such an Event. Most workloads
// have no condition for rejections by quotas, LimitRanges, Pod Security or SecurityContextConstraints. The function about selects workloads.
func PodCreationFailure(events []corev1.Event, since time.Time, about func(name string) bool) string {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		refused := strings.HasPrefix(e.Reason, "FailedCreate") || strings.HasPrefix(e.Reason, "FailedToCreate")
		if refused && about(e.InvolvedObject.Name) && !lastSeen(e).Before(since) && (last == nil || lastSeen(e).After(lastSeen(last))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return "pods cannot be created: " + StableMessage(last.Message)
}

func lastSeen(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}
