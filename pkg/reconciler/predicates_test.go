package reconciler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestChanged(t *testing.T) {
	before := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "7"}}
	for name, c := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"status": {func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "8" }, false},
		"spec":   {func(o *metav1.PartialObjectMetadata) { o.ResourceVersion, o.Generation = "8", 2 }, true},
		"label":  {func(o *metav1.PartialObjectMetadata) { o.ResourceVersion, o.Labels = "8", map[string]string{"a": "b"} }, true},
		"annotation": {func(o *metav1.PartialObjectMetadata) {
			o.ResourceVersion, o.Annotations = "8", map[string]string{"a": "b"}
		}, true},
		"relist": {func(*metav1.PartialObjectMetadata) {}, true},
	} {
		after := before.DeepCopy()
		c.change(after)
		if got := Changed().Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestManagedBy(t *testing.T) {
	managed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("mlflow")}}
	unlabelled, others := &corev1.Service{}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("platform")}}
	predicate := ManagedBy("mlflow")
	for name, test := range map[string]struct{ got, want bool }{
		"created":                             {predicate.Create(event.CreateEvent{Object: managed}), true},
		"create of another component":         {predicate.Create(event.CreateEvent{Object: others}), false},
		"changed":                             {predicate.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: managed}), true},
		"labels removed":                      {predicate.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: unlabelled}), true},
		"labels added":                        {predicate.Update(event.UpdateEvent{ObjectOld: unlabelled, ObjectNew: managed}), true},
		"labels changed to another component": {predicate.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: others}), true},
		"update of another component":         {predicate.Update(event.UpdateEvent{ObjectOld: others, ObjectNew: others}), false},
		"delete":                              {predicate.Delete(event.DeleteEvent{Object: managed}), true},
		"delete without labels":               {predicate.Delete(event.DeleteEvent{Object: unlabelled}), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %t, want %t", name, test.got, test.want)
		}
	}
}
