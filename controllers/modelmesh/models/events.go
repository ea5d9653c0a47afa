package models

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
)

const eventAction = "Reconcile"

type event struct{ eventType, reason, note string }

// recordEvents records the events of a status update.
func (r *modelReconciler) recordEvents(model *resourceModel, updated v1alpha1.PredictorStatus) {
	for _, e := range append(transitionEvents(model.status, updated), ignoredFieldEvents(model)...) {
		r.recorder.Eventf(model.object, nil, e.eventType, e.reason, eventAction, "%s", e.note)
	}
}

// transitionEvents returns the events for the difference of two statuses: at most one for a failure and one for a loaded or replaced model.
func transitionEvents(original, updated v1alpha1.PredictorStatus) []event {
	var events []event
	if f := updated.LastFailureInfo; f != nil && !isSameFailure(original.LastFailureInfo, f) {
		eventType := corev1.EventTypeWarning
		if isStarting(original, f) {
			eventType = corev1.EventTypeNormal
		}
		events = append(events, event{eventType, string(f.Reason), f.Message})
	}
	switch {
	case updated.ActiveModelState == v1alpha1.Loaded && original.ActiveModelState != v1alpha1.Loaded:
		events = append(events, event{corev1.EventTypeNormal, "ModelLoaded", "The model is in memory"})
	case updated.TransitionStatus == v1alpha1.UpToDate && (original.TransitionStatus == v1alpha1.InProgress || original.TransitionStatus == v1alpha1.BlockedByFailedLoad):
		events = append(events, event{corev1.EventTypeNormal, "ModelReplaced", "The model of the current spec serves requests"})
	}
	return events
}

// isStarting reports whether a model without an earlier failure waits for the first pods of its runtime. The Event is not a warning then.
func isStarting(original v1alpha1.PredictorStatus, f *v1alpha1.FailureInfo) bool {
	return !original.Available && original.LastFailureInfo == nil && waitingPrefix(f) != "" && !needsRuntimeChange(f)
}

// isSameFailure reports whether two failures are the same. Messages are compared for an invalid spec only: other messages vary while the
// cause is the same.
func isSameFailure(original, f *v1alpha1.FailureInfo) bool {
	return original != nil && original.Reason == f.Reason && original.ModelID == f.ModelID &&
		(original.Message == f.Message || f.Reason != v1alpha1.InvalidPredictorSpec)
}

// ignoredFieldEvents returns the events about the fields of a new model that have no effect. The stored status of a new model is Pending
// without a failure.
func ignoredFieldEvents(model *resourceModel) []event {
	if model.status.ActiveModelState != v1alpha1.Pending || model.status.LastFailureInfo != nil {
		return nil
	}
	var events []event
	if model.Spec.GPU != nil {
		events = append(events, event{corev1.EventTypeWarning, "FieldIgnored", fmt.Sprintf("spec.gpu %q has no effect: request GPUs in the resources of the runtime", *model.Spec.GPU)})
	}
	if model.Spec.ServiceAccountName != nil {
		events = append(events, event{corev1.EventTypeWarning, "FieldIgnored", fmt.Sprintf(
			"spec.serviceAccountName %q has no effect: remove it; the setting serviceAccountName selects the account of the pods", *model.Spec.ServiceAccountName)})
	}
	if inferenceService, ok := model.object.(*v1beta1.InferenceService); ok && len(inferenceService.Ignored) > 0 {
		events = append(events, event{corev1.EventTypeWarning, "FieldIgnored", "these fields have no effect on a model of ModelMesh; remove them, or set them in its runtime: " + strings.Join(inferenceService.Ignored, ", ")})
	}
	return events
}
