package conditions

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// Reasons of a RolloutState.
const (
	ReasonRolledOut           = "RolledOut"                // all replicas are new and available
	ReasonScaledToZero        = "ScaledToZero"             // rolled out with zero desired replicas
	ReasonNotObserved         = "RolloutNotObserved"       // the Deployment controller has not seen the last change
	ReasonUpdating            = "RolloutUpdating"          // replicas of the new template are being created
	ReasonReplicasTerminating = "OldReplicasTerminating"   // replicas of the old template still exist
	ReasonNotAvailable        = "ReplicasNotAvailable"     // new replicas exist and are not available yet
	ReasonReplicaFailure      = "ReplicaFailure"           // pods cannot be created
	ReasonDeadlineExceeded    = "ProgressDeadlineExceeded" // no progress within progressDeadlineSeconds
)

// RolloutState is the state of a Deployment's rollout.
type RolloutState struct {
	// Ready is true if `kubectl rollout status` would report success and pods can be created.
	Ready bool
	// Failed is true if the rollout cannot continue by itself: pods cannot be created, or the deadline was exceeded.
	Failed bool
	// Serving is true if at least one replica, new or old, is available.
	Serving bool
	// Desired is the desired number of replicas, ReadyReplicas the number of ready ones.
	Desired, ReadyReplicas int32
	// Reason is one of the constants above, and Message describes it; both suit a condition.
	Reason, Message string
}

// Rollout evaluates a Deployment like `kubectl rollout status`, and adds the reason why it cannot continue. The reason depends on the
// numbers in the status only if they belong to the current generation.
func Rollout(d *appsv1.Deployment) RolloutState {
	state := RolloutState{
		Desired:       ptr.Deref(d.Spec.Replicas, 1), // the default of the API
		ReadyReplicas: d.Status.ReadyReplicas,
		Serving:       d.Status.AvailableReplicas > 0,
	}
	state.Reason, state.Message = rolloutReason(d, state.Desired)
	state.Ready = state.Reason == ReasonRolledOut || state.Reason == ReasonScaledToZero
	state.Failed = state.Reason == ReasonReplicaFailure || state.Reason == ReasonDeadlineExceeded
	return state
}

func rolloutReason(d *appsv1.Deployment, desired int32) (reason, message string) {
	failure := DeploymentCondition(d, appsv1.DeploymentReplicaFailure)
	switch status := d.Status; {
	case status.ObservedGeneration < d.Generation:
		return ReasonNotObserved, "the Deployment controller has not processed the last change yet"
	case failure.Status == corev1.ConditionTrue:
		return ReasonReplicaFailure, "pods cannot be created: " + StableMessage(failure.Message)
	case DeploymentCondition(d, appsv1.DeploymentProgressing).Reason == ReasonDeadlineExceeded:
		return ReasonDeadlineExceeded, "the rollout made no progress within its deadline: see the Events of its pods"
	case status.UpdatedReplicas < desired:
		return ReasonUpdating, "new replicas are being created"
	case status.Replicas > status.UpdatedReplicas:
		return ReasonReplicasTerminating, "old replicas are pending termination"
	case status.AvailableReplicas < status.UpdatedReplicas && status.ReadyReplicas >= status.UpdatedReplicas:
		return ReasonNotAvailable, "replicas are ready and must stay ready for minReadySeconds"
	case status.AvailableReplicas < status.UpdatedReplicas:
		return ReasonNotAvailable, "replicas are not ready yet"
	case desired == 0:
		return ReasonScaledToZero, "the Deployment is scaled to zero replicas"
	default:
		return ReasonRolledOut, "all replicas are up to date and available"
	}
}

// CurrentPods returns the pods of a Deployment without failed ones that were replaced, such as evicted pods, which remain for a long time.
func CurrentPods(pods []corev1.Pod) []corev1.Pod {
	isFailed := func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }
	if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !isFailed(pod) && pod.DeletionTimestamp.IsZero() }) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), isFailed)
}

// Cause returns why the pods of a Deployment do not run or cannot be created, in one line, or "" if neither is known.
func Cause(d *appsv1.Deployment, pods []corev1.Pod) string {
	if state := Rollout(d); state.Reason == ReasonReplicaFailure {
		return state.Message
	}
	return Diagnose(CurrentPods(pods))
}

// ResourceFields maps the names of containers to the fields of the spec that set their resources.
type ResourceFields map[string]string

var (
	missingResources = regexp.MustCompile(`must specify .* for: .*`)
	containerNames   = regexp.MustCompile(`for: ([a-z0-9-]+(?:,[a-z0-9-]+)*)`)
	boundedResources = regexp.MustCompile(`per (?:Container|Pod)|\.resources\.`)
)

// Cause returns the result of the function [Cause], with the fields to change if a quota or a LimitRange rejects the resources of pods.
func (f ResourceFields) Cause(d *appsv1.Deployment, pods []corev1.Pod) string {
	cause := Cause(d, pods)
	if Rollout(d).Reason != ReasonReplicaFailure {
		return cause
	}
	var fields []string
	for _, found := range containerNames.FindAllStringSubmatch(missingResources.FindString(cause), -1) {
		for container := range strings.SplitSeq(found[1], ",") {
			fields = append(fields, f[container])
		}
	}
	if boundedResources.MatchString(cause) {
		fields = slices.Collect(maps.Values(f))
	}
	slices.Sort(fields)
	if fields = slices.DeleteFunc(slices.Compact(fields), func(field string) bool { return field == "" }); len(fields) == 0 {
		return cause
	}
	return cause + ": set " + strings.Join(fields, ", ")
}

// ProgressDeadlineExceeded reports whether the condition Progressing is False. Before that, problems may be transient.
func ProgressDeadlineExceeded(d *appsv1.Deployment) bool {
	return DeploymentCondition(d, appsv1.DeploymentProgressing).Status == corev1.ConditionFalse
}

// DeploymentCondition returns the condition of a type, or an empty one.
func DeploymentCondition(d *appsv1.Deployment, t appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

var (
	generatedPod = regexp.MustCompile(`^.*(?:pods "[^"]*" is forbidden|Pod "[^"]*" is invalid): `)
	quotaUsed    = regexp.MustCompile(`, used: .*?, limited: `)
	// podSuffix matches the hash of a ReplicaSet and the suffix of one of its pods, in the letters that Kubernetes generates.
	podSuffix = regexp.MustCompile(`(-[bcdfghjklmnpqrstvwxz2456789]{6,10})-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
)

// StableMessage removes generated pod names and quota counters, which differ in each attempt, from the message of a controller about a
// rejected pod.
func StableMessage(text string) string {
	text = podSuffix.ReplaceAllString(generatedPod.ReplaceAllString(text, ""), "$1")
	text = quotaUsed.ReplaceAllString(text, ", limited: ")
	if text == "" {
		return "the cause is unknown, see the events of the ReplicaSet"
	}
	return redact.Clip(text, maxDiagnosisBytes)
}
