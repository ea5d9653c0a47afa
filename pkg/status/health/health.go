// Package health judges objects of any kind by what their status says, for people who look at a cluster.
//
// The rules of kstatus decide, and the condition that sums up the others; a few kinds have neither, or say more elsewhere. Nothing is read
// from the cluster here, and a status of unexpected shape is no error: what is not understood counts as not there.
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

// State is how an object is.
type State string

// States, from good to bad.
const (
	// Healthy means that it does what it is for, or that it exists and has nothing more to do.
	Healthy State = "Healthy"
	// Idle means that it rests because a user wants it: suspended, scaled to zero, switched off.
	Idle State = "Idle"
	// Deleting means that it is being deleted.
	Deleting State = "Deleting"
	// Progressing means that a controller is at work on it, and that waiting may help.
	Progressing State = "Progressing"
	// Unknown means that no controller has looked at it yet, or that it cannot be known.
	Unknown State = "Unknown"
	// Degraded means that it works, and that something about it needs attention.
	Degraded State = "Degraded"
	// Failed means that it does not work, and that waiting alone will not help.
	Failed State = "Failed"
)

// rank orders states from bad to good.
var rank = map[State]int{Failed: 0, Degraded: 1, Unknown: 2, Progressing: 3, Deleting: 4, Idle: 5, Healthy: 6}

// Rank is small for bad states, so that sorting by it puts first what needs attention.
func (s State) Rank() int { return rank[s] }

// OK reports whether nothing is to be done or waited for.
func (s State) OK() bool { return s == Healthy || s == Idle }

// Verdict is how an object is, and why.
type Verdict struct {
	State State `json:"state"`
	// Reason is a word from the status, such as the reason of a condition; empty when it has none.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence from the status, or ours; empty when there is nothing to say.
	Message string `json:"message,omitempty"`
	// Since is when the state began, as far as the status tells; zero when it does not.
	Since time.Time `json:"since,omitzero"`
	// Paused reports that our controllers leave the object as it is.
	Paused bool `json:"paused,omitempty"`
}

// Of judges an object.
func Of(u *unstructured.Unstructured) Verdict {
	judge := judges[u.GroupVersionKind().GroupKind()]
	switch {
	case u.GetDeletionTimestamp() != nil:
		judge = deletion
	case judge == nil:
		judge = general
	}
	verdict := judge(u)
	verdict.Paused, _ = names.Paused(u.GetAnnotations())
	return verdict
}

// deletion says what an object that is being deleted waits for, and what its main condition says about that.
func deletion(u *unstructured.Unstructured) Verdict {
	text := "it is being deleted"
	if waits := u.GetFinalizers(); len(waits) > 0 {
		text += " and waits for " + strings.Join(waits, ", ")
		if c, _ := sum(of(u)); c.Status != metav1.ConditionTrue && c.Message != "" {
			text += ": " + c.Message
		}
	}
	return Verdict{State: Deleting, Reason: "Terminating", Message: text, Since: u.GetDeletionTimestamp().Time}
}

// Word is the state, marked for an object that is paused.
func (v Verdict) Word() string {
	if v.Paused {
		return string(v.State) + " (paused)"
	}
	return string(v.State)
}

// status has the fields that most kinds share.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// of reads the status of an object, without conditions that are there for information only, as Knative's word is.
func of(u *unstructured.Unstructured) status {
	s := nested.Decode[status](nested.Map(u.Object, "status"))
	for _, c := range nested.List(u.Object, "status", "conditions") {
		if nested.String(c, "severity") == "Info" {
			meta.RemoveStatusCondition(&s.Conditions, nested.String(c, "type"))
		}
	}
	return s
}

// is reports whether a condition is True.
func (s status) is(kind string) bool { return meta.IsStatusConditionTrue(s.Conditions, kind) }

// condition returns the one of a type; one without a type when there is none.
func (s status) condition(kind string) metav1.Condition {
	c, _ := conditions.Get(s.Conditions, kind)
	return c
}

// mains are the conditions that sum up the others, best first.
var mains = []string{conditions.Ready, "Available", "Active", "ScalingActive"}

// sum returns the condition that sums up the others, and whether there is one.
func sum(s status) (metav1.Condition, bool) {
	for _, kind := range mains {
		if c, has := conditions.Get(s.Conditions, kind); has {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

var (
	// negative conditions are bad when they are True, in addition to those that conditions.Bad knows.
	negative = map[string]bool{"Unhealthy": true, "UnusedDatabase": true}
	// resting are reasons for which users and queues keep an object from being ready.
	resting = map[string]bool{conditions.Suspended: true, "ScalingDisabled": true}
	// passing are reasons that end by themselves.
	passing = map[string]bool{
		"DeploymentCooldown": true, "ModelPending": true, "ModelLoading": true, "InProgress": true, "LatestGenerationNotObserved": true,
	}
	// reporting are groups whose controllers report on every object sooner or later.
	reporting = map[string]bool{
		"mlflow.opendatahub.io": true, "mlflow.kubeflow.org": true, "components.platform.opendatahub.io": true, "ray.io": true,
		"modelregistry.opendatahub.io": true, "aihub.opendatahub.io": true, "serving.kserve.io": true, "workload.codeflare.dev": true,
	}
	// states are those of kstatus in our words.
	states = map[kstatus.Status]State{
		kstatus.CurrentStatus: Healthy, kstatus.InProgressStatus: Progressing, kstatus.FailedStatus: Failed, kstatus.UnknownStatus: Unknown,
	}
)

func verdictOf(c metav1.Condition, state State) Verdict {
	return Verdict{State: state, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

// general judges by the condition that sums up the others, and by the rules of kstatus where there is none.
func general(u *unstructured.Unstructured) Verdict {
	result, err := kstatus.Compute(u)
	if err != nil {
		return Verdict{State: Unknown, Message: "its status has an unexpected shape"}
	}
	verdict := Verdict{State: states[result.Status], Message: result.Message}
	for _, c := range result.Conditions {
		verdict.Reason = cmp.Or(verdict.Reason, c.Reason)
	}
	s := of(u)
	main, summed := sum(s)
	suspended, _ := nested.At(u.Object, "spec", "suspend").(bool)
	replicas, scales := nested.At(u.Object, "spec", "replicas").(int64)
	switch {
	case summed:
		return s.judge(main, u.GetGeneration())
	case verdict.State != Healthy && s.failure() != nil: // kstatus says less of it
		return verdictOf(*s.failure(), Failed)
	case verdict.State == Failed:
	case suspended:
		return Verdict{State: Idle, Reason: conditions.Suspended}
	case verdict.State == Healthy && len(s.Conditions) == 0 && nested.String(u.Object, "status", "state") == "" && reporting[u.GroupVersionKind().Group]:
		return Verdict{State: Unknown, Message: "no controller has reported on it yet"}
	case verdict.State == Healthy && scales && replicas == 0:
		return Verdict{State: Idle, Reason: conditions.ReasonScaledToZero}
	case verdict.State == Healthy:
		return s.attention(Verdict{State: Healthy})
	}
	return verdict
}

// judge judges by the condition that sums up the others.
func (s status) judge(main metav1.Condition, generation int64) Verdict {
	observed := cmp.Or(main.ObservedGeneration, s.ObservedGeneration, generation)
	moving := s.is("Progressing") || main.Status == metav1.ConditionUnknown || passing[main.Reason]
	switch {
	case observed < generation:
		return Verdict{State: Progressing, Reason: main.Reason, Message: "the last change is being taken up", Since: main.LastTransitionTime.Time}
	case main.Status == metav1.ConditionTrue:
		return s.attention(verdictOf(main, Healthy))
	case resting[main.Reason]:
		return verdictOf(main, Idle)
	case moving && !s.is(conditions.Stalled):
		return verdictOf(main, Progressing)
	case main.Type != "Available" && s.is("Available"):
		return verdictOf(main, Degraded)
	}
	return verdictOf(main, Failed)
}

// failure is the condition with which workloads report that they have failed; nil for none.
func (s status) failure() *metav1.Condition {
	for i, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == "Failed" || c.Type == "ReplicaFailure") {
			return &s.Conditions[i]
		}
	}
	return nil
}

// attention looks for conditions that are bad although all is well.
func (s status) attention(well Verdict) Verdict {
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue && (conditions.Bad(c) || negative[c.Type] || strings.HasSuffix(c.Type, "Failure")) {
			verdict := verdictOf(c, Degraded)
			verdict.Reason = cmp.Or(verdict.Reason, c.Type)
			return verdict
		}
	}
	return well
}
