// Package health evaluates the status of objects of any kind, for people who inspect a cluster.
//
// It uses the rules of kstatus and the ready condition, and special rules for some kinds. It does not read from the cluster. Unknown
// fields of a status are ignored. The state is Unknown if kstatus cannot parse the status.
package health

import (
	"cmp"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// State is the health of an object.
type State string

// States from good to bad.
const (
	// Healthy means that the object works, or that it exists and has no status.
	Healthy State = "Healthy"
	// Idle means that the object is not in use, which is no problem: for example, it is suspended, disabled, scaled to zero or queued.
	Idle State = "Idle"
	// Deleting means that the object has a deletionTimestamp.
	Deleting State = "Deleting"
	// Progressing means that a controller is reconciling the object, which may become healthy.
	Progressing State = "Progressing"
	// Unknown means that no controller has reported a status yet, or that the status cannot be evaluated.
	Unknown State = "Unknown"
	// Degraded means that the object works with a problem.
	Degraded State = "Degraded"
	// Failed means that the object does not work and cannot recover by itself.
	Failed State = "Failed"
)

// stateOrder orders states from bad to good.
var stateOrder = map[State]int{Failed: 0, Degraded: 1, Unknown: 2, Progressing: 3, Deleting: 4, Idle: 5, Healthy: 6}

// Rank returns a sort key that orders states from bad to good.
func (s State) Rank() int { return stateOrder[s] }

// OK reports whether the object is healthy or idle.
func (s State) OK() bool { return s == Healthy || s == Idle }

// Verdict is the state of an object with its reason.
type Verdict struct {
	State State `json:"state"`
	// Reason is a reason from the status; may be empty.
	Reason string `json:"reason,omitempty"`
	// Message describes the state; may be empty.
	Message string `json:"message,omitempty"`
	// Since is the start of the state; zero if it is unknown.
	Since time.Time `json:"since,omitzero"`
	// Paused is true if the reconciliation of the object is paused.
	Paused bool `json:"paused,omitempty"`
}

// Of evaluates an object.
func Of(u *unstructured.Unstructured) Verdict {
	evaluator := evaluators[u.GroupVersionKind().GroupKind()]
	switch {
	case u.GetDeletionTimestamp() != nil:
		evaluator = evaluateDeletion
	case evaluator == nil:
		evaluator = evaluateGeneric
	}
	verdict := evaluator(u)
	verdict.Paused, _ = names.Paused(u.GetAnnotations())
	return verdict
}

// evaluateDeletion describes a terminating object by its finalizers and, unless its ready condition is True, the message of that condition.
func evaluateDeletion(u *unstructured.Unstructured) Verdict {
	text := "it is being deleted"
	if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
		text += " and waits for " + strings.Join(finalizers, ", ")
		if c, _ := readyCondition(statusOf(u)); c.Status != metav1.ConditionTrue && c.Message != "" {
			text += ": " + c.Message
		}
	}
	return Verdict{State: Deleting, Reason: "Terminating", Message: text, Since: u.GetDeletionTimestamp().Time}
}

// Label returns the state, with a suffix for paused objects.
func (v Verdict) Label() string {
	if v.Paused {
		return string(v.State) + " (paused)"
	}
	return string(v.State)
}

// status holds the fields that most kinds share.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// statusOf decodes the status of an object without informational conditions, which Knative marks with a severity.
func statusOf(u *unstructured.Unstructured) status {
	s := nested.Decode[status](nested.Map(u.Object, "status"))
	for _, c := range nested.List(u.Object, "status", "conditions") {
		if nested.String(c, "severity") == "Info" {
			meta.RemoveStatusCondition(&s.Conditions, nested.String(c, "type"))
		}
	}
	return s
}

// isTrue reports whether a condition is True.
func (s status) isTrue(t string) bool { return meta.IsStatusConditionTrue(s.Conditions, t) }

// condition returns the condition of a type, or an empty one.
func (s status) condition(conditionType string) metav1.Condition {
	c, _ := conditions.Get(s.Conditions, conditionType)
	return c
}

// readyTypes are the types of conditions that summarize the others, in order of precedence.
var readyTypes = []string{conditions.Ready, "Available", "Active", "ScalingActive"}

// readyCondition returns the condition that summarizes the others, and whether there is one.
func readyCondition(s status) (metav1.Condition, bool) {
	for _, conditionType := range readyTypes {
		if c, found := conditions.Get(s.Conditions, conditionType); found {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

var (
	// negativeTypes are further types of conditions that report a problem with the status True; see conditions.NeedsAttention.
	negativeTypes = map[string]bool{"Unhealthy": true, "UnusedDatabase": true}
	// idleReasons are the reasons of suspended objects.
	idleReasons = map[string]bool{conditions.Suspended: true, "ScalingDisabled": true}
	// transientReasons are the reasons of problems that resolve without a user.
	transientReasons = map[string]bool{
		"DeploymentCooldown": true, "ModelPending": true, "ModelLoading": true, "InProgress": true, "LatestGenerationNotObserved": true,
	}
	// reportingGroups are the API groups whose controllers report a status for every object.
	reportingGroups = map[string]bool{
		"mlflow.opendatahub.io": true, "mlflow.kubeflow.org": true, "components.platform.opendatahub.io": true, "ray.io": true,
		"modelregistry.opendatahub.io": true, "aihub.opendatahub.io": true, "serving.kserve.io": true, "workload.codeflare.dev": true,
	}
	// kstatusStates maps the states of kstatus.
	kstatusStates = map[kstatus.Status]State{
		kstatus.CurrentStatus: Healthy, kstatus.InProgressStatus: Progressing, kstatus.FailedStatus: Failed, kstatus.UnknownStatus: Unknown,
	}
)

func verdictOf(c metav1.Condition, state State) Verdict {
	return Verdict{State: state, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

// evaluateGeneric evaluates the ready condition, or applies the rules of kstatus if there is none.
func evaluateGeneric(u *unstructured.Unstructured) Verdict {
	result, err := kstatus.Compute(u)
	if err != nil {
		return Verdict{State: Unknown, Message: "the status has an unexpected form"}
	}
	verdict := Verdict{State: kstatusStates[result.Status], Message: result.Message}
	for _, c := range result.Conditions {
		verdict.Reason = cmp.Or(verdict.Reason, c.Reason)
	}
	s := statusOf(u)
	ready, found := readyCondition(s)
	suspended, _ := nested.At(u.Object, "spec", "suspend").(bool)
	replicas, scales := nested.At(u.Object, "spec", "replicas").(int64)
	switch {
	case found:
		return s.evaluate(ready, u.GetGeneration())
	case verdict.State != Healthy && s.failedCondition() != nil: // has more details than the result of kstatus
		return verdictOf(*s.failedCondition(), Failed)
	case verdict.State == Failed:
	case suspended:
		return Verdict{State: Idle, Reason: conditions.Suspended}
	case verdict.State == Healthy && len(s.Conditions) == 0 && nested.String(u.Object, "status", "state") == "" && reportingGroups[u.GroupVersionKind().Group]:
		return Verdict{State: Unknown, Message: "waiting for its controller to report"}
	case verdict.State == Healthy && scales && replicas == 0:
		return Verdict{State: Idle, Reason: conditions.ReasonScaledToZero}
	case verdict.State == Healthy:
		return s.withWarning(Verdict{State: Healthy})
	}
	return verdict
}

// evaluate evaluates the ready condition.
func (s status) evaluate(ready metav1.Condition, generation int64) Verdict {
	observed := cmp.Or(ready.ObservedGeneration, s.ObservedGeneration, generation)
	inProgress := s.isTrue("Progressing") || ready.Status == metav1.ConditionUnknown || transientReasons[ready.Reason]
	switch {
	case observed < generation:
		return Verdict{State: Progressing, Reason: ready.Reason, Message: "the controller has not processed the last change yet", Since: ready.LastTransitionTime.Time}
	case ready.Status == metav1.ConditionTrue:
		return s.withWarning(verdictOf(ready, Healthy))
	case idleReasons[ready.Reason]:
		return verdictOf(ready, Idle)
	case inProgress && !s.isTrue(conditions.Stalled):
		return verdictOf(ready, Progressing)
	case ready.Type != "Available" && s.isTrue("Available"):
		return verdictOf(ready, Degraded)
	}
	return verdictOf(ready, Failed)
}

// failedCondition returns the condition that reports the failure of a workload, nil if there is none.
func (s status) failedCondition() *metav1.Condition {
	for i, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == "Failed" || c.Type == "ReplicaFailure") {
			return &s.Conditions[i]
		}
	}
	return nil
}

// withWarning returns Degraded for the first condition that is True and reports a problem, otherwise the given verdict.
func (s status) withWarning(verdict Verdict) Verdict {
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue && (conditions.NeedsAttention(c) || negativeTypes[c.Type] || strings.HasSuffix(c.Type, "Failure")) {
			verdict := verdictOf(c, Degraded)
			verdict.Reason = cmp.Or(verdict.Reason, c.Type)
			return verdict
		}
	}
	return verdict
}
