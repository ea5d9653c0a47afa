package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/balancer/roundrobin" // the policy that serviceConfig names
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// callTimeout is how long one call may take.
const callTimeout = 10 * time.Second

// maxAnswer is how large an answer may be: pods run what their authors want.
const maxAnswer = 4 << 20

// scheme of the targets whose addresses come from EndpointSlices.
const scheme = "kube"

const serviceConfig = `{"loadBalancingPolicy":"round_robin"}`

// reconnecting bounds the pauses between attempts to connect to a pod. The default of gRPC grows to two minutes, which users would
// see as that much delay after a mistake in certificates was mended.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 15 * time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// alive makes a connection end on which nothing was acknowledged for that long: that of a pod whose node has died. Pings, which a
// server of grpc-java takes amiss more often than every five minutes, are not what does it.
var alive = keepalive.ClientParameters{Time: 10 * time.Minute, Timeout: 15 * time.Second}

// connection implements Client.
type connection struct {
	namespace string
	target    Target
	conn      *grpc.ClientConn
	api       meshpb.ModelMeshClient
	resolver  *manual.Resolver
	// addresses are those of the ready pods behind the Service.
	addresses atomic.Pointer[[]string]
}

// dial makes a connection, which is established with the first call.
func dial(namespace string, target Target) (*connection, error) {
	c := &connection{namespace: namespace, target: target, resolver: manual.NewBuilderWithScheme(scheme)}
	creds := insecure.NewCredentials()
	if target.TLS != nil {
		config, err := target.TLS.config(target.authority(namespace))
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(c.address(),
		grpc.WithResolvers(c.resolver), grpc.WithTransportCredentials(creds), grpc.WithAuthority(target.authority(namespace)),
		grpc.WithDefaultServiceConfig(serviceConfig), grpc.WithDisableServiceConfig(), grpc.WithConnectParams(reconnecting),
		grpc.WithKeepaliveParams(alive), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.address(), err)
	}
	c.conn, c.api = conn, meshpb.NewModelMeshClient(conn)
	return c, nil
}

// address is the target in the words of gRPC. It ends in .svc, which every sensible list of names that need no proxy contains.
func (c *connection) address() string {
	if c.target.Endpoint != "" {
		return c.target.Endpoint
	}
	return scheme + ":///" + c.target.authority(c.namespace) + ".svc:" + c.port()
}

func (c *connection) port() string { return strconv.Itoa(int(c.target.Port)) }

func (c *connection) service() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: c.target.Service}
}

// setAddresses takes the EndpointSlices of the Service and reports whether other pods are ready than before.
func (c *connection) setAddresses(endpoints []discoveryv1.EndpointSlice) (changed bool) {
	ready := Addresses(endpoints, c.port())
	var state resolver.State
	for _, address := range ready {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	former := c.addresses.Swap(&ready)
	c.resolver.UpdateState(state)
	return former == nil || !slices.Equal(*former, ready)
}

// unreachable returns ErrNoAddress where it is known that no pod can answer.
func (c *connection) unreachable() error {
	if c.target.Endpoint != "" || len(*c.addresses.Load()) > 0 {
		return nil
	}
	return fmt.Errorf("service %s/%s: %w", c.namespace, c.target.Service, ErrNoAddress)
}

// call makes one call, unless it is known that no pod can answer.
func call[Q, A any](ctx context.Context, c *connection, name string, request *Q,
	method func(context.Context, *Q, ...grpc.CallOption) (*A, error)) (*A, error) {
	answer, err := try(ctx, c, request, method)
	calls.WithLabelValues(name, outcome(err)).Inc()
	return answer, err
}

func try[Q, A any](ctx context.Context, c *connection, request *Q,
	method func(context.Context, *Q, ...grpc.CallOption) (*A, error)) (*A, error) {
	if err := c.unreachable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := method(ctx, request)
	if err == nil {
		return answer, nil
	}
	if gone := c.unreachable(); gone != nil && status.Code(err) == codes.Unavailable {
		return nil, gone
	}
	return nil, err
}

// SetVModel implements Client.
func (c *connection) SetVModel(ctx context.Context, request *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	return call(ctx, c, "SetVModel", request, c.api.SetVModel)
}

// DeleteVModel implements Client.
func (c *connection) DeleteVModel(ctx context.Context, request *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	return call(ctx, c, "DeleteVModel", request, c.api.DeleteVModel)
}

// GetVModelStatus implements Client.
func (c *connection) GetVModelStatus(ctx context.Context, request *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	return call(ctx, c, "GetVModelStatus", request, c.api.GetVModelStatus)
}

// Endpoints implements Client.
func (c *connection) Endpoints() (grpc, http string) { return c.target.Endpoints(c.namespace) }
