package modelmesh

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// Initial age of the last use of a model, with and without load_now.
const (
	ageIfLoadedNow   = time.Hour
	ageIfLoadedLater = 6 * time.Hour
)

// View is the gRPC service of one instance. An instance knows its own loads immediately.
type View struct {
	meshpb.UnimplementedModelMeshServer
	layer *Layer
	at    string
}

// At returns the view of an instance; "" means any instance.
func (l *Layer) At(instance string) *View { return &View{layer: l, at: instance} }

// SetVModel implements meshpb.ModelMeshServer.
func (l *Layer) SetVModel(ctx context.Context, r *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	return l.At("").SetVModel(ctx, r)
}

// DeleteVModel implements meshpb.ModelMeshServer.
func (l *Layer) DeleteVModel(ctx context.Context, r *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	return l.At("").DeleteVModel(ctx, r)
}

// GetVModelStatus implements meshpb.ModelMeshServer.
func (l *Layer) GetVModelStatus(ctx context.Context, r *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	return l.At("").GetVModelStatus(ctx, r)
}

// SetVModel implements meshpb.ModelMeshServer.
func (v *View) SetVModel(ctx context.Context, r *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("setVModel"); err != nil {
		return nil, err
	}
	existing, target, err := l.prepare(r)
	if err != nil {
		return nil, err
	}
	if l.storeWiped {
		return l.restoreRecords(r)
	}
	next := l.nextState(existing, r)
	if next != existing {
		if err := l.writeVModel(r.GetVModelId(), existing, next, target); err != nil {
			return nil, err
		}
	}
	var active *meshpb.ModelStatusInfo
	switch {
	case next.Active != next.Target && next != existing:
		l.after(targetDelay, func() { l.loadTarget(next.Target) })
	case next.Active == next.Target && r.GetLoadNow():
		if active, err = l.ensureLoaded(next.Active, v.at, l.lastUse(r)); err != nil {
			return nil, err
		}
	}
	if r.GetSync() {
		active = nil
		if err := l.waitTarget(ctx, r); err != nil {
			return nil, err
		}
		next = l.vmodels[r.GetVModelId()]
	}
	return l.describeVModel(next, active), nil
}

func (l *Layer) waitTarget(ctx context.Context, r *meshpb.SetVModelRequest) error {
	if v := l.vmodels[r.GetVModelId()]; v.Active != v.Target && l.modelCopies[v.Target] == nil {
		l.loadTarget(v.Target)
	}
	return l.waitLoaded(ctx, r.GetTargetModelId())
}

// lastUse returns the time of the last use of a model that a request registers or loads.
func (l *Layer) lastUse(r *meshpb.SetVModelRequest) int64 {
	ago := ageIfLoadedLater
	if r.GetLoadNow() {
		ago = ageIfLoadedNow
	}
	return l.clock.Now().Add(-ago).UnixMilli()
}

// prepare returns the vmodel and the desired target of a request, and sets storeWiped if the record of the vmodel is missing. It returns an
// error if the request is invalid or the store is unreachable.
func (l *Layer) prepare(r *meshpb.SetVModelRequest) (existing *vmodel, target *model, err error) {
	id, name := r.GetVModelId(), r.GetTargetModelId()
	switch {
	case id == "":
		return nil, nil, status.Error(codes.InvalidArgument, "Must provide vModelId")
	case name == "":
		return nil, nil, status.Errorf(codes.InvalidArgument, "Must provide target modelId for vmodel %s", id)
	}
	if err := l.writable(); err != nil {
		return nil, nil, err
	}
	if existing = l.vmodels[id]; existing != nil {
		written, err := l.has(keyVModels + id)
		if err != nil {
			return nil, nil, err
		}
		if !written {
			l.storeWiped = true
		}
	}
	if err := checkPreconditions(existing, r); err != nil {
		return nil, nil, err
	}
	target, err = l.targetOf(existing, r)
	return existing, target, err
}

// targetOf returns the target model of a request: a copy of the existing model, or a new one with the fields of the request.
func (l *Layer) targetOf(existing *vmodel, r *meshpb.SetVModelRequest) (*model, error) {
	name, info := r.GetTargetModelId(), r.GetModelInfo()
	target := l.models[name]
	switch {
	case target != nil && info != nil && (target.Type != info.GetType() || target.Path != info.GetPath() || target.Key != info.GetKey()):
		return nil, status.Errorf(codes.AlreadyExists, "Target model %s already exists with different attribute values", name)
	case target != nil:
		return target.clone(), nil
	case info == nil:
		return nil, status.Errorf(codes.NotFound, "Target model %s not found", name)
	case info.GetType() == "":
		return nil, status.Error(codes.Unknown, "")
	}
	target = &model{Type: info.GetType(), Path: info.GetPath(), Key: info.GetKey(), AutoDel: r.GetAutoDeleteTargetModel(), LastUsed: l.lastUse(r)}
	switch {
	case existing == nil:
	case len(l.modelCopies[existing.Active]) > 0:
		target.LastUsed = l.clock.Now().Add(-ageIfLoadedNow).UnixMilli()
	case l.models[existing.Active] != nil:
		target.LastUsed = l.models[existing.Active].LastUsed
	}
	return target, nil
}

// checkPreconditions returns an error if the existing vmodel does not meet the preconditions of a request.
func checkPreconditions(existing *vmodel, r *meshpb.SetVModelRequest) error {
	id, expected := r.GetVModelId(), r.GetExpectedTargetModelId()
	switch {
	case existing == nil && r.GetUpdateOnly():
		return status.Errorf(codes.NotFound, "vmodel %s not found", id)
	case existing == nil && expected != "" && expected != r.GetTargetModelId():
		return status.Errorf(codes.FailedPrecondition, "vmodel %s not found", id)
	case existing == nil:
		return nil
	case !existing.allowsOwner(r.GetOwner()):
		return status.Errorf(codes.AlreadyExists, "vmodel %s already exists with different owner %q", id, existing.Owner)
	case expected != "" && existing.Target != r.GetTargetModelId() && existing.Target != expected:
		return status.Errorf(codes.FailedPrecondition, "Existing target model %s does not match expected %s", existing.Target, expected)
	default:
		return nil
	}
}

// nextState returns the new state of the vmodel, or the existing one if nothing changes. The target becomes active immediately with
// force, when it is loaded, or when no instance has the active model.
func (l *Layer) nextState(existing *vmodel, r *meshpb.SetVModelRequest) *vmodel {
	target := r.GetTargetModelId()
	next := &vmodel{Owner: r.GetOwner(), Active: target, Target: target}
	if next.Owner == "" {
		next.Owner = defaultOwner
	}
	if existing == nil {
		return next
	}
	next.Owner = existing.Owner
	_, loaded := l.loadState(target)
	switch {
	case existing.Target == target && (existing.Active == target || !r.GetForce()):
		return existing
	case r.GetForce() || existing.Active == target || loaded || len(l.modelCopies[existing.Active]) == 0:
		return next
	default:
		next.Active = existing.Active
		return next
	}
}

// writeVModel writes a vmodel, nil to delete it, and the reference counts of its models in one transaction. Like the routing layer, it
// counts one reference too many if the target of a request is the active model of a transition or, with force, its target.
func (l *Layer) writeVModel(id string, existing, next *vmodel, target *model) error {
	c := change{vmodels: map[string]*vmodel{id: next}, models: map[string]*model{}}
	add := func(name string, count int) {
		switch {
		case c.models[name] != nil:
		case target != nil && name == next.Target:
			c.models[name] = target
		case l.models[name] != nil:
			c.models[name] = l.models[name].clone()
		default:
			return
		}
		c.models[name].Refs += count
	}
	if target != nil {
		add(next.Target, 1)
	}
	for _, name := range existing.references() {
		if next == nil || name != next.Active && name != next.Target {
			add(name, -1)
		}
	}
	for name, m := range c.models {
		if m.Refs <= 0 && m.AutoDel {
			c.models[name] = nil
		}
	}
	if err := l.commit(c); err != nil {
		return err
	}
	if !l.storeWiped {
		l.cancelDeleted(c)
	}
	return nil
}

// cancelDeleted cancels or unloads the copies of the models that a change has deleted.
func (l *Layer) cancelDeleted(c change) {
	for name, m := range c.models {
		if m != nil {
			continue
		}
		for instance := range copyMap(l.modelCopies[name]) {
			l.cancel(name, instance)
		}
	}
}

// restoreRecords writes the records again after a wipe of the store, without changes to the memory.
func (l *Layer) restoreRecords(r *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	v := &vmodel{Owner: r.GetOwner(), Active: r.GetTargetModelId(), Target: r.GetTargetModelId()}
	written, err := l.has(keyVModels + r.GetVModelId())
	if err != nil {
		return nil, err
	}
	if written {
		return l.describeVModel(l.vmodels[r.GetVModelId()], nil), nil
	}
	info := r.GetModelInfo()
	m := &model{Type: info.GetType(), Path: info.GetPath(), Key: info.GetKey(), AutoDel: r.GetAutoDeleteTargetModel(), LastUsed: l.lastUse(r), Refs: 1}
	err = l.commit(change{vmodels: map[string]*vmodel{r.GetVModelId(): v}, models: map[string]*model{v.Target: m}})
	if err != nil || r.GetLoadNow() {
		return l.describeVModel(v, nil), err
	}
	return l.describeVModel(v, &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_NOT_LOADED}), nil
}

// DeleteVModel implements meshpb.ModelMeshServer.
func (v *View) DeleteVModel(_ context.Context, r *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("deleteVModel"); err != nil {
		return nil, err
	}
	known := l.vmodels[r.GetVModelId()]
	if known != nil && !known.allowsOwner(r.GetOwner()) {
		return &meshpb.DeleteVModelResponse{}, nil
	}
	if err := l.writable(); err != nil || known == nil {
		return &meshpb.DeleteVModelResponse{}, err
	}
	return &meshpb.DeleteVModelResponse{}, l.writeVModel(r.GetVModelId(), known, nil, nil)
}

// GetVModelStatus implements meshpb.ModelMeshServer.
func (v *View) GetVModelStatus(_ context.Context, r *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("getVModelStatus"); err != nil {
		return nil, err
	}
	known := l.vmodels[r.GetVModelId()]
	if known == nil {
		if _, err := l.has(keyVModels + r.GetVModelId()); err != nil {
			return nil, err
		}
	}
	if known != nil && !known.allowsOwner(r.GetOwner()) {
		known = nil
	}
	return l.describeVModel(known, nil), nil
}

// GetModelStatus implements meshpb.ModelMeshServer.
func (v *View) GetModelStatus(_ context.Context, r *meshpb.GetStatusRequest) (*meshpb.ModelStatusInfo, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("getModelStatus"); err != nil {
		return nil, err
	}
	if l.models[r.GetModelId()] == nil {
		if _, err := l.has(keyModels + r.GetModelId()); err != nil {
			return nil, status.Errorf(codes.Internal, "Unexpected exception in invokeModel method for model %s", r.GetModelId())
		}
	}
	return l.describe(r.GetModelId()), nil
}

// EnsureLoaded implements meshpb.ModelMeshServer.
func (v *View) EnsureLoaded(ctx context.Context, r *meshpb.EnsureLoadedRequest) (*meshpb.ModelStatusInfo, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("ensureLoaded"); err != nil {
		return nil, err
	}
	if l.models[r.GetModelId()] == nil {
		return nil, status.Error(codes.NotFound, "model not found")
	}
	response, err := l.ensureLoaded(r.GetModelId(), v.at, l.clock.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	if r.GetSync() {
		if err := l.waitLoaded(ctx, r.GetModelId()); err != nil {
			return nil, err
		}
		response = nil
	}
	if response == nil {
		response = l.describe(r.GetModelId())
	}
	return response, nil
}

// UnregisterModel implements meshpb.ModelMeshServer. It does not delete a model that a vmodel references.
func (v *View) UnregisterModel(_ context.Context, r *meshpb.UnregisterModelRequest) (*meshpb.UnregisterModelResponse, error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("unregisterModel"); err != nil {
		return nil, err
	}
	m := l.models[r.GetModelId()]
	if m == nil || m.Refs > 0 {
		return &meshpb.UnregisterModelResponse{}, nil
	}
	for instance := range copyMap(l.modelCopies[r.GetModelId()]) {
		l.cancel(r.GetModelId(), instance)
	}
	return &meshpb.UnregisterModelResponse{}, l.commit(change{models: map[string]*model{r.GetModelId(): nil}})
}
