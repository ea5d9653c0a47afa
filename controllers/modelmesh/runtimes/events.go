package runtimes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Subjects of Events on runtimes, which are the actions of the Events: within minutes Kubernetes counts Events of one object,
// reason and action as one, and shows the first text.
const (
	actionValidate          = "Validate"
	actionApply             = "Apply"
	actionRender            = "Render"
	actionReadEtcdSecret    = "ReadEtcdSecret"
	actionReadOwnEtcdSecret = "ReadOwnEtcdSecret"
	actionConnect           = "Connect"
	actionApplyService      = "ApplyService"
	actionApplyGuards       = "ApplyGuards"
	actionPause             = "Pause"
	// aboutTakeOver is about pods that a take-over replaces.
	actionTakeOver = "TakeOver"
)

// Reasons of Events on runtimes. The kinds of KServe have no status in which this could stand.
const (
	ReasonInvalid = "InvalidRuntime"
	ReasonValid   = "ValidRuntime"
	ReasonRefused = "RuntimeRefused"
	ReasonNotice  = "RuntimeNotice"
	ReasonPaused  = "Paused"
	// ReasonReplaced is the reason of Events about pods that a take-over replaces.
	ReasonReplaced = "PodsReplaced"
)

// reporter remembers the texts of Events on runtimes, so that each is recorded once for each namespace and not in every reconcile.
type reporter struct {
	recorder     events.EventRecorder
	lastMessages modelmesh.SyncMap[eventKey, string]
}

// saying is one subject of an object.
type eventKey struct {
	namespace string
	uid       types.UID
	action    string
}

// say records an Event on an object when the text on this subject is another than the last one. An empty text says nothing, and
// lets the next one be said. It reports whether the text before was another.
func (r *reporter) warn(namespace string, about client.Object, subject, reason, text string) (changed bool) {
	return r.event(corev1.EventTypeWarning, namespace, about, subject, reason, text)
}

// tell is say for Events of a type.
func (r *reporter) event(kind, namespace string, about client.Object, subject, reason, text string) (changed bool) {
	key := eventKey{namespace, about.GetUID(), subject}
	var before string
	if text == "" {
		before, _ = r.lastMessages.Delete(key)
	} else {
		before = r.lastMessages.Set(key, text)
	}
	changed = before != text
	if changed && text != "" {
		related, prefix := eventScope(about, namespace)
		r.recorder.Eventf(about, related, kind, reason, subject, "%s", conditions.Clip(prefix+text, modelmesh.MaxEventNoteBytes))
	}
	return changed
}

// paused reports whether the pods of a runtime are to be left alone, and tells the runtime so.
func (r *reporter) reportPaused(namespace string, about client.Object) bool {
	text := ""
	paused, _ := names.Paused(about.GetAnnotations())
	if paused = paused && about.GetDeletionTimestamp().IsZero(); paused {
		text = "annotation " + names.PausedAnnotation + " is set: its Deployment is left as it is"
	}
	r.event(corev1.EventTypeNormal, namespace, about, actionPause, ReasonPaused, text)
	return paused
}

// validity tells an object what keeps it from being served, and once that this is over; nil is nothing.
func (r *reporter) reportInvalid(namespace string, about client.Object, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if r.warn(namespace, about, actionValidate, ReasonInvalid, text) && text == "" {
		related, prefix := eventScope(about, namespace)
		r.recorder.Eventf(about, related, corev1.EventTypeNormal, ReasonValid, actionValidate, "%s", prefix+"the runtime is valid again")
	}
}

// last returns the last text on a subject of an object; "" when there is none.
func (r *reporter) lastMessage(namespace string, about client.Object, subject string) string {
	text, _ := r.lastMessages.Get(eventKey{namespace, about.GetUID(), subject})
	return text
}

// keep drops what was said in a namespace about objects that are gone.
func (r *reporter) forgetDeleted(namespace string, alive map[types.UID]bool) {
	r.lastMessages.DeleteFunc(func(key eventKey) bool { return key.namespace == namespace && !alive[key.uid] })
}

// scope is what keeps Events on an object that is served in several namespaces apart: a related object, and how their texts begin.
func eventScope(about client.Object, namespace string) (related runtime.Object, prefix string) {
	if about.GetNamespace() != "" {
		return nil, ""
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace}, "in namespace " + namespace + ": "
}
