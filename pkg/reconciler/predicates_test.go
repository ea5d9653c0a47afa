package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
		"resync": {func(*metav1.PartialObjectMetadata) {}, true},
	} {
		after := before.DeepCopy()
		c.change(after)
		if got := Changed().Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
