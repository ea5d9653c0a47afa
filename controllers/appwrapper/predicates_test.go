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

// listening counts events.
type listening struct {
	noWorkers
	heard []reconcile.Request
}

func (l *listening) Add(r reconcile.Request) { l.heard = append(l.heard, r) }

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

// [D13] Only changes of a fact about a component enqueue the AppWrapper.
func TestComponentHandler(t *testing.T) {
	running := func() *unstructured.Unstructured {
		return componentOf(withStatus("batch/v1", "Job", conditionsOf("Suspended", "False")))
	}
	complete := componentOf(withStatus("batch/v1", "Job", conditionsOf("Complete", "True")))
	terminating := componentOf(running(), func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: noon}) })
	another := componentOf(running(), func(u *unstructured.Unstructured) { u.SetUID("other") })
	foreign := componentOf(running(), func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c", UID: "c-uid", Labels: map[string]string{awv1beta2.LabelAppWrapper: "train"}}}
	touched := head.DeepCopy()
	touched.ResourceVersion = "7"
	for name, tc := range map[string]struct {
		happens func(toolscache.ResourceEventHandler)
		wakes   bool
		done    bool
	}{
		"pod created":             {func(m toolscache.ResourceEventHandler) { m.OnAdd(running(), false) }, true, false},
		"pod in the initial list": {func(m toolscache.ResourceEventHandler) { m.OnAdd(complete, true) }, true, true},
		"update without a change": {func(m toolscache.ResourceEventHandler) { m.OnUpdate(running(), running()) }, false, false},
		"pod completed":           {func(m toolscache.ResourceEventHandler) { m.OnUpdate(running(), complete) }, true, true},
		"pod terminating":         {func(m toolscache.ResourceEventHandler) { m.OnUpdate(running(), terminating) }, true, false},
		"pod replaced":            {func(m toolscache.ResourceEventHandler) { m.OnUpdate(running(), another) }, true, false},
		"pod deleted":             {func(m toolscache.ResourceEventHandler) { m.OnDelete(running()) }, true, false},
		"deletion of a completed pod missed": {func(m toolscache.ResourceEventHandler) {
			m.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: complete})
		}, true, true},
		"metadata that was touched":   {func(m toolscache.ResourceEventHandler) { m.OnUpdate(head, touched) }, false, false},
		"an object without our label": {func(m toolscache.ResourceEventHandler) { m.OnAdd(foreign, false) }, false, false},
		"something that is no object": {func(m toolscache.ResourceEventHandler) { m.OnAdd("text", false) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &listening{}
			var done []types.UID
			tc.happens(componentHandler(queue, func(aw, c types.UID) { done = append(done, aw, c) }))
			if woke := len(queue.heard) == 1 && queue.heard[0] == requestFor("train"); woke != tc.wakes || len(queue.heard) > 1 {
				t.Errorf("received %v", queue.heard)
			}
			if (len(done) > 0) != tc.done {
				t.Errorf("done %v", done)
			}
		})
	}
}
