package modelmesh

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/pkg/mesh/meshpb"
)

// SetVModel implements meshpb.ModelMeshServer.
func (l *Layer) SetVModel(ctx context.Context, r *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	defer l.mu.Unlock()
	if err := l.enter("setVModel"); err != nil {
		return nil, err
	}
	if r.GetVModelId() == "" || r.GetTargetModelId() == "" {
		return nil, status.Error(codes.InvalidArgument, "vModelId and targetModelId are required")
	}
	former, err := read[vmodel](ctx, l.store, keyVModels+r.GetVModelId())
	if err != nil {
		return nil, err
	}
	if err := refuse(former, r); err != nil {
		return nil, err
	}
	target, err := l.register(ctx, r)
	if err != nil {
		return nil, err
	}
	next, err := l.pointTo(ctx, former, target, r)
	if err != nil {
		return nil, err
	}
	transition := next.Active != next.Target
	if r.GetLoadNow() || transition {
		l.startLoad(r.GetTargetModelId(), target)
	}
	next.Failed = transition && l.loads[r.GetTargetModelId()] == nil
	if former == nil || *former != *next {
		if err := l.replace(ctx, r.GetVModelId(), former, next); err != nil {
			return nil, err
		}
	}
	return l.describeVModel(ctx, next)
}

// refuse says why a request cannot be followed.
func refuse(former *vmodel, r *meshpb.SetVModelRequest) error {
	switch {
	case former == nil && r.GetUpdateOnly():
		return status.Errorf(codes.NotFound, "vmodel %s not found", r.GetVModelId())
	case former != nil && ownerOr(former.Owner) != ownerOr(r.GetOwner()):
		return status.Errorf(codes.AlreadyExists, "vmodel %s already exists with different owner %s", r.GetVModelId(), ownerOr(former.Owner))
	case r.GetExpectedTargetModelId() != "" && (former == nil || former.Target != r.GetExpectedTargetModelId()):
		return status.Errorf(codes.FailedPrecondition, "vmodel %s has another target than expected", r.GetVModelId())
	}
	return nil
}

// register makes the target known, or checks that it is the same as the one that is.
func (l *Layer) register(ctx context.Context, r *meshpb.SetVModelRequest) (*model, error) {
	m, err := read[model](ctx, l.store, keyModels+r.GetTargetModelId())
	info := r.GetModelInfo()
	switch {
	case err != nil:
		return nil, err
	case m != nil && info != nil && (m.Type != info.GetType() || m.Path != info.GetPath() || m.Key != info.GetKey()):
		return nil, status.Errorf(codes.AlreadyExists, "model %s already exists with different parameters", r.GetTargetModelId())
	case m != nil:
		return m, nil
	case info == nil:
		return nil, status.Errorf(codes.NotFound, "model %s not found", r.GetTargetModelId())
	}
	m = &model{Type: info.GetType(), Path: info.GetPath(), Key: info.GetKey(), AutoDel: r.GetAutoDeleteTargetModel()}
	return m, l.store.put(ctx, keyModels+r.GetTargetModelId(), m)
}

// pointTo decides what the vmodel becomes. The target is active at once where there is nothing loaded that it would replace.
func (l *Layer) pointTo(ctx context.Context, former *vmodel, wanted *model, r *meshpb.SetVModelRequest) (*vmodel, error) {
	target := r.GetTargetModelId()
	next := &vmodel{Owner: r.GetOwner(), Active: target, Target: target}
	if former == nil || r.GetForce() || former.Active == target || len(wanted.Instances) > 0 {
		return next, nil
	}
	active, err := read[model](ctx, l.store, keyModels+former.Active)
	if err != nil {
		return nil, err
	}
	if active == nil || len(active.Instances) == 0 {
		return next, nil
	}
	next.Active = former.Active
	return next, nil
}

// replace writes a vmodel, nil to delete it, and then the models that gained or lost it.
func (l *Layer) replace(ctx context.Context, id string, former, next *vmodel) error {
	err := error(nil)
	if next == nil {
		err = l.store.remove(ctx, keyVModels+id)
	} else {
		err = l.store.put(ctx, keyVModels+id, next)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, pointed := range next.points() {
		if !slices.Contains(former.points(), pointed) {
			errs = append(errs, l.count(ctx, pointed, 1))
		}
	}
	for _, pointed := range former.points() {
		if !slices.Contains(next.points(), pointed) {
			errs = append(errs, l.count(ctx, pointed, -1))
		}
	}
	return errors.Join(errs...)
}

// count changes the number of vmodels that point to a model. One that deletes itself goes with the last.
func (l *Layer) count(ctx context.Context, id string, change int) error {
	m, err := read[model](ctx, l.store, keyModels+id)
	if err != nil || m == nil {
		return err
	}
	m.Refs += change
	if m.Refs > 0 || !m.AutoDel {
		return l.store.put(ctx, keyModels+id, m)
	}
	if run := l.loads[id]; run != nil {
		run.cancel()
		delete(l.loads, id)
	}
	return l.store.remove(ctx, keyModels+id)
}

// DeleteVModel implements meshpb.ModelMeshServer.
func (l *Layer) DeleteVModel(ctx context.Context, r *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	defer l.mu.Unlock()
	if err := l.enter("deleteVModel"); err != nil {
		return nil, err
	}
	v, err := read[vmodel](ctx, l.store, keyVModels+r.GetVModelId())
	if err != nil {
		return nil, err
	}
	if v == nil || ownerOr(v.Owner) != ownerOr(r.GetOwner()) {
		return &meshpb.DeleteVModelResponse{}, nil
	}
	if err := l.replace(ctx, r.GetVModelId(), v, nil); err != nil {
		return nil, err
	}
	return &meshpb.DeleteVModelResponse{}, nil
}

// GetVModelStatus implements meshpb.ModelMeshServer.
func (l *Layer) GetVModelStatus(ctx context.Context, r *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	defer l.mu.Unlock()
	if err := l.enter("getVModelStatus"); err != nil {
		return nil, err
	}
	v, err := read[vmodel](ctx, l.store, keyVModels+r.GetVModelId())
	if err != nil {
		return nil, err
	}
	if v != nil && r.GetOwner() != "" && ownerOr(v.Owner) != r.GetOwner() {
		v = nil
	}
	return l.describeVModel(ctx, v)
}
