package appwrapper

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// Starting an AppWrapper, or adding to its pod templates, requires the permissions of its creation or those of Kueue.
func TestReviewStart(t *testing.T) {
	suspended := func(change func(*v1beta2.AppWrapper)) *v1beta2.AppWrapper {
		w := wrapperOf(t, component(pod), component(deployment))
		w.Spec.Suspend, w.Labels = true, map[string]string{v1beta2.LabelQueue: "a"}
		change(w)
		return w
	}
	start := func(w *v1beta2.AppWrapper) { w.Spec.Suspend = false }
	infos := func(w *v1beta2.AppWrapper) {
		w.Spec.Components[1].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{Tolerations: nil, NodeSelector: map[string]string{"a": "b"}}}
	}
	queue := func(w *v1beta2.AppWrapper) { w.Labels[v1beta2.LabelQueue] = "b" }
	for name, tc := range map[string]struct {
		before, now func(*v1beta2.AppWrapper)
		forbidden   []string
		message     string
		reviews     int
	}{
		"Kueue":                                  {func(*v1beta2.AppWrapper) {}, start, []string{"pods", "deployments"}, "", 1},
		"user may create the components":         {func(*v1beta2.AppWrapper) {}, start, []string{"workloads/status"}, "", 3},
		"user may not create a component":        {func(*v1beta2.AppWrapper) {}, start, []string{"workloads/status", "deployments"}, "is not authorized to create deployments", 3},
		"sets podSetInfos without permission":    {func(*v1beta2.AppWrapper) {}, infos, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"removes podSetInfos without permission": {infos, func(*v1beta2.AppWrapper) {}, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"chooses the queue without permission":   {func(*v1beta2.AppWrapper) {}, queue, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"suspends without permission":            {start, func(*v1beta2.AppWrapper) {}, []string{"workloads/status", "pods"}, "", 0},
		"sets an annotation without permission": {func(*v1beta2.AppWrapper) {}, func(w *v1beta2.AppWrapper) { w.Annotations = map[string]string{"a": "b"} },
			[]string{"workloads/status", "pods"}, "", 0},
	} {
		c := newCluster(tc.forbidden...)
		response := validatorOf(c).Handle(t.Context(), requestOf(t, admissionv1.Update, suspended(tc.now), suspended(tc.before)))
		if response.Allowed != (tc.message == "") || !strings.Contains(response.Result.Message, tc.message) || len(c.reviewed) != tc.reviews {
			t.Errorf("%s: response %+v with %d access reviews", name, response.Result, len(c.reviewed))
		}
	}
	v := validatorOf(newCluster("workloads/status", "pods"))
	v.settings = settingsOf(Settings{})
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, suspended(start), suspended(func(*v1beta2.AppWrapper) {}))); !response.Allowed {
		t.Errorf("reviews are off: %+v", response.Result)
	}
}
