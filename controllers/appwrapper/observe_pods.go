package appwrapper

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// maxReportedPods limits the pods in a failure report.
	maxReportedPods = 10
	// labelJobSet selects the pods of a JobSet, because their owner is a Job.
	labelJobSet = "jobset.sigs.k8s.io/jobset-name"
)

// nodeHealth is the part of nodes.Nodes that podObserver uses.
type nodeHealth interface {
	NoExecute(node string) sets.Set[string]
}

// podObserver counts the pods of an AppWrapper.
type podObserver struct {
	pods []corev1.Pod
	// createdAt is the creation time of the AppWrapper: older pods belong to a previous AppWrapper of the same name. It is zero if a
	// component isRestored, because a restore may create pods first.
	createdAt metav1.Time
	// componentDone reports whether a pod belongs to a component that is done.
	componentDone func(*corev1.Pod) bool
	terms         rules.Terms
	nodes         nodeHealth
}

func (p podObserver) observe() rules.PodFacts {
	facts := rules.PodFacts{All: len(p.pods)}
	var relevant []corev1.Pod
	for i := range p.pods {
		pod := &p.pods[i]
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			facts.Active++
		}
		if !pod.CreationTimestamp.Before(&p.createdAt) && !p.componentDone(pod) {
			relevant = append(relevant, *pod)
			p.countPod(pod, &facts)
		}
	}
	slices.Sort(facts.NoExecute)
	facts.NoExecute = slices.Compact(facts.NoExecute)
	facts.Report = failureReport(relevant)
	facts.Diagnosis = conditions.Diagnose(relevant)
	return facts
}

func (p podObserver) countPod(pod *corev1.Pod, facts *rules.PodFacts) {
	switch pod.Status.Phase {
	case corev1.PodPending:
		facts.Pending++
	case corev1.PodRunning:
		if pod.DeletionTimestamp != nil {
			return
		}
		facts.Running++
		if p.nodes != nil && requestsAny(pod, p.nodes.NoExecute(pod.Spec.NodeName)) {
			facts.NoExecute = append(facts.NoExecute, pod.Spec.NodeName)
		}
	case corev1.PodSucceeded:
		facts.Succeeded++
	case corev1.PodFailed:
		facts.Failed++
		facts.Terminal = facts.Terminal || hasTerminalExitCode(pod, p.terms)
	}
}

// requestsAny reports whether a regular container requests one of the resources.
func requestsAny(pod *corev1.Pod, resources sets.Set[string]) bool {
	for name := range resources {
		for _, c := range pod.Spec.Containers {
			request, limit := c.Resources.Requests[corev1.ResourceName(name)], c.Resources.Limits[corev1.ResourceName(name)]
			if !request.IsZero() || !limit.IsZero() {
				return true
			}
		}
	}
	return false
}

// containerStatuses returns the statuses of init containers and containers.
func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// hasTerminalExitCode reports whether a container of a failed pod terminated with an exit code after which no retry is allowed.
func hasTerminalExitCode(pod *corev1.Pod, terms rules.Terms) bool {
	return slices.ContainsFunc(containerStatuses(pod), func(status corev1.ContainerStatus) bool {
		terminated := status.State.Terminated
		return terminated != nil && terminated.ExitCode != 0 && (terms.TerminalExitCodes.Has(terminated.ExitCode) ||
			len(terms.RetryableExitCodes) > 0 && !terms.RetryableExitCodes.Has(terminated.ExitCode))
	})
}

// failureReport lists containers with their last exit code, unless it is 0, and other failed pods. Pods are sorted by name: equal states
// produce equal reports.
func failureReport(pods []corev1.Pod) string {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var lines []string
	for i := range sorted {
		if line := podFailure(&sorted[i]); line != "" {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - maxReportedPods; more > 0 {
		lines = append(lines[:maxReportedPods], fmt.Sprintf("and %d more pods", more))
	}
	return strings.Join(lines, "; ")
}

func podFailure(pod *corev1.Pod) string {
	var parts []string
	for _, status := range containerStatuses(pod) {
		terminated := status.State.Terminated
		if terminated == nil {
			terminated = status.LastTerminationState.Terminated
		}
		if terminated == nil || terminated.ExitCode == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("container %s ended with exit code %d%s", status.Name, terminated.ExitCode, inParentheses(terminated.Reason, terminated.Message)))
	}
	if len(parts) == 0 {
		if pod.Status.Phase != corev1.PodFailed {
			return ""
		}
		parts = append(parts, "failed"+inParentheses(pod.Status.Reason, pod.Status.Message))
	}
	node := ""
	if pod.Spec.NodeName != "" {
		node = " on node " + pod.Spec.NodeName
	}
	return "pod " + pod.Name + node + ": " + strings.Join(parts, ", ")
}

// maxCauseBytes limits the reason and message of a container or pod in a failure report.
const maxCauseBytes = 120

// inParentheses returns reason and message in parentheses after a space, or "" if both are empty.
func inParentheses(reason, message string) string {
	text := strings.TrimSpace(reason + " " + strings.Join(strings.Fields(message), " "))
	if text == "" {
		return ""
	}
	return " (" + redact.Clip(text, maxCauseBytes) + ")"
}

// podSelector selects the pods of a component.
type podSelector struct {
	kind, name string
	// uid is the UID of the component, if known.
	uid types.UID
	// rayCluster is the name of the RayCluster of a RayJob.
	rayCluster string
	// isRestored reports whether the component is older than the AppWrapper or was adopted, as after a restore from a backup.
	isRestored bool
}

// matches reports whether a pod belongs to the component: by its owner, or by a label that the kind sets.
func (s podSelector) matches(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && (s.uid != "" && owner.UID == s.uid || owner.Kind == s.kind && owner.Name == s.name) {
		return true
	}
	switch s.kind {
	case "JobSet":
		return pod.Labels[labelJobSet] == s.name
	case rayJobKind.Kind: // Ray pods have the label of their cluster; the submitter belongs to a Job with the name of the RayJob
		return s.rayCluster != "" && pod.Labels[raycluster.LabelCluster] == s.rayCluster ||
			owner != nil && owner.Kind == "Job" && owner.Name == s.name
	}
	return false
}
