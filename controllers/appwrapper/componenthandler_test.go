package appwrapper

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

// recordingQueue records added requests.
type recordingQueue struct {
	discardQueue
	requests []reconcile.Request
}

func (q *recordingQueue) Add(r reconcile.Request) { q.requests = append(q.requests, r) }

// componentOf returns a cached component of an AppWrapper.
func componentOf(object *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object.SetNamespace("team")
	object.SetName("c")
	object.SetUID("c-uid")
	object.SetLabels(map[string]string{awv1beta2.LabelAppWrapper: "train"})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: awv1beta2.GroupVersion.String(), Kind: "AppWrapper", Name: "train", UID: "aw-uid", Controller: new(true)}})
	for _, change := range changes {
		change(object)
	}
	return object
}

// [D13] The creation or deletion of a component enqueues its AppWrapper. An update does so only if it changes the UID, the
// deletionTimestamp or the reported state.
func TestComponentHandler(t *testing.T) {
	running := func() *unstructured.Unstructured {
		return componentOf(withStatus("batch/v1", "Job", conditionsOf("Suspended", "False")))
	}
	complete := componentOf(withStatus("batch/v1", "Job", conditionsOf("Complete", "True")))
	terminating := componentOf(running(), func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: noon}) })
	replacement := componentOf(running(), func(u *unstructured.Unstructured) { u.SetUID("other") })
	unlabeled := componentOf(running(), func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c", UID: "c-uid", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	updated := metadata.DeepCopy()
	updated.ResourceVersion = "7"
	for name, tc := range map[string]struct {
		event         func(toolscache.ResourceEventHandler)
		wantRequest   bool
		wantSucceeded bool
	}{
		"component created":                       {func(handler toolscache.ResourceEventHandler) { handler.OnAdd(running(), false) }, true, false},
		"completed component in the initial list": {func(handler toolscache.ResourceEventHandler) { handler.OnAdd(complete, true) }, true, true},
		"update without a change":                 {func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(running(), running()) }, false, false},
		"component completed":                     {func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(running(), complete) }, true, true},
		"component terminating":                   {func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(running(), terminating) }, true, false},
		"component replaced":                      {func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(running(), replacement) }, true, false},
		"component deleted":                       {func(handler toolscache.ResourceEventHandler) { handler.OnDelete(running()) }, true, false},
		"tombstone of a completed component": {func(handler toolscache.ResourceEventHandler) {
			handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: complete})
		}, true, true},
		"update of the resourceVersion":       {func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(metadata, updated) }, false, false},
		"object without the AppWrapper label": {func(handler toolscache.ResourceEventHandler) { handler.OnAdd(unlabeled, false) }, false, false},
		"value that is not an object":         {func(handler toolscache.ResourceEventHandler) { handler.OnAdd("text", false) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &recordingQueue{}
			var succeeded []types.UID
			tc.event(componentHandler(queue, func(aw, c types.UID) { succeeded = append(succeeded, aw, c) }))
			if enqueued := len(queue.requests) == 1 && queue.requests[0] == requestFor("train"); enqueued != tc.wantRequest || len(queue.requests) > 1 {
				t.Errorf("got requests %v, want one for the AppWrapper: %t", queue.requests, tc.wantRequest)
			}
			if (len(succeeded) > 0) != tc.wantSucceeded {
				t.Errorf("got success reported for %v, want it reported: %t", succeeded, tc.wantSucceeded)
			}
		})
	}
}
