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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// maxReported is how many pods a report tells about.
	maxReported = 10
	// labelJobSet names, on a pod, the JobSet that it belongs to through a Job between.
	labelJobSet = "jobset.sigs.k8s.io/jobset-name"
)

// nodeHealth tells which resources of a node running pods should leave, see nodes.Nodes.
type nodeHealth interface {
	NoExecute(node string) sets.Set[string]
}

// podsOf are the pods of an AppWrapper and what is needed to judge them.
type podsOf struct {
	pods []corev1.Pod
	// createdAt is when the AppWrapper was created: older pods belonged to another one of its name. It is zero after a restore, in
	// which pods may come first.
	createdAt metav1.Time
	// componentDone says that a pod belongs to a component that is done.
	componentDone func(*corev1.Pod) bool
	terms         rules.Terms
	nodes         nodeHealth
}

// observe counts.
func (p podsOf) observe() rules.PodFacts {
	out := rules.PodFacts{All: len(p.pods)}
	var concerned []corev1.Pod
	for i := range p.pods {
		pod := &p.pods[i]
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			out.Active++
		}
		if !pod.CreationTimestamp.Before(&p.createdAt) && !p.componentDone(pod) {
			concerned = append(concerned, *pod)
			p.count(pod, &out)
		}
	}
	slices.Sort(out.NoExecute)
	out.NoExecute = slices.Compact(out.NoExecute)
	out.Report = report(concerned)
	out.Diagnosis = conditions.Diagnose(concerned)
	return out
}

func (p podsOf) count(pod *corev1.Pod, out *rules.PodFacts) {
	switch pod.Status.Phase {
	case corev1.PodPending:
		out.Pending++
	case corev1.PodRunning:
		if pod.DeletionTimestamp != nil {
			return
		}
		out.Running++
		if p.nodes != nil && uses(pod, p.nodes.NoExecute(pod.Spec.NodeName)) {
			out.NoExecute = append(out.NoExecute, pod.Spec.NodeName)
		}
	case corev1.PodSucceeded:
		out.Succeeded++
	case corev1.PodFailed:
		out.Failed++
		out.Terminal = out.Terminal || terminalExit(pod, p.terms)
	}
}

// uses tells whether a regular container asks for one of the resources.
func uses(pod *corev1.Pod, resources sets.Set[string]) bool {
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

// statuses are those of all containers that decide about a pod, init containers first.
func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// terminalExit tells whether a container of a failed pod ended with a code after which there is no retry.
func terminalExit(pod *corev1.Pod, terms rules.Terms) bool {
	return slices.ContainsFunc(statuses(pod), func(status corev1.ContainerStatus) bool {
		end := status.State.Terminated
		return end != nil && end.ExitCode != 0 && (terms.TerminalExitCodes.Has(end.ExitCode) ||
			len(terms.RetryableExitCodes) > 0 && !terms.RetryableExitCodes.Has(end.ExitCode))
	})
}

// report names the containers that ended badly, with their last states: of the pods that failed, and of those that crash
// again and again. Pods are in the order of their names, so that equal states give equal reports.
func report(pods []corev1.Pod) string {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var lines []string
	for i := range sorted {
		if line := reportPod(&sorted[i]); line != "" {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - maxReported; more > 0 {
		lines = append(lines[:maxReported], fmt.Sprintf("and %d more pods", more))
	}
	return strings.Join(lines, "; ")
}

func reportPod(pod *corev1.Pod) string {
	var parts []string
	for _, status := range statuses(pod) {
		end := status.State.Terminated
		if end == nil {
			end = status.LastTerminationState.Terminated
		}
		if end == nil || end.ExitCode == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("container %s ended with exit code %d%s", status.Name, end.ExitCode, inBrackets(end.Reason, end.Message)))
	}
	if len(parts) == 0 {
		if pod.Status.Phase != corev1.PodFailed {
			return ""
		}
		parts = append(parts, "failed"+inBrackets(pod.Status.Reason, pod.Status.Message))
	}
	where := ""
	if pod.Spec.NodeName != "" {
		where = " on node " + pod.Spec.NodeName
	}
	return "pod " + pod.Name + where + ": " + strings.Join(parts, ", ")
}

// maxCause bounds what a container or a kubelet says, in bytes.
const maxCause = 120

func inBrackets(reason, message string) string {
	text := strings.TrimSpace(reason + " " + strings.Join(strings.Fields(message), " "))
	if text == "" {
		return ""
	}
	return " (" + conditions.Clip(text, maxCause) + ")"
}

// podOwner is how the pods of a component are known.
type podOwner struct {
	kind, name string
	// uid is that of the component, where it is known.
	uid types.UID
	// rayCluster is the RayCluster that a RayJob runs on.
	rayCluster string
	// restored says that the component is older than the AppWrapper.
	restored bool
}

// owns tells whether a pod is one of the component: by the owner of the pod, or by what its kind is known to set.
func (o podOwner) owns(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && (o.uid != "" && owner.UID == o.uid || owner.Kind == o.kind && owner.Name == o.name) {
		return true
	}
	switch o.kind {
	case "JobSet":
		return pod.Labels[labelJobSet] == o.name
	case rayJobKind.Kind: // Ray pods name their cluster alone; the submitter is the pod of a Job that has the name of the RayJob
		return o.rayCluster != "" && pod.Labels[raycluster.LabelCluster] == o.rayCluster ||
			owner != nil && owner.Kind == "Job" && owner.Name == o.name
	}
	return false
}
