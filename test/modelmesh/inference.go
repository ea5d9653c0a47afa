package modelmesh

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// Use executes an inference request: it loads the model if necessary, and returns when the model is loaded.
func (v *View) Use(ctx context.Context, id string) error {
	_, _, err := v.Route(ctx, id)
	return err
}

// Route executes an inference request like [View.Use], and returns the concrete model and an instance that has loaded it.
func (v *View) Route(ctx context.Context, id string) (concrete, instance string, err error) {
	l := v.layer
	defer l.mu.Unlock()
	if err := l.lockForCall("inference"); err != nil {
		return "", "", err
	}
	known := l.vmodels[id]
	if known == nil {
		return "", "", status.Error(codes.NotFound, "vmodel not found")
	}
	now := l.clock.Now().UnixMilli()
	state, err := l.ensureLoaded(known.Active, "", now)
	if err != nil {
		return "", "", err
	}
	if state == nil {
		if err := l.waitLoaded(ctx, known.Active); err != nil {
			return "", "", err
		}
		state = l.describe(known.Active)
	}
	if state.GetStatus() != meshpb.ModelStatusInfo_LOADED {
		return "", "", status.Error(codes.Internal, append(state.GetErrors(), "the model is not loaded")[0])
	}
	next := l.models[known.Active].clone()
	next.LastUsed = now
	l.models[known.Active] = next // written with the next change
	for instance, r := range l.modelCopies[known.Active] {
		if r.loaded {
			return known.Active, instance, nil
		}
	}
	return "", "", status.Error(codes.Unavailable, "there is no instance")
}
