package models

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// componentTransformer is the key of what KServe runs before a model; the addresses of the whole are then KServe's.
const componentTransformer = "transformer"

// besides are the conditions of KServe that an InferenceService needs to be ready, where it has them.
var besides = []string{"ExplainerReady", "IngressReady", "RoutesReady", "TransformerReady"}

// predictorStatus reads what of the status of an InferenceService is about its model.
func predictorStatus(s *v1beta1.InferenceServiceStatus) v1alpha1.PredictorStatus {
	out := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending, ObservedGeneration: s.ObservedGeneration}
	if m := s.ModelStatus; m != nil {
		out.TransitionStatus = m.TransitionStatus
		if m.States != nil {
			out.ActiveModelState, out.TargetModelState = cmp.Or(m.States.ActiveModelState, v1alpha1.Pending), m.States.TargetModelState
		}
		if m.Copies != nil {
			out.FailedCopies, out.TotalCopies = m.Copies.FailedCopies, m.Copies.TotalCopies
		}
		if f := m.LastFailureInfo; f != nil && *f != (v1beta1.FailureInfo{}) {
			out.LastFailureInfo = &v1alpha1.FailureInfo{Location: f.Location, Reason: f.Reason, Message: f.Message, ModelID: f.ModelRevisionName, Time: f.Time}
		}
	}
	for _, c := range s.Conditions {
		if c.Type == v1beta1.ConditionPredictorReady {
			out.Available = c.Status == corev1.ConditionTrue
		}
	}
	p := s.Components[v1beta1.ComponentPredictor]
	out.GRPCEndpoint, out.HTTPEndpoint = p.GRPCURL, p.RestURL
	return out
}

// putStatus puts the status of a model into that of an InferenceService, and leaves alone what is not about the model.
func putStatus(s *v1beta1.InferenceServiceStatus, status v1alpha1.PredictorStatus, name string, now time.Time) {
	s.ModelStatus = &v1beta1.ModelStatus{
		TransitionStatus: status.TransitionStatus,
		States:           &v1beta1.ModelRevisionStates{ActiveModelState: status.ActiveModelState, TargetModelState: status.TargetModelState},
		Copies:           &v1beta1.ModelCopies{FailedCopies: status.FailedCopies, TotalCopies: status.TotalCopies},
	}
	if f := status.LastFailureInfo; f != nil {
		s.ModelStatus.LastFailureInfo = &v1beta1.FailureInfo{Location: f.Location, Reason: f.Reason, Message: f.Message, ModelRevisionName: f.ModelID, Time: f.Time}
	}
	s.ObservedGeneration = max(s.ObservedGeneration, status.ObservedGeneration) // KServe writes it too, for a transformer
	address(s, status, name)
	predictor := v1beta1.Condition{Type: v1beta1.ConditionPredictorReady, Status: corev1.ConditionTrue}
	if !status.Available {
		predictor.Status = corev1.ConditionFalse
		predictor.Reason, predictor.Message = why(status)
	}
	set(s, predictor, now)
	ready := predictor
	ready.Type = v1beta1.ConditionReady
	for _, c := range s.Conditions {
		if ready.Status == corev1.ConditionTrue && c.Status != corev1.ConditionTrue && slices.Contains(besides, c.Type) {
			ready.Status, ready.Reason, ready.Message = c.Status, c.Reason, c.Message
		}
	}
	set(s, ready, now)
}

// address publishes the model, or takes back what was published. No address leads past a transformer.
func address(s *v1beta1.InferenceServiceStatus, status v1alpha1.PredictorStatus, name string) {
	var p v1beta1.ComponentStatus
	var rest string
	if status.Available {
		p = v1beta1.ComponentStatus{URL: status.GRPCEndpoint, GRPCURL: status.GRPCEndpoint, RestURL: status.HTTPEndpoint}
		if status.HTTPEndpoint != "" {
			rest = status.HTTPEndpoint + "/v2/models/" + name
		}
	}
	if _, before := s.Components[v1beta1.ComponentPredictor]; before || p != (v1beta1.ComponentStatus{}) {
		if s.Components == nil {
			s.Components = map[string]v1beta1.ComponentStatus{}
		}
		s.Components[v1beta1.ComponentPredictor] = p
	}
	if _, before := s.Components[componentTransformer]; before {
		return
	}
	s.URL = p.URL
	switch {
	case rest != "":
		s.Address = &v1beta1.Address{URL: rest}
	case s.Address != nil:
		s.Address = &v1beta1.Address{}
	}
}

// why is the reason and the message for a model that does not answer.
func why(s v1alpha1.PredictorStatus) (reason, message string) {
	if f := s.LastFailureInfo; f != nil {
		return string(f.Reason), f.Message
	}
	switch s.ActiveModelState {
	case v1alpha1.Pending, v1alpha1.NoState:
		return "ModelPending", "The model is not registered with the mesh yet"
	default:
		return "Model" + string(s.ActiveModelState), "The model is in state " + string(s.ActiveModelState)
	}
}

// set puts a condition in its place; its time moves with its status only. Conditions are in the order of their types, as KServe
// keeps them.
func set(s *v1beta1.InferenceServiceStatus, c v1beta1.Condition, now time.Time) {
	c.LastTransitionTime = *seconds(now)
	at := slices.IndexFunc(s.Conditions, func(o v1beta1.Condition) bool { return o.Type == c.Type })
	if at < 0 {
		s.Conditions = append(s.Conditions, c)
		slices.SortStableFunc(s.Conditions, func(a, b v1beta1.Condition) int { return cmp.Compare(a.Type, b.Type) })
		return
	}
	before := s.Conditions[at]
	c.Severity = before.Severity
	if before.Status == c.Status && !before.LastTransitionTime.IsZero() {
		c.LastTransitionTime = before.LastTransitionTime
	}
	s.Conditions[at] = c
}

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
	conditions.Summarize(&s.Conditions, s.ObservedGeneration, conditions.SummaryOptions{ReadyCondition: conditionAvailable, Pending: pending(s, generation), Stalled: stuck(s)})
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
	f := s.LastFailureInfo
	return !s.Available && f != nil && (f.Reason != v1alpha1.RuntimeUnhealthy || awaitsChange(f))
}
