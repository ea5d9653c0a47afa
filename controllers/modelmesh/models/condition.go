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

// componentTransformer is the key of a transformer in status.components. With a transformer KServe sets status.url and status.address.
const componentTransformer = "transformer"

// requiredKServeConditions are the conditions of KServe that must be True, if they exist, for a ready InferenceService.
var requiredKServeConditions = []string{"ExplainerReady", "IngressReady", "RoutesReady", "TransformerReady"}

// toPredictorStatus returns the fields of the status of an InferenceService that describe its model.
func toPredictorStatus(s *v1beta1.InferenceServiceStatus) v1alpha1.PredictorStatus {
	status := v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Pending, ObservedGeneration: s.ObservedGeneration}
	model := cmp.Or(s.ModelStatus, &v1beta1.ModelStatus{})
	status.TransitionStatus = model.TransitionStatus
	if model.States != nil {
		status.ActiveModelState, status.TargetModelState = cmp.Or(model.States.ActiveModelState, v1alpha1.Pending), model.States.TargetModelState
	}
	if hasFirstLoadFailed(status) {
		status.TransitionStatus = v1alpha1.UpToDate
	}
	if model.Copies != nil {
		status.FailedCopies, status.TotalCopies = model.Copies.FailedCopies, model.Copies.TotalCopies
	}
	if f := model.LastFailureInfo; f != nil && *f != (v1beta1.FailureInfo{}) {
		status.LastFailureInfo = &v1alpha1.FailureInfo{Location: f.Location, Reason: f.Reason, Message: f.Message, ModelID: f.ModelRevisionName, Time: f.Time}
	}
	for _, c := range s.Conditions {
		if c.Type == v1beta1.ConditionPredictorReady {
			status.Available = c.Status == corev1.ConditionTrue
		}
	}
	predictor := s.Components[v1beta1.ComponentPredictor]
	status.GRPCEndpoint, status.HTTPEndpoint = predictor.GRPCURL, predictor.RestURL
	return status
}

// hasFirstLoadFailed reports whether the first model of an InferenceService failed to load. KServe reports BlockedByFailedLoad for it.
// ModelMesh reports UpToDate, which clients such as Argo CD interpret as a model that is still loading.
func hasFirstLoadFailed(s v1alpha1.PredictorStatus) bool {
	return s.TransitionStatus == v1alpha1.BlockedByFailedLoad && s.ActiveModelState == v1alpha1.FailedToLoad
}

// setModelStatus sets the fields of the status of an InferenceService that describe its model.
func setModelStatus(s *v1beta1.InferenceServiceStatus, status v1alpha1.PredictorStatus, name string, now time.Time) {
	if status.TransitionStatus == v1alpha1.UpToDate && status.ActiveModelState == v1alpha1.FailedToLoad {
		status.TransitionStatus = v1alpha1.BlockedByFailedLoad
	}
	s.ModelStatus = &v1beta1.ModelStatus{
		TransitionStatus: status.TransitionStatus,
		States:           &v1beta1.ModelRevisionStates{ActiveModelState: status.ActiveModelState, TargetModelState: status.TargetModelState},
		Copies:           &v1beta1.ModelCopies{FailedCopies: status.FailedCopies, TotalCopies: status.TotalCopies},
	}
	if f := status.LastFailureInfo; f != nil {
		s.ModelStatus.LastFailureInfo = &v1beta1.FailureInfo{Location: f.Location, Reason: f.Reason, Message: f.Message, ModelRevisionName: f.ModelID, Time: f.Time}
	}
	s.ObservedGeneration = max(s.ObservedGeneration, status.ObservedGeneration) // KServe sets it too, for a transformer
	setAddresses(s, status, name)
	predictor := v1beta1.Condition{Type: v1beta1.ConditionPredictorReady, Status: corev1.ConditionTrue}
	if !status.Available {
		predictor.Status = corev1.ConditionFalse
		predictor.Reason, predictor.Message = unavailableReason(status)
	}
	setCondition(s, predictor, now)
	ready := predictor
	ready.Type = v1beta1.ConditionReady
	for _, c := range s.Conditions {
		if ready.Status == corev1.ConditionTrue && c.Status != corev1.ConditionTrue && slices.Contains(requiredKServeConditions, c.Type) {
			ready.Status, ready.Reason, ready.Message = c.Status, c.Reason, c.Message
		}
	}
	setCondition(s, ready, now)
}

// setAddresses sets the addresses of an available model and clears those of any other. With a transformer it leaves the addresses of the
// InferenceService to KServe: clients must not bypass the transformer.
func setAddresses(s *v1beta1.InferenceServiceStatus, status v1alpha1.PredictorStatus, name string) {
	var predictor v1beta1.ComponentStatus
	var restURL string
	if status.Available {
		predictor = v1beta1.ComponentStatus{URL: status.GRPCEndpoint, GRPCURL: status.GRPCEndpoint, RestURL: status.HTTPEndpoint}
		if status.HTTPEndpoint != "" {
			restURL = status.HTTPEndpoint + "/v2/models/" + name
		}
	}
	if _, exists := s.Components[v1beta1.ComponentPredictor]; exists || predictor != (v1beta1.ComponentStatus{}) {
		if s.Components == nil {
			s.Components = map[string]v1beta1.ComponentStatus{}
		}
		s.Components[v1beta1.ComponentPredictor] = predictor
	}
	if _, exists := s.Components[componentTransformer]; exists {
		return
	}
	s.URL = predictor.URL
	switch {
	case restURL != "":
		s.Address = &v1beta1.Address{URL: restURL}
	case s.Address != nil:
		s.Address = &v1beta1.Address{}
	}
}

// unavailableReason returns the reason and message of the failure of a model or, without a failure, of its state.
func unavailableReason(s v1alpha1.PredictorStatus) (reason, message string) {
	if f := s.LastFailureInfo; f != nil {
		return string(f.Reason), f.Message
	}
	switch s.ActiveModelState {
	case v1alpha1.Pending, v1alpha1.NoState:
		return "ModelPending", "The model is not registered with ModelMesh yet"
	default:
		return "Model" + string(s.ActiveModelState), "The model is in state " + string(s.ActiveModelState)
	}
}

// setCondition sets a condition. Its transition time changes only with its status. Conditions are sorted by type, as KServe sorts them.
func setCondition(s *v1beta1.InferenceServiceStatus, c v1beta1.Condition, now time.Time) {
	c.LastTransitionTime = *metaTime(now)
	index := slices.IndexFunc(s.Conditions, func(o v1beta1.Condition) bool { return o.Type == c.Type })
	if index < 0 {
		s.Conditions = append(s.Conditions, c)
		slices.SortStableFunc(s.Conditions, func(a, b v1beta1.Condition) int { return cmp.Compare(a.Type, b.Type) })
		return
	}
	existing := s.Conditions[index]
	c.Severity = existing.Severity
	if existing.Status == c.Status && !existing.LastTransitionTime.IsZero() {
		c.LastTransitionTime = existing.LastTransitionTime
	}
	s.Conditions[index] = c
}

const conditionAvailable = "Available"

// withConditions sets the conditions of a Predictor from the other fields of the status. A status of an older generation is not ready.
func withConditions(s v1alpha1.PredictorStatus, generation int64) v1alpha1.PredictorStatus {
	s.Conditions = slices.Clone(s.Conditions)
	status, reason, message := metav1.ConditionFalse, "", ""
	switch {
	case !s.Available:
		reason, message = unavailableReason(s)
	case s.ActiveModelState == v1alpha1.Standby:
		status, reason, message = metav1.ConditionTrue, "ModelStandby", "The model is not in memory; the first request loads it"
	default:
		status, reason, message = metav1.ConditionTrue, "Model"+string(s.ActiveModelState), "The model accepts inference requests"
	}
	conditions.Set(&s.Conditions, conditionAvailable, status, cmp.Or(reason, "ModelPending"), message, s.ObservedGeneration)
	conditions.Summarize(&s.Conditions, s.ObservedGeneration, conditions.SummaryOptions{ReadyCondition: conditionAvailable, Pending: pendingReason(s, generation), Stalled: isStuck(s)})
	return s
}

// pendingReason returns why an available model may not serve the current spec, or nil.
func pendingReason(s v1alpha1.PredictorStatus, generation int64) *conditions.Pending {
	switch {
	case isStuck(s):
		reason, message := unavailableReason(s)
		return &conditions.Pending{Reason: cmp.Or(reason, string(s.TransitionStatus)), Message: "The previous model serves requests: " + message}
	case isMeshUnreachable(s.LastFailureInfo):
		return &conditions.Pending{Reason: string(s.LastFailureInfo.Reason), Message: s.LastFailureInfo.Message}
	case s.ObservedGeneration != generation:
		return &conditions.Pending{Reason: string(v1alpha1.InProgress), Message: "ModelMesh has not reported the state of the current spec yet"}
	case s.ActiveModelState == v1alpha1.Loading: // requests wait until the model is loaded, and loading may fail
		reason, message := unavailableReason(s)
		return &conditions.Pending{Reason: cmp.Or(reason, "ModelLoading"), Message: message}
	case s.TransitionStatus != v1alpha1.UpToDate:
		return &conditions.Pending{Reason: string(v1alpha1.InProgress), Message: "The previous model serves requests until the new one is loaded"}
	}
	return nil
}

// isStuck reports whether the model stays in its state until its spec, a runtime or the stored files change.
func isStuck(s v1alpha1.PredictorStatus) bool {
	if s.TransitionStatus == v1alpha1.InvalidSpec || s.TransitionStatus == v1alpha1.BlockedByFailedLoad {
		return true
	}
	f := s.LastFailureInfo
	return !s.Available && f != nil && (f.Reason != v1alpha1.RuntimeUnhealthy || needsRuntimeChange(f))
}
