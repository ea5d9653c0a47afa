package runtimes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Actions of Events on runtimes. Kubernetes aggregates Events of the same object, reason and action within minutes and keeps the first
// message, so independent problems need different actions.
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
	// actionTakeOver is the action of Events about pods that are replaced when their Deployment is adopted.
	actionTakeOver = "TakeOver"
)

// Reasons of Events on runtimes. The runtime kinds of KServe have no status conditions.
const (
	ReasonInvalid = "InvalidRuntime"
	ReasonValid   = "ValidRuntime"
	ReasonRefused = "RuntimeRefused"
	ReasonNotice  = "RuntimeNotice"
	ReasonPaused  = "Paused"
	// ReasonReplaced is the reason of Events about pods that are replaced when their Deployment is adopted.
	ReasonReplaced = "PodsReplaced"
)

// reporter records Events about the runtimes of one namespace, each only when its message changes.
type reporter struct {
	recorder     events.EventRecorder
	namespace    string
	lastMessages reconciler.LastMessages[eventKey]
}

// eventKey identifies the last message of an object and action.
type eventKey struct {
	uid    types.UID
	action string
}

// warn records a warning Event if its message differs from the last one of the action. An empty message clears the last one. It reports
// whether the message has changed.
func (r *reporter) warn(object client.Object, action, reason, message string) (changed bool) {
	return r.event(corev1.EventTypeWarning, object, action, reason, message)
}

// event is like warn, but records an Event of the given type.
func (r *reporter) event(eventType string, object client.Object, action, reason, message string) (changed bool) {
	changed = r.lastMessages.Replace(eventKey{object.GetUID(), action}, message)
	if changed && message != "" {
		related, prefix := eventScope(object, r.namespace)
		r.recorder.Eventf(object, related, eventType, reason, action, "%s", prefix+message)
	}
	return changed
}

// reportPaused reports whether a runtime is paused, and records an Event about it.
func (r *reporter) reportPaused(object client.Object) bool {
	message := ""
	paused, _ := names.Paused(object.GetAnnotations())
	if paused = paused && object.GetDeletionTimestamp().IsZero(); paused {
		message = "annotation " + names.PausedAnnotation + " is set, so the Deployment of the runtime does not change: remove the annotation to resume"
	}
	r.event(corev1.EventTypeNormal, object, actionPause, ReasonPaused, message)
	return paused
}

// reportInvalid records an Event about the error of an invalid runtime. The first nil error after one records that it is valid again.
func (r *reporter) reportInvalid(object client.Object, err error) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	if r.warn(object, actionValidate, ReasonInvalid, message) && message == "" {
		related, prefix := eventScope(object, r.namespace)
		r.recorder.Eventf(object, related, corev1.EventTypeNormal, ReasonValid, actionValidate, "%s", prefix+"the runtime is valid again")
	}
}

// lastMessage returns the last message of an action, or "".
func (r *reporter) lastMessage(object client.Object, action string) string {
	return r.lastMessages[eventKey{object.GetUID(), action}]
}

// forgetDeleted removes the messages of objects that no longer exist.
func (r *reporter) forgetDeleted(existing map[types.UID]bool) {
	maps.DeleteFunc(r.lastMessages, func(key eventKey, _ string) bool { return !existing[key.uid] })
}

// eventScope returns the related object and the message prefix that distinguish the Events of namespaces on a cluster-scoped object.
func eventScope(object client.Object, namespace string) (related runtime.Object, prefix string) {
	if object.GetNamespace() != "" {
		return nil, ""
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace}, "in namespace " + namespace + ": "
}
