package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/runtimepb"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const unloadTimeout = 10 * time.Second

// fleet has the instances that the leader manages.
type fleet struct {
	leader *instance
	layer  *modelmesh.Layer
	leases map[string]int64 // by id

	mu        sync.Mutex
	addresses map[string]string // by id; also of removed instances, whose models are unloaded
}

func newFleet(i *instance) (*fleet, error) {
	f := &fleet{leader: i, leases: map[string]int64{}, addresses: map[string]string{}}
	var err error
	f.layer, err = modelmesh.NewLayer(modelmesh.LayerOptions{
		Etcd: i.settings.etcd, Service: i.service, Loader: f.load, Unload: f.unload, Log: i.log,
	})
	return f, err
}

// updateLayer sets the instances and the type constraints of the layer.
func (f *fleet) updateLayer(ctx context.Context) error {
	prefix := f.leader.base + keyPods
	response, err := f.leader.etcd.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("listing the instances: %w", err)
	}
	var running []modelmesh.Instance
	for _, entry := range response.Kvs {
		var m member
		if err := json.Unmarshal(entry.Value, &m); err != nil {
			return fmt.Errorf("reading instance %s: %w", entry.Key, err)
		}
		id := path.Base(string(entry.Key))
		// A restarted instance has lost its models. Omitting it once removes them from the layer.
		if existing := f.leases[id]; existing == 0 || existing == entry.Lease {
			running = append(running, modelmesh.Instance{ID: id, Labels: m.Labels})
		}
		f.leases[id] = entry.Lease
		f.mu.Lock()
		f.addresses[id] = m.Address
		f.mu.Unlock()
	}
	document, err := os.ReadFile(f.leader.constraints)
	if err != nil {
		return fmt.Errorf("reading the type constraints: %w", err)
	}
	if err := f.layer.SetConstraints(document); err != nil {
		return err
	}
	return f.layer.SetInstances(ctx, running)
}

func (f *fleet) conn(id string) (*grpc.ClientConn, error) {
	f.mu.Lock()
	address := f.addresses[id]
	f.mu.Unlock()
	return f.leader.peer(address)
}

// load implements modelmesh.Loader with a request to the adapter of the pod.
func (f *fleet) load(ctx context.Context, l modelmesh.Load) error {
	conn, err := f.conn(l.Instance)
	if err != nil {
		return err
	}
	_, err = runtimepb.NewModelRuntimeClient(conn).LoadModel(ctx, &runtimepb.LoadModelRequest{
		ModelId: l.ID, ModelType: l.Type, ModelPath: l.Path, ModelKey: l.Key,
	})
	f.leader.log.Info("The load request ended", "model", l.ID, "instance", l.Instance, "error", fmt.Sprint(err))
	return err
}

func (f *fleet) unload(ctx context.Context, l modelmesh.Load) {
	ctx, cancel := context.WithTimeout(ctx, unloadTimeout)
	defer cancel()
	conn, err := f.conn(l.Instance)
	if err == nil {
		_, err = runtimepb.NewModelRuntimeClient(conn).UnloadModel(ctx, &runtimepb.UnloadModelRequest{ModelId: l.ID})
	}
	f.leader.log.Info("The unload request ended", "model", l.ID, "instance", l.Instance, "error", fmt.Sprint(err))
}

// handleRequest handles a request of a client.
func (f *fleet) handleRequest(ctx context.Context, method string, request frame) (frame, error) {
	view := f.layer.At(f.leader.id)
	if name, ok := strings.CutPrefix(method, "/"+meshpb.ModelMesh_ServiceDesc.ServiceName+"/"); ok {
		return manage(ctx, view, name, request)
	}
	name, err := f.leader.modelOf(ctx, method, request)
	if err != nil {
		return nil, err
	}
	concrete, id, err := view.Route(ctx, name)
	if err != nil {
		return nil, err
	}
	conn, err := f.conn(id)
	if err != nil {
		return nil, err
	}
	return call(metadata.AppendToOutgoingContext(ctx, modelHeader, concrete), conn, method, request)
}

// manage calls a method of mmesh.ModelMesh.
func manage(ctx context.Context, view *modelmesh.View, name string, request frame) (frame, error) {
	methods := meshpb.ModelMesh_ServiceDesc.Methods
	index := slices.IndexFunc(methods, func(m grpc.MethodDesc) bool { return m.MethodName == name })
	if index < 0 {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", name)
	}
	decode := func(into any) error { return proto.Unmarshal(request, into.(proto.Message)) }
	response, err := methods[index].Handler(view, ctx, decode, nil)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response.(proto.Message))
}

// modelOf returns the name of the model of a request: from a header, or from the field that the data plane configuration sets.
func (i *instance) modelOf(ctx context.Context, method string, request frame) (string, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	if names := headers.Get(vmodelHeader); len(names) > 0 {
		return names[0], nil
	}
	data, err := os.ReadFile(i.dataPlane)
	if err != nil {
		return "", fmt.Errorf("reading the data plane configuration: %w", err)
	}
	var config struct {
		Methods map[string]struct {
			Path []uint32 `json:"idExtractionPath"`
		} `json:"rpcConfigs"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("reading the data plane configuration: %w", err)
	}
	methodConfig, found := config.Methods[strings.TrimPrefix(method, "/")]
	if !found {
		return "", status.Errorf(codes.InvalidArgument, "%s requires the header %s; configured methods are %v", method, vmodelHeader, slices.Sorted(maps.Keys(config.Methods)))
	}
	return extract(request, methodConfig.Path)
}
