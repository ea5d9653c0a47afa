package client

import (
	"context"
	"errors"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// ErrNoAddress says that a call was not made, or failed, because no pod behind the Service is ready. The Pool tells its
// subscribers when that changes.
var ErrNoAddress = errors.New("no pod of the runtimes is ready")

// Client manages the models of one namespace. Every call ends within ten seconds. An error wraps ErrNoAddress, or has the gRPC
// status of the answer (status.Code). The client of a namespace is replaced when its target changes: get it again for each use.
type Client interface {
	// SetVModel makes a vmodel point to a concrete model.
	SetVModel(context.Context, *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error)
	// DeleteVModel removes a vmodel; one that is not there is no error.
	DeleteVModel(context.Context, *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error)
	// GetVModelStatus asks for the state of a vmodel.
	GetVModelStatus(context.Context, *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error)
	// Endpoints are the URLs at which users reach the models of the namespace; http is "" without the REST proxy.
	Endpoints() (grpc, http string)
}
