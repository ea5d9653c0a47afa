package health

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// State is how an object is.
type State string

// States, from good to bad.
const (
	// Healthy means that it does what it is for, or that it exists and has nothing more to do.
	Healthy State = "Healthy"
	// Idle means that it rests because a user wants it: suspended, scaled to zero, switched off.
	Idle State = "Idle"
	// Progressing means that a controller is at work on it, and that waiting may help.
	Progressing State = "Progressing"
	// Deleting means that it is being deleted.
	Deleting State = "Deleting"
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

// judge judges one kind. It may rely on neither status nor spec being there.
type judge func(object) Verdict

// Of judges an object.
func Of(u *unstructured.Unstructured) Verdict {
	o := object{u}
	verdict := kindOf(o)
	verdict.Paused, _ = names.Paused(u.GetAnnotations())
	if at := u.GetDeletionTimestamp(); at != nil {
		return Verdict{State: Deleting, Reason: "Terminating", Message: deletion(o, verdict), Since: at.Time, Paused: verdict.Paused}
	}
	return verdict
}

// Judged reports whether more is to be known of a kind than that an object of it exists; if not, the object need not be read.
func Judged(group, kind string) bool {
	return !plain[key{group, kind}]
}

func kindOf(o object) Verdict {
	k := key{o.GroupVersionKind().Group, o.GroupVersionKind().Kind}
	if plain[k] {
		return Verdict{State: Healthy}
	}
	if known, ok := judges[k]; ok {
		return known(o)
	}
	return general(o)
}

// deletion says what an object that is being deleted waits for, and what was said about it before.
func deletion(o object, before Verdict) string {
	waits := o.GetFinalizers()
	if len(waits) == 0 {
		return "it is being deleted"
	}
	text := "it is being deleted and waits for " + strings.Join(waits, ", ")
	if !before.State.OK() && before.Message != "" {
		text += ": " + before.Message
	}
	return text
}
