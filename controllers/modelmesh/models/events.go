package models

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// action of all events.
const action = "Reconcile"

// note is one event.
type note struct{ kind, reason, text string }

// recordEvents records what has changed for users.
func (r *models) recordEvents(rec *record, after v1alpha1.PredictorStatus) {
	for _, n := range append(transitions(rec.status, after), ignored(rec)...) {
		r.recorder.Eventf(rec.object, nil, n.kind, n.reason, action, "%s", conditions.Clip(n.text, modelmeshcontroller.MaxEventNoteBytes))
	}
}

// transitions are the events between two statuses: one for what went wrong, one for what is well again.
func transitions(before, after v1alpha1.PredictorStatus) []note {
	var out []note
	if f := after.LastFailureInfo; f != nil && !sameFailure(before.LastFailureInfo, f) {
		kind := corev1.EventTypeWarning
		if starts(before, f) {
			kind = corev1.EventTypeNormal
		}
		out = append(out, note{kind, string(f.Reason), f.Message})
	}
	switch {
	case after.ActiveModelState == v1alpha1.Loaded && before.ActiveModelState != v1alpha1.Loaded:
		out = append(out, note{corev1.EventTypeNormal, "ModelLoaded", "The model is in memory"})
	case after.TransitionStatus == v1alpha1.UpToDate && (before.TransitionStatus == v1alpha1.InProgress || before.TransitionStatus == v1alpha1.BlockedByFailedLoad):
		out = append(out, note{corev1.EventTypeNormal, "ModelReplaced", "The model of the present spec answers requests"})
	}
	return out
}

// starts tells that nothing is wrong with a model that has answered no requests yet: pods of its runtime are about to come.
func starts(before v1alpha1.PredictorStatus, f *v1alpha1.FailureInfo) bool {
	return !before.Available && before.LastFailureInfo == nil && awaitedPod(f) != "" && !awaitsChange(f)
}

// sameFailure tells whether a failure is no news. One of the spec has another text for each cause; the texts of all other failures differ where
// nothing does.
func sameFailure(before, f *v1alpha1.FailureInfo) bool {
	return before != nil && before.Reason == f.Reason && before.ModelID == f.ModelID &&
		(before.Message == f.Message || f.Reason != v1alpha1.InvalidPredictorSpec)
}

// ignored are the events about fields that have no effect, recorded when a model is registered first.
func ignored(rec *record) []note {
	if rec.status.ActiveModelState != v1alpha1.Pending || rec.status.LastFailureInfo != nil {
		return nil
	}
	var out []note
	if rec.Spec.GPU != nil {
		out = append(out, note{corev1.EventTypeWarning, "FieldIgnored", fmt.Sprintf("spec.gpu %q has no effect: ask for GPUs in the resources of the runtime", *rec.Spec.GPU)})
	}
	if rec.Spec.ServiceAccountName != nil {
		out = append(out, note{corev1.EventTypeWarning, "FieldIgnored", fmt.Sprintf(
			"spec.serviceAccountName %q has no effect: the pods of the runtime have the account of the settings", *rec.Spec.ServiceAccountName)})
	}
	if service, ok := rec.object.(*v1beta1.InferenceService); ok && len(service.Ignored) > 0 {
		out = append(out, note{corev1.EventTypeWarning, "FieldIgnored", "no effect on a model of ModelMesh, its runtime decides: " + strings.Join(service.Ignored, ", ")})
	}
	return out
}
