package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/runtimepb"
)

// Headers of requests: clients set the name of the model, the leader sets the concrete model for the model server of a pod.
const (
	vmodelHeader = "mm-vmodel-id"
	modelHeader  = "mm-model-id"
)

const headerTimeout = 5 * time.Second

// forwardToLeader forwards requests of clients to the leader.
func (i *instance) forwardToLeader(_ any, stream grpc.ServerStream) error {
	return respond(stream, func(ctx context.Context, method string, request frame) (frame, error) {
		i.mu.Lock()
		leader := i.leader
		i.mu.Unlock()
		if leader == "" {
			return nil, status.Error(codes.Unavailable, "no instance leads")
		}
		conn, err := i.peer(leader)
		if err != nil {
			return nil, err
		}
		headers, _ := metadata.FromIncomingContext(ctx)
		for _, name := range headers.Get(vmodelHeader) {
			ctx = metadata.AppendToOutgoingContext(ctx, vmodelHeader, name)
		}
		return call(ctx, conn, method, request)
	})
}

// handlePeer handles requests of other instances: those for the containers of this pod, and the others as the leader.
func (i *instance) handlePeer(_ any, stream grpc.ServerStream) error {
	return respond(stream, func(ctx context.Context, method string, request frame) (frame, error) {
		if strings.HasPrefix(method, "/"+runtimepb.ModelRuntime_ServiceDesc.ServiceName+"/") {
			return i.manageModels(ctx, method, request)
		}
		headers, _ := metadata.FromIncomingContext(ctx)
		if names := headers.Get(modelHeader); len(names) > 0 {
			return i.infer(ctx, names[0], method, request)
		}
		i.mu.Lock()
		f := i.fleet
		i.mu.Unlock()
		if f == nil {
			return nil, status.Error(codes.Unavailable, "this instance does not lead")
		}
		return f.handleRequest(ctx, method, request)
	})
}

// infer sends a request to the model server of this pod.
func (i *instance) infer(ctx context.Context, model, method string, request frame) (frame, error) {
	if info := i.methods[strings.TrimPrefix(method, "/")]; info != nil {
		message, err := inject(request, info.GetIdInjectionPath(), model)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		request = message
	}
	return call(metadata.AppendToOutgoingContext(ctx, modelHeader, model), i.server, method, request)
}

// respond handles a unary request of any method.
func respond(stream grpc.ServerStream, handle func(ctx context.Context, method string, request frame) (frame, error)) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	response, err := handle(stream.Context(), method, request)
	if err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

func call(ctx context.Context, conn *grpc.ClientConn, method string, request frame) (frame, error) {
	var response frame
	err := conn.Invoke(ctx, method, &request, &response)
	return response, err
}

// serveProbes serves the probes, and the preStop hook of every container, which returns when other pods have started to load the models.
func (i *instance) serveProbes(ctx context.Context) error {
	probes, hooks := http.NewServeMux(), http.NewServeMux()
	probes.HandleFunc("/live", func(http.ResponseWriter, *http.Request) {})
	probes.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !i.ready() {
			http.Error(w, "no instance leads", http.StatusServiceUnavailable)
		}
	})
	hooks.HandleFunc("/prestop", func(_ http.ResponseWriter, r *http.Request) { i.leave(context.WithoutCancel(r.Context())) })
	for port, handler := range map[int]http.Handler{probePort: probes, preStopPort: hooks} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
		if err != nil {
			return fmt.Errorf("listening for probes: %w", err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
		go func() { i.fail(server.Serve(listener)) }()
	}
	return nil
}

// Stop makes the instance in this pod leave the other instances, as the program stop.sh of model-mesh does in a preStop hook. The process
// continues to run.
func Stop(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/prestop", preStopPort), http.NoBody)
	if err != nil {
		return fmt.Errorf("stopping the instance: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("stopping the instance: %w", err)
	}
	return errors.Join(response.Body.Close())
}
