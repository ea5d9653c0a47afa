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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ask registers a model with the mesh, or reads the one it has where the spec is invalid, and notes what came of it. Where the mesh
// will not take the model it finds out why. An error leaves what was known before.
func (r *models) ask(ctx context.Context, client meshclient.Client, rec *record, e *entry) error {
	var info *meshpb.VModelStatusInfo
	var err error
	result := answered
	if rec.problem == "" {
		info, err = r.register(ctx, client, rec, e)
	}
	clash := status.Code(err) == codes.AlreadyExists
	if clash || rec.problem != "" {
		info, err = client.GetVModelStatus(ctx, &meshpb.GetVModelStatusRequest{VModelId: rec.Name, Owner: rec.Source})
	}
	if clash {
		result = clashOf(info, rec)
	}
	switch {
	case err == nil:
		e.outcome, e.info = result, info
	case errors.Is(err, meshclient.ErrNoAddress):
		e.outcome = noAddress
	default:
		return fmt.Errorf("asking the mesh of namespace %s about the model: %w", rec.Namespace, err)
	}
	return nil
}

// clashOf says why the mesh will not take a model: because another source has the name, or because it has a model of the same id that
// differs.
func clashOf(info *meshpb.VModelStatusInfo, rec *record) outcome {
	if owner := info.GetOwner(); (owner == "" || owner == rec.Source) && info.GetTargetModelId() != "" {
		return different
	}
	return taken
}

// register makes the mesh know the model as the spec describes it.
func (r *models) register(ctx context.Context, client meshclient.Client, rec *record, e *entry) (*meshpb.VModelStatusInfo, error) {
	key, err := rec.Key()
	if err != nil {
		return nil, err
	}
	load, err := r.orders(ctx, rec, e)
	if err != nil {
		return nil, err
	}
	info, err := client.SetVModel(ctx, &meshpb.SetVModelRequest{
		VModelId: rec.Name, Owner: rec.Source, TargetModelId: rec.ID(), AutoDeleteTargetModel: true, LoadNow: load,
		ModelInfo: &meshpb.ModelInfo{Type: rec.Label(), Path: rec.Path(), Key: key},
	})
	if err == nil && (load || e.order == orderStart) {
		e.order = orderNone
	}
	return info, err
}

// orders decides whether the mesh has to load the model at once. One that was dropped for others is not, even if the pods have
// changed: its next request brings it back. Only where no runtime can do that any more the order is what shows it.
func (r *models) orders(ctx context.Context, rec *record, e *entry) (bool, error) {
	switch {
	case rec.Terminating:
		return false, nil
	case wantsLoad(rec.status) || e.order == orderNew:
		return true, nil
	case e.order < orderLost:
		return e.order == orderStart && rec.status.ActiveModelState == v1alpha1.Loading, nil
	case rec.status.ActiveModelState != v1alpha1.Standby:
		return true, nil
	}
	supported, err := r.isSupported(ctx, rec)
	return err == nil && !supported, err
}

// isSupported tells whether the namespace has a runtime for the model.
func (r *models) isSupported(ctx context.Context, rec *record) (bool, error) {
	supported, err := r.supported(ctx, rec.Namespace, rec.Label())
	if err != nil {
		return false, fmt.Errorf("looking for a runtime that supports %s: %w", rec.Label(), err)
	}
	return supported, nil
}

// desiredStatus is the status that follows from what is known; the present one where nothing is.
func (r *models) desiredStatus(ctx context.Context, client meshclient.Client, rec *record, e *entry) (v1alpha1.PredictorStatus, error) {
	next := *rec.status.DeepCopy()
	var a answer
	if e.outcome == answered || e.outcome == different {
		var err error
		if a, err = r.interpret(ctx, rec, e); err != nil {
			return next, err
		}
		next.GRPCEndpoint, next.HTTPEndpoint = client.Endpoints()
	}
	switch {
	case rec.problem != "":
		if e.outcome == answered {
			next = withStates(next, a)
		}
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, rec.problem, rec.id())
	case e.outcome == answered:
		next = withAnswer(next, a, r.clock.Now())
	case e.outcome == noAddress:
		next = withFailure(clearInvalidSpec(next), v1alpha1.RuntimeUnhealthy, textNoPods, rec.id())
	case e.outcome == taken:
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, textOtherSource, rec.id())
	case e.outcome == different:
		next = withFailure(withStates(next, a), v1alpha1.InvalidPredictorSpec, textDifferent, rec.id())
	default:
		return next, nil
	}
	next.Available = available(next)
	return r.withCause(ctx, rec, next)
}

// withCause says behind the words that users know why there is no pod. Until that is known, what was said stays.
func (r *models) withCause(ctx context.Context, rec *record, next v1alpha1.PredictorStatus) (v1alpha1.PredictorStatus, error) {
	text := awaitedPod(next.LastFailureInfo)
	if text == "" {
		return next, nil
	}
	cause, known, err := r.cause(ctx, rec.Namespace, rec.Label())
	if err != nil {
		return next, fmt.Errorf("looking for the cause: %w", err)
	}
	before, failure := rec.status.LastFailureInfo, *next.LastFailureInfo
	same := awaitedPod(before) == text && before.ModelID == failure.ModelID
	switch {
	case !known && same:
		failure.Message = before.Message
	case cause.Invalid:
		failure.Message = text + invalidRuntime + cause.Message
	case cause.Message != "":
		failure.Message = text + ": " + cause.Message
	default:
		failure.Message = text
	}
	failure.Message = conditions.Clip(redact.Text(failure.Message), maxMessage)
	if same && failure.Time != nil && before.Time != nil {
		failure.Time = before.Time // it waits since then
	}
	next.LastFailureInfo = &failure
	return next, nil
}

// interpret reads the last answer, by the light of which runtimes there are.
func (r *models) interpret(ctx context.Context, rec *record, e *entry) (answer, error) {
	a := interpret(e.info)
	if !a.active.known || a.targeted && !a.target.known {
		log.FromContext(ctx).V(1).Info("The mesh does not know the state of a model that it has", "status", e.info.GetStatus().String())
	}
	speechless := a.speechless()
	if !a.active.unsupported() && !a.target.unsupported() && !speechless || rec.problem != "" {
		return a, nil
	}
	supported, err := r.isSupported(ctx, rec)
	if err != nil {
		return a, err
	}
	if speechless {
		a.target = unsupportedLabel(rec.Label())
	}
	if supported && e.awaits(r.clock.Now()) {
		a.active, a.target = a.active.awaited(), a.target.awaited()
	}
	return a, nil
}

// clearInvalidSpec is the status of a spec that is valid again and that the mesh does not know yet.
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
