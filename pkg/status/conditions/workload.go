package conditions

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Reasons of a RolloutState.
const (
	ReasonRolledOut           = "RolledOut"                // all replicas are new and available
	ReasonScaledToZero        = "ScaledToZero"             // rolled out, with no replica wanted
	ReasonNotObserved         = "RolloutNotObserved"       // the Deployment controller has not seen the last change
	ReasonUpdating            = "RolloutUpdating"          // replicas of the new template are being created
	ReasonReplicasTerminating = "OldReplicasTerminating"   // replicas of the old template still exist
	ReasonNotAvailable        = "ReplicasNotAvailable"     // new replicas exist and are not available yet
	ReasonReplicaFailure      = "ReplicaFailure"           // pods cannot be created
	ReasonDeadlineExceeded    = "ProgressDeadlineExceeded" // no progress within progressDeadlineSeconds
)

// RolloutState is the state of a Deployment's rollout.
type RolloutState struct {
	// Ready is true when `kubectl rollout status` would report success.
	Ready bool
	// Failed is true when waiting alone is not going to help: pods cannot be created, or the deadline passed.
	Failed bool
	// Serving is true when at least one replica, new or old, is available to clients.
	Serving bool
	// Desired is the wanted number of replicas, ReadyReplicas how many pass their readiness probe.
	Desired, ReadyReplicas int32
	// Reason is one of the constants of this package, Message a sentence for people, both fit for a condition.
	Reason, Message string
}

// Rollout judges a Deployment as `kubectl rollout status` does, and adds the reason when it cannot continue. Numbers in
// the status are trusted only when they belong to the present generation.
func Rollout(d *appsv1.Deployment) RolloutState {
	state := RolloutState{
		Desired:       ptr.Deref(d.Spec.Replicas, 1), // the API's default
		ReadyReplicas: d.Status.ReadyReplicas,
		Serving:       d.Status.AvailableReplicas > 0,
	}
	state.Reason, state.Message = rollout(d, state.Desired)
	state.Ready = state.Reason == ReasonRolledOut || state.Reason == ReasonScaledToZero
	state.Failed = state.Reason == ReasonReplicaFailure || state.Reason == ReasonDeadlineExceeded
	return state
}

func rollout(d *appsv1.Deployment, desired int32) (reason, message string) {
	failure := OfDeployment(d, appsv1.DeploymentReplicaFailure)
	switch status := d.Status; {
	case status.ObservedGeneration < d.Generation:
		return ReasonNotObserved, "the last change of the Deployment is being taken up"
	case failure.Status == corev1.ConditionTrue:
		return ReasonReplicaFailure, "pods cannot be created: " + Refusal(failure.Message)
	case OfDeployment(d, appsv1.DeploymentProgressing).Reason == ReasonDeadlineExceeded:
		return ReasonDeadlineExceeded, "the rollout made no progress within its deadline"
	case status.UpdatedReplicas < desired:
		return ReasonUpdating, "new replicas are being created"
	case status.Replicas > status.UpdatedReplicas:
		return ReasonReplicasTerminating, "old replicas are pending termination"
	case status.AvailableReplicas < status.UpdatedReplicas:
		return ReasonNotAvailable, notAvailable(d)
	case desired == 0:
		return ReasonScaledToZero, "the Deployment is scaled to zero replicas"
	default:
		return ReasonRolledOut, "all replicas are up to date and available"
	}
}

func notAvailable(d *appsv1.Deployment) string {
	if d.Status.ReadyReplicas >= d.Status.UpdatedReplicas {
		return "replicas are ready and have to stay so for minReadySeconds"
	}
	return "replicas are not ready yet"
}

// Cause says in one line why the pods of a Deployment do not run, as Diagnose does, or are refused; "" when neither shows.
func Cause(d *appsv1.Deployment, pods []corev1.Pod) string {
	if state := Rollout(d); state.Reason == ReasonReplicaFailure {
		return state.Message
	}
	return Diagnose(pods)
}

// Fields are the fields of a spec in which the resources of containers are set, by the names of the containers.
type Fields map[string]string

var (
	missingResources = regexp.MustCompile(`must specify .* for: .*`)
	containersOf     = regexp.MustCompile(`for: ([a-z0-9-]+(?:,[a-z0-9-]+)*)`)
	boundedResources = regexp.MustCompile(`per (?:Container|Pod)|\.resources\.`)
)

// Cause is [Cause], with the fields that mend it where a quota or a LimitRange refuses the resources of pods.
func (f Fields) Cause(d *appsv1.Deployment, pods []corev1.Pod) string {
	cause := Cause(d, pods)
	if Rollout(d).Reason != ReasonReplicaFailure {
		return cause
	}
	var fields []string
	for _, found := range containersOf.FindAllStringSubmatch(missingResources.FindString(cause), -1) {
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

// OutOfTime reports whether a rollout has made no progress within its deadline. Until then what keeps it may pass.
func OutOfTime(d *appsv1.Deployment) bool {
	return OfDeployment(d, appsv1.DeploymentProgressing).Status == corev1.ConditionFalse
}

// OfDeployment returns the condition of a type, one without a status when there is none.
func OfDeployment(d *appsv1.Deployment, t appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

var (
	generatedPod = regexp.MustCompile(`^.*pods "[^"]*" is forbidden: `)
	quotaUsed    = regexp.MustCompile(`, used: .*?, limited: `)
)

// Refusal takes the generated pod name and the moving quota counters out of what a controller reports of a pod that was refused.
func Refusal(text string) string {
	text = generatedPod.ReplaceAllString(text, "")
	text = quotaUsed.ReplaceAllString(text, ", limited: ")
	if text == "" {
		return "the cause is unknown, see the events of the ReplicaSet"
	}
	return Clip(text, maxDiagnosis)
}
