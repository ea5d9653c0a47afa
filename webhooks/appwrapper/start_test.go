package appwrapper

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// An update that starts an AppWrapper, sets its queue or changes podSetInfos requires the permission to create the components, or to admit a
// Workload.
func TestReviewStart(t *testing.T) {
	suspendedAppWrapper := func(change func(*v1beta2.AppWrapper)) *v1beta2.AppWrapper {
		w := newAppWrapper(t, component(pod), component(deployment))
		w.Spec.Suspend, w.Labels = true, map[string]string{v1beta2.LabelQueue: "a"}
		change(w)
		return w
	}
	unsuspend := func(w *v1beta2.AppWrapper) { w.Spec.Suspend = false }
	setPodSetInfos := func(w *v1beta2.AppWrapper) {
		w.Spec.Components[1].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{Tolerations: nil, NodeSelector: map[string]string{"a": "b"}}}
	}
	setQueue := func(w *v1beta2.AppWrapper) { w.Labels[v1beta2.LabelQueue] = "b" }
	for name, tc := range map[string]struct {
		old, updated func(*v1beta2.AppWrapper)
		forbidden    []string
		wantMessage  string
		wantReviews  int
	}{
		"user may update workloads/status":       {func(*v1beta2.AppWrapper) {}, unsuspend, []string{"pods", "deployments"}, "", 1},
		"user may create the components":         {func(*v1beta2.AppWrapper) {}, unsuspend, []string{"workloads/status"}, "", 3},
		"user may not create a component":        {func(*v1beta2.AppWrapper) {}, unsuspend, []string{"workloads/status", "deployments"}, "is not authorized to create deployments", 3},
		"sets podSetInfos without permission":    {func(*v1beta2.AppWrapper) {}, setPodSetInfos, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"removes podSetInfos without permission": {setPodSetInfos, func(*v1beta2.AppWrapper) {}, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"sets the queue without permission":      {func(*v1beta2.AppWrapper) {}, setQueue, []string{"workloads/status", "pods"}, "is not authorized to create pods", 3},
		"suspends without permission":            {unsuspend, func(*v1beta2.AppWrapper) {}, []string{"workloads/status", "pods"}, "", 0},
		"sets an annotation without permission": {func(*v1beta2.AppWrapper) {}, func(w *v1beta2.AppWrapper) { w.Annotations = map[string]string{"a": "b"} },
			[]string{"workloads/status", "pods"}, "", 0},
	} {
		c := newCluster(tc.forbidden...)
		response := newValidator(c).Handle(t.Context(), newRequest(t, admissionv1.Update, suspendedAppWrapper(tc.updated), suspendedAppWrapper(tc.old)))
		if response.Allowed != (tc.wantMessage == "") || !strings.Contains(response.Result.Message, tc.wantMessage) || len(c.reviews) != tc.wantReviews {
			t.Errorf("%s: got result %+v after %d access reviews, want message %q after %d", name, response.Result, len(c.reviews), tc.wantMessage, tc.wantReviews)
		}
	}
	v := newValidator(newCluster("workloads/status", "pods"))
	v.settings = fixedSettings(Settings{})
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, suspendedAppWrapper(unsuspend), suspendedAppWrapper(func(*v1beta2.AppWrapper) {}))); !response.Allowed {
		t.Errorf("access reviews disabled: got result %+v, want it allowed", response.Result)
	}
}
