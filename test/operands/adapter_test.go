//go:build operands

package operands

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/runtimepb"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// rawCodec passes messages as bytes, because modelServer has no types for its requests.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// torchResponse is the response of TorchServe for its health and its models.
const torchResponse = `{"status": "Healthy", "models": []}`

// modelServer is a fake model server that accepts every request. Field 1 of its responses about readiness and liveness is true.
type modelServer struct {
	mu     sync.Mutex
	called map[string]int
}

func (s *modelServer) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	s.mu.Lock()
	s.called[method]++
	s.mu.Unlock()
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	var response []byte
	switch {
	case strings.HasSuffix(method, "Ready"), strings.HasSuffix(method, "Live"):
		response = []byte{0x08, 0x01}
	case strings.HasPrefix(method, "/org.pytorch"): // field 1 is JSON
		response = append([]byte{0x0a, byte(len(torchResponse))}, torchResponse...)
	}
	return stream.SendMsg(&response)
}

func (s *modelServer) calls(suffix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for method, n := range s.called {
		if strings.HasSuffix(method, suffix) {
			count += n
		}
	}
	return count
}

func startModelServer(t *testing.T, port string) *modelServer {
	t.Helper()
	s := &modelServer{called: map[string]int{}}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(s.handle))
	serveGRPC(t, server, port)
	return s
}

func serveGRPC(t *testing.T, server *grpc.Server, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

// newLoadRequest returns the request of the routing layer for a Predictor with storage over HTTP.
func newLoadRequest(t *testing.T, format string) *runtimepb.LoadModelRequest {
	t.Helper()
	p := &v1alpha1.Predictor{Spec: v1alpha1.PredictorSpec{
		ModelType: v1alpha1.ModelType{Name: format}, Storage: &v1alpha1.Storage{Path: new(modelPath), Key: new("over-http")},
	}}
	p.Namespace, p.Name = "vision", "digits"
	model := modelmesh.FromPredictor(p)
	return &runtimepb.LoadModelRequest{ModelId: model.ID(), ModelType: model.Label(), ModelPath: model.Path(), ModelKey: model.Key()}
}

// Adapters run with the environment of the rendered pod of their built-in runtime, report their settings, and load a model.
func TestAdaptersOfBuiltInRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		adapter, management string
		loads               uint32
		loadCall, format    string
	}{
		"mlserver-1.x":   {"mlserver-adapter", "8001", 1, "RepositoryModelLoad", "sklearn"},
		"triton-2.x":     {"triton-adapter", "8001", 2, "RepositoryModelLoad", "onnx"},
		"torchserve-0.x": {"torchserve-adapter", "7071", 1, "RegisterModel", "pytorch-mar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := builtInRuntime(t, name)
			data := strings.TrimPrefix(*r.Spec.GRPCDataEndpoint, "port:")
			p := newAdapterPod(t, name, r.Annotations, &r.Spec, "8085", c.management, data)
			server := startModelServer(t, p.ports[c.management])
			if data != c.management {
				startModelServer(t, p.ports[data])
			}
			client := p.start(c.adapter, "8085")
			status := p.waitReady(client)
			// 1Gi of the server's container minus memBufferBytes.
			if status.GetCapacityInBytes() != 1<<30-134217728 || status.GetModelLoadingTimeoutMs() != 90000 || status.GetMaxLoadingConcurrency() != c.loads {
				t.Errorf("got status %v of the adapter, want the resources and limits of its container", status)
			}
			loaded, err := client.LoadModel(t.Context(), newLoadRequest(t, c.format))
			sized := loaded.GetSizeInBytes() > 0 || name == "torchserve-0.x" // TorchServe reports the size later
			if err != nil || !sized || server.calls(c.loadCall) != 1 {
				t.Errorf("loaded: %v, %v; requests to the server: %v", loaded, err, server.called)
			}
			if !t.Failed() {
				report.add("ModelMesh, "+name, c.adapter+" is ready, downloads a model and loads it")
			}
		})
	}
}

// The model server is a fake of the REST API of OpenVINO. The adapter becomes ready; the test loads no model.
func TestAdapterOfOpenVINO(t *testing.T) {
	r := builtInRuntime(t, "ovms-1.x")
	p := newAdapterPod(t, "ovms-1.x", r.Annotations, &r.Spec, "8085", "8888", "8001")
	listener, err := net.Listen("tcp", "127.0.0.1:"+p.ports["8888"])
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		models := map[string]any{}
		text, _ := os.ReadFile(filepath.Join(p.dir, "models", "model_config_list.json"))
		var config struct {
			List []struct{ Config struct{ Name string } } `json:"model_config_list"`
		}
		_ = json.Unmarshal(text, &config) // the adapter may not have written the file yet
		for _, m := range config.List {
			models[m.Config.Name] = map[string]any{"model_version_status": []any{
				map[string]any{"version": "1", "state": "AVAILABLE", "status": map[string]any{"error_code": "OK", "error_message": "OK"}},
			}}
		}
		_ = json.NewEncoder(w).Encode(models) // the client may have disconnected
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	startModelServer(t, p.ports["8001"])
	p.spec.Containers[slices.IndexFunc(p.spec.Containers, func(c corev1.Container) bool { return c.Name == "ovms-adapter" })].Env =
		append(p.container("ovms-adapter").Env, corev1.EnvVar{Name: "MODEL_CONFIG_FILE", Value: filepath.Join(p.dir, "models", "model_config_list.json")})
	client := p.start("ovms-adapter", "8085")
	status := p.waitReady(client)
	if status.GetCapacityInBytes() != 1<<30-134217728 || status.GetModelLoadingTimeoutMs() != 90000 {
		t.Errorf("got status %v of the adapter, want the resources and limits of its container", status)
	}
	report.add("ModelMesh, ovms-1.x", "ovms-adapter is ready")
}

// A custom runtime implements the protocol of the routing layer. Its puller downloads the model and forwards the request with the local
// path.
func TestPullerOfCustomRuntime(t *testing.T) {
	spec := &v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:9103"), Containers: []corev1.Container{{Name: "server", Image: "example.com/server:7"}},
	}
	p := newAdapterPod(t, "own", nil, spec, "8086", "9103")
	own := &customRuntime{}
	server := grpc.NewServer()
	runtimepb.RegisterModelRuntimeServer(server, own)
	serveGRPC(t, server, p.ports["9103"])
	client := p.start("puller", "8086")
	p.waitReady(client)
	if _, err := client.LoadModel(t.Context(), newLoadRequest(t, "own")); err != nil {
		t.Fatal(err)
	}
	got := own.request
	var key map[string]any
	if err := json.Unmarshal([]byte(got.GetModelKey()), &key); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.GetModelPath(), p.dir) || key["storage_key"] != nil || key["disk_size_bytes"] == nil || key["model_type"] == nil {
		t.Errorf("the runtime received the request %v, want a local path and a key without storage", got)
	}
	// [modelmesh-83]: the error for a model without storage, which the fake of the routing layer returns too.
	_, err := client.LoadModel(t.Context(), &runtimepb.LoadModelRequest{ModelId: "none", ModelType: "mt:own", ModelKey: `{"model_type":{"name":"own"}}`})
	if err == nil || !strings.Contains(err.Error(), "Predictor Storage field missing") {
		t.Errorf("error for a model without storage: %v", err)
	}
	report.add("ModelMesh, custom runtime", "puller downloads a model and forwards the request")
}

// customRuntime is a runtime that loads every model.
type customRuntime struct {
	runtimepb.UnimplementedModelRuntimeServer
	request *runtimepb.LoadModelRequest
}

func (c *customRuntime) LoadModel(_ context.Context, r *runtimepb.LoadModelRequest) (*runtimepb.LoadModelResponse, error) {
	c.request = r
	return &runtimepb.LoadModelResponse{SizeInBytes: 7}, nil
}

func (c *customRuntime) RuntimeStatus(context.Context, *runtimepb.RuntimeStatusRequest) (*runtimepb.RuntimeStatusResponse, error) {
	return &runtimepb.RuntimeStatusResponse{Status: runtimepb.RuntimeStatusResponse_READY, CapacityInBytes: 1 << 30}, nil
}

// UnloadModel is called for all models of an earlier process of the pod.
func (c *customRuntime) UnloadModel(context.Context, *runtimepb.UnloadModelRequest) (*runtimepb.UnloadModelResponse, error) {
	return &runtimepb.UnloadModelResponse{}, nil
}
