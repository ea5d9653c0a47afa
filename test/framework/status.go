package framework

import (
	"context"
	"fmt"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Events returns the Events of an object. For objects of cluster scope it searches all namespaces.
func (e *Env) Events(ctx context.Context, object client.Object) ([]eventsv1.Event, error) {
	list := &eventsv1.EventList{}
	if err := e.Admin.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return nil, fmt.Errorf("listing Events: %w", err)
	}
	var events []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.UID == object.GetUID() {
			events = append(events, event)
		}
	}
	return events, nil
}

// WaitForEvent waits for an Event with the reason whose note contains the text, and returns the note.
func (e *Env) WaitForEvent(ctx context.Context, object client.Object, reason, text string) string {
	ginkgo.GinkgoHelper()
	note := ""
	gomega.Eventually(func(g gomega.Gomega) {
		events, err := e.Events(ctx, object)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		var all []string
		found := false
		for _, event := range events {
			all = append(all, event.Reason+": "+event.Note)
			if event.Reason == reason && strings.Contains(event.Note, text) {
				note, found = event.Note, true
			}
		}
		g.Expect(found).To(gomega.BeTrue(), "no Event %s with %q among %q", reason, text, all)
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed())
	return note
}

// FindCondition returns the condition of the given type, or an empty condition.
func FindCondition(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// KStatus returns the kstatus of the live object and the reason of its condition Ready in one string, such as "Current ModelLoaded".
func (e *Env) KStatus(ctx context.Context, object client.Object) (string, error) {
	kind, err := apiutil.GVKForObject(object, e.Scheme)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	live := Unstructured(kind, object.GetNamespace(), object.GetName())
	if err := e.Admin.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return "", fmt.Errorf("reading %s %s: %w", kind.Kind, object.GetName(), err)
	}
	result, err := kstatus.Compute(live)
	if err != nil {
		return "", fmt.Errorf("computing the kstatus of %s %s: %w", kind.Kind, object.GetName(), err)
	}
	list, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	reason := "no condition Ready"
	for _, c := range list {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Ready" {
			reason, _ = condition["reason"].(string)
		}
	}
	return string(result.Status) + " " + reason, err
}
