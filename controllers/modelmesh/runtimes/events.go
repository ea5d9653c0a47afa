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
	aboutSpec    = "Validate"
	aboutWriting = "Apply"
	aboutPods    = "Render"
	aboutEtcd    = "ReadEtcdSecret"
	aboutOwnEtcd = "ReadOwnEtcdSecret"
	aboutClient  = "Connect"
	aboutFront   = "ApplyService"
	aboutGuards  = "ApplyGuards"
	aboutPause   = "Pause"
	// aboutTakeOver is about pods that a take-over replaces.
	aboutTakeOver = "TakeOver"
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
	recorder events.EventRecorder
	said     modelmesh.SyncMap[saying, string]
}

// saying is one subject of an object.
type saying struct {
	namespace string
	about     types.UID
	subject   string
}

// say records an Event on an object when the text on this subject is another than the last one. An empty text says nothing, and
// lets the next one be said. It reports whether the text before was another.
func (r *reporter) say(namespace string, about client.Object, subject, reason, text string) (changed bool) {
	return r.tell(corev1.EventTypeWarning, namespace, about, subject, reason, text)
}

// tell is say for Events of a type.
func (r *reporter) tell(kind, namespace string, about client.Object, subject, reason, text string) (changed bool) {
	key := saying{namespace, about.GetUID(), subject}
	var before string
	if text == "" {
		before, _ = r.said.Delete(key)
	} else {
		before = r.said.Set(key, text)
	}
	changed = before != text
	if changed && text != "" {
		related, prefix := scope(about, namespace)
		r.recorder.Eventf(about, related, kind, reason, subject, "%s", conditions.Clip(prefix+text, modelmesh.MaxEventNoteBytes))
	}
	return changed
}

// paused reports whether the pods of a runtime are to be left alone, and tells the runtime so.
func (r *reporter) paused(namespace string, about client.Object) bool {
	text := ""
	paused, _ := names.Paused(about.GetAnnotations())
	if paused = paused && about.GetDeletionTimestamp().IsZero(); paused {
		text = "annotation " + names.PausedAnnotation + " is set: its Deployment is left as it is"
	}
	r.tell(corev1.EventTypeNormal, namespace, about, aboutPause, ReasonPaused, text)
	return paused
}

// validity tells an object what keeps it from being served, and once that this is over; nil is nothing.
func (r *reporter) validity(namespace string, about client.Object, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if r.say(namespace, about, aboutSpec, ReasonInvalid, text) && text == "" {
		related, prefix := scope(about, namespace)
		r.recorder.Eventf(about, related, corev1.EventTypeNormal, ReasonValid, aboutSpec, "%s", prefix+"the runtime is valid again")
	}
}

// last returns the last text on a subject of an object; "" when there is none.
func (r *reporter) last(namespace string, about client.Object, subject string) string {
	text, _ := r.said.Get(saying{namespace, about.GetUID(), subject})
	return text
}

// keep drops what was said in a namespace about objects that are gone.
func (r *reporter) keep(namespace string, alive map[types.UID]bool) {
	r.said.DeleteFunc(func(key saying) bool { return key.namespace == namespace && !alive[key.about] })
}

// scope is what keeps Events on an object that is served in several namespaces apart: a related object, and how their texts begin.
func scope(about client.Object, namespace string) (related runtime.Object, prefix string) {
	if about.GetNamespace() != "" {
		return nil, ""
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace}, "in namespace " + namespace + ": "
}
