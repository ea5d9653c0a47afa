package models

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// callMesh registers a model that has a valid spec, and stores the result. For an invalid spec, or after a conflict, it reads the vmodel
// that the mesh has. After an error other than ErrNoAddress the previous result is kept.
func callMesh(ctx context.Context, client meshclient.Client, model *resourceModel, state *modelState, loadNow bool) error {
	var info *meshpb.VModelStatusInfo
	var err error
	result := statusReceived
	if model.specError == "" {
		info, err = register(ctx, client, model, state, loadNow)
	}
	hasConflict := status.Code(err) == codes.AlreadyExists
	if hasConflict || model.specError != "" {
		info, err = client.GetVModelStatus(ctx, &meshpb.GetVModelStatusRequest{VModelId: model.Name, Owner: model.Source})
	}
	if hasConflict {
		result = conflictResult(info, model)
	}
	switch {
	case err == nil:
		state.result, state.vmodel = result, parseVModelStatus(info, model.status.LastFailureInfo)
	case errors.Is(err, meshclient.ErrNoAddress):
		state.result = noAddress
	default:
		return fmt.Errorf("registering the model with the mesh of namespace %s: %w", model.Namespace, err)
	}
	return nil
}

// conflictResult returns the result of a registration that failed with AlreadyExists.
func conflictResult(info *meshpb.VModelStatusInfo, model *resourceModel) callResult {
	if owner := info.GetOwner(); (owner == "" || owner == model.Source) && info.GetTargetModelId() != "" {
		return specMismatch
	}
	return idConflict
}

// register creates or updates the vmodel according to the spec.
func register(ctx context.Context, client meshclient.Client, model *resourceModel, state *modelState, loadNow bool) (*meshpb.VModelStatusInfo, error) {
	info, err := client.SetVModel(ctx, &meshpb.SetVModelRequest{
		VModelId: model.Name, Owner: model.Source, TargetModelId: model.ID(), AutoDeleteTargetModel: true, LoadNow: loadNow,
		ModelInfo: &meshpb.ModelInfo{Type: model.Label(), Path: model.Path(), Key: model.Key()},
	})
	if err == nil && (loadNow || state.loadReason == loadReasonRestart) {
		state.loadReason = loadReasonNone
	}
	return info, err
}

// shouldLoadNow returns LoadNow of the request. After a change of the pods it is false for an evicted model that a runtime supports: the
// next inference request loads the model. The mesh reports a model without a runtime only for LoadNow.
func (r *modelReconciler) shouldLoadNow(ctx context.Context, model *resourceModel, state *modelState) (bool, error) {
	switch {
	case model.Terminating, model.specError != "":
		return false, nil
	case needsLoad(model.status) || state.loadReason == loadReasonSpecChanged:
		return true, nil
	case state.loadReason < loadReasonPodsChanged:
		return state.loadReason == loadReasonRestart && model.status.ActiveModelState == v1alpha1.Loading, nil
	case model.status.ActiveModelState != v1alpha1.Standby:
		return true, nil
	}
	supported, err := r.isSupported(ctx, model)
	return err == nil && !supported, err
}

// isSupported reports whether the namespace has a runtime for the model.
func (r *modelReconciler) isSupported(ctx context.Context, model *resourceModel) (bool, error) {
	supported, err := r.supported(ctx, model.Namespace, model.Label())
	if err != nil {
		return false, fmt.Errorf("looking for a runtime that supports %s: %w", model.Label(), err)
	}
	return supported, nil
}

// desiredStatus returns the status for the error of the spec and the last result, or the current status if there is neither.
func (r *modelReconciler) desiredStatus(ctx context.Context, client meshclient.Client, model *resourceModel, state *modelState) (v1alpha1.PredictorStatus, error) {
	next := *model.status.DeepCopy()
	var vmodel vmodelStatus
	if state.result == statusReceived || state.result == specMismatch {
		var err error
		if vmodel, err = r.interpretResult(ctx, model, state); err != nil {
			return next, err
		}
		next.GRPCEndpoint, next.HTTPEndpoint = client.URLs()
	}
	switch {
	case model.specError != "":
		if state.result == statusReceived {
			next = withStates(next, vmodel)
		}
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, model.specError, model.modelID())
	case state.result == statusReceived:
		next = withVModelStatus(next, vmodel, r.clock.Now())
	case state.result == noAddress:
		next = withFailure(clearInvalidSpec(next), v1alpha1.RuntimeUnhealthy, messageNoPods, model.modelID())
	case state.result == idConflict:
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, messageIDConflict, model.modelID())
	case state.result == specMismatch:
		next = withFailure(withStates(next, vmodel), v1alpha1.InvalidPredictorSpec, messageSpecMismatch, model.modelID())
	default:
		return next, nil
	}
	next.Available = isAvailable(next)
	return r.withCause(ctx, model, next)
}

// withCause adds the reason why there is no pod to the failure message. An unknown reason keeps the stored message of the same failure.
func (r *modelReconciler) withCause(ctx context.Context, model *resourceModel, next v1alpha1.PredictorStatus) (v1alpha1.PredictorStatus, error) {
	prefix := waitingPrefix(next.LastFailureInfo)
	if prefix == "" {
		return next, nil
	}
	cause, known, err := r.cause(ctx, model.Namespace, model.Label())
	if err != nil {
		return next, fmt.Errorf("looking for the cause: %w", err)
	}
	stored, failure := model.status.LastFailureInfo, *next.LastFailureInfo
	isSame := waitingPrefix(stored) == prefix && stored.ModelID == failure.ModelID
	switch {
	case !known && isSame:
		failure.Message = stored.Message
	case cause.Invalid:
		failure.Message = prefix + invalidRuntimeInfix + cause.Message
	case cause.Message != "":
		failure.Message = prefix + ": " + cause.Message
	default:
		failure.Message = prefix
	}
	failure.Message = redact.Clip(failure.Message, maxMessageBytes)
	if isSame && failure.Time != nil && stored.Time != nil {
		failure.Time = stored.Time
	}
	next.LastFailureInfo = &failure
	return next, nil
}

// interpretResult returns the last response of the mesh with two corrections: a target that no instance can load is unsupported, and an
// unsupported model waits for a pod while the mesh may not know its runtime yet.
func (r *modelReconciler) interpretResult(ctx context.Context, model *resourceModel, state *modelState) (vmodelStatus, error) {
	vmodel := state.vmodel
	if !vmodel.active.known || vmodel.hasTargetStatus && !vmodel.target.known {
		log.FromContext(ctx).V(1).Info("The mesh does not know the state of a model that it has", "status", vmodel.status.String())
	}
	withoutInstance := vmodel.isTargetWithoutInstance()
	if !vmodel.active.isUnsupported() && !vmodel.target.isUnsupported() && !withoutInstance || model.specError != "" {
		return vmodel, nil
	}
	supported, err := r.isSupported(ctx, model)
	if err != nil {
		return vmodel, err
	}
	if withoutInstance {
		vmodel.target = unsupportedStatus(model.Label())
	}
	if supported && state.startOrCheckGracePeriod(r.clock.Now()) {
		vmodel.active, vmodel.target = vmodel.active.waitIfUnsupported(), vmodel.target.waitIfUnsupported()
	}
	return vmodel, nil
}

// clearInvalidSpec replaces the transition InvalidSpec of a spec that is valid again and not registered yet.
func clearInvalidSpec(s v1alpha1.PredictorStatus) v1alpha1.PredictorStatus {
	if s.TransitionStatus != v1alpha1.InvalidSpec {
		return s
	}
	s.TransitionStatus = v1alpha1.InProgress
	if s.ActiveModelState == v1alpha1.Pending {
		s.TransitionStatus = v1alpha1.UpToDate
	}
	return s
}
