package models

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// conditionAvailable is the condition of a Predictor that says whether requests are answered.
const conditionAvailable = "Available"

// summarized is the status of a Predictor with the conditions that follow from the rest of it. An object of a newer generation than the
// status is about is not ready.
func summarized(s v1alpha1.PredictorStatus, generation int64) v1alpha1.PredictorStatus {
	s.Conditions = slices.Clone(s.Conditions)
	status, reason, message := metav1.ConditionFalse, "", ""
	if s.Available {
		status, reason, message = metav1.ConditionTrue, "Model"+string(s.ActiveModelState), "Requests are answered"
	} else {
		reason, message = why(s)
	}
	conditions.Set(&s.Conditions, conditionAvailable, status, cmp.Or(reason, "ModelPending"), message, s.ObservedGeneration)
	conditions.Summarize(&s.Conditions, s.ObservedGeneration, conditions.Facts{Main: conditionAvailable, Pending: pending(s, generation), Stuck: stuck(s)})
	return s
}

// pending says why the model that answers, if one does, is not that of the present spec.
func pending(s v1alpha1.PredictorStatus, generation int64) *conditions.Pending {
	switch {
	case stuck(s):
		reason, message := why(s)
		return &conditions.Pending{Reason: cmp.Or(reason, string(s.TransitionStatus)), Message: "The former model answers: " + message}
	case silent(s.LastFailureInfo):
		return &conditions.Pending{Reason: string(s.LastFailureInfo.Reason), Message: s.LastFailureInfo.Message}
	case s.ObservedGeneration != generation:
		return &conditions.Pending{Reason: string(v1alpha1.InProgress), Message: "The mesh has not answered for the present spec yet"}
	case s.ActiveModelState == v1alpha1.Loading: // requests wait for it, and it may yet fail
		reason, message := why(s)
		return &conditions.Pending{Reason: cmp.Or(reason, "ModelLoading"), Message: message}
	case s.TransitionStatus != v1alpha1.UpToDate:
		return &conditions.Pending{Reason: string(v1alpha1.InProgress), Message: "The former model answers until the new one does"}
	}
	return nil
}

// stuck tells whether the spec, a runtime or what the storage holds has to be changed before the model of the spec is served.
func stuck(s v1alpha1.PredictorStatus) bool {
	if s.TransitionStatus == v1alpha1.InvalidSpec || s.TransitionStatus == v1alpha1.BlockedByFailedLoad {
		return true
	}
	return !s.Available && s.LastFailureInfo != nil && s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy
}
