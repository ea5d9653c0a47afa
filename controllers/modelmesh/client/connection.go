// Package client calls the routing layers of ModelMesh. It has one client per namespace, which balances its calls over the ready pods of
// the Service of the namespace.
//
// A [Pool] holds the clients. Ensure connects a client to a target, Forget closes it, and [EndpointSliceReconciler] sets the
// EndpointSlices. The pool notifies its listeners when a client or its ready addresses change.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// ErrNoAddress is returned when no pod of the Service is ready. The Pool notifies its listeners when a pod becomes ready.
var ErrNoAddress = errors.New("no pod of the runtimes is ready")

// Client manages the models of one namespace. Every call ends within ten seconds. An error wraps ErrNoAddress, or has a gRPC status. The
// client of a namespace is replaced when its target changes: get it again for each use.
type Client interface {
	// SetVModel makes a vmodel point to a concrete model.
	SetVModel(context.Context, *meshpb.SetVModelRequest, ...grpc.CallOption) (*meshpb.VModelStatusInfo, error)
	// DeleteVModel deletes a vmodel. A missing vmodel is not an error.
	DeleteVModel(context.Context, *meshpb.DeleteVModelRequest, ...grpc.CallOption) (*meshpb.DeleteVModelResponse, error)
	// GetVModelStatus returns the status of a vmodel.
	GetVModelStatus(context.Context, *meshpb.GetVModelStatusRequest, ...grpc.CallOption) (*meshpb.VModelStatusInfo, error)
	// URLs returns the URLs for inference requests in the namespace; http is "" without the REST proxy.
	URLs() (grpc, http string)
}

var callsTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "odh_platform_modelmesh_calls_total",
	Help: "Calls to ModelMesh routing layers, by gRPC method and code. NoAddress counts calls for which no pod was ready to answer.",
}, []string{"method", "code"})

// methodLabels holds the values of the label "method".
var methodLabels = map[string]string{
	meshpb.ModelMesh_SetVModel_FullMethodName: "SetVModel", meshpb.ModelMesh_DeleteVModel_FullMethodName: "DeleteVModel",
	meshpb.ModelMesh_GetVModelStatus_FullMethodName: "GetVModelStatus",
}

// codeNoAddress is the value of the label "code" for calls without a ready pod.
const codeNoAddress = "NoAddress"

// callTimeout is the timeout of one call.
const callTimeout = 10 * time.Second

// Limits of a response: the pods are not trusted, and a decoded message can be forty times as large. The status of a model has some
// kilobytes for each copy. An error is part of the headers.
const (
	maxResponseBytes = 512 << 10
	maxHeaderBytes   = 64 << 10
)

// resolverScheme is the scheme of targets whose addresses come from EndpointSlices.
const resolverScheme = "kube"

const serviceConfig = `{"loadBalancingPolicy":"round_robin"}`

// connectParams limits the backoff of connection attempts. The default of gRPC grows to two minutes, which would delay recovery after an
// invalid certificate is replaced.
var connectParams = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 15 * time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// keepaliveParams closes a connection whose data is not acknowledged within Timeout (TCP_USER_TIMEOUT), as after the failure of a node. It
// does not rely on pings: grpc-java servers reject pings more often than every five minutes.
var keepaliveParams = keepalive.ClientParameters{Time: 10 * time.Minute, Timeout: 15 * time.Second}

// connection implements Client.
type connection struct {
	meshpb.ModelMeshClient
	namespace string
	target    Target
	conn      *grpc.ClientConn
	resolver  *manual.Resolver
	// addresses holds the addresses of the ready pods.
	addresses atomic.Pointer[[]string]
}

// dial creates a connection. The first call establishes it.
func dial(namespace string, target Target) (*connection, error) {
	c := &connection{namespace: namespace, target: target, resolver: manual.NewBuilderWithScheme(resolverScheme)}
	creds := insecure.NewCredentials()
	if target.TLS != nil {
		config, err := target.TLS.tlsConfig(target.authority(namespace))
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(c.dialTarget(),
		grpc.WithResolvers(c.resolver), grpc.WithTransportCredentials(creds), grpc.WithAuthority(target.authority(namespace)),
		grpc.WithDefaultServiceConfig(serviceConfig), grpc.WithDisableServiceConfig(), grpc.WithConnectParams(connectParams),
		grpc.WithKeepaliveParams(keepaliveParams), grpc.WithUnaryInterceptor(c.intercept),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes)), grpc.WithMaxHeaderListSize(maxHeaderBytes))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.dialTarget(), err)
	}
	c.conn, c.ModelMeshClient = conn, meshpb.NewModelMeshClient(conn)
	return c, nil
}

// dialTarget returns the gRPC target. The host of a Service ends in .svc, because NO_PROXY usually contains that suffix.
func (c *connection) dialTarget() string {
	if c.target.Endpoint != "" {
		return c.target.Endpoint
	}
	return resolverScheme + ":///" + c.target.authority(c.namespace) + ".svc:" + c.port()
}

func (c *connection) port() string { return strconv.Itoa(int(c.target.Port)) }

func (c *connection) serviceKey() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: c.target.Service}
}

// setEndpointSlices sets the EndpointSlices of the Service and reports whether the ready addresses changed.
func (c *connection) setEndpointSlices(endpoints []discoveryv1.EndpointSlice) (changed bool) {
	ready := ReadyAddresses(endpoints, c.port())
	var state resolver.State
	for _, address := range ready {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	previous := c.addresses.Swap(&ready)
	c.resolver.UpdateState(state)
	return previous == nil || !slices.Equal(*previous, ready)
}

// checkReachable returns ErrNoAddress if no pod of the Service is known to be ready and no Endpoint replaces it.
func (c *connection) checkReachable() error {
	if c.target.Endpoint != "" || len(*c.addresses.Load()) > 0 {
		return nil
	}
	return fmt.Errorf("service %s/%s: %w", c.namespace, c.target.Service, ErrNoAddress)
}

// intercept runs a call with a timeout, unless no pod is ready. It implements grpc.UnaryClientInterceptor.
func (c *connection) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.checkReachable()
	if err == nil {
		err = invoke(ctx, method, request, reply, conn, options...)
		if unreachable := c.checkReachable(); unreachable != nil && status.Code(err) == codes.Unavailable {
			err = unreachable
		}
	}
	callsTotal.WithLabelValues(methodLabels[method], codeLabel(err)).Inc()
	return err
}

// codeLabel returns the value of the label "code". A code that gRPC does not define is Unknown: the mesh can return any number.
func codeLabel(err error) string {
	if errors.Is(err, ErrNoAddress) {
		return codeNoAddress
	}
	code := status.Code(err)
	if code > codes.Unauthenticated {
		code = codes.Unknown
	}
	return code.String()
}

// URLs implements Client.
func (c *connection) URLs() (grpc, http string) { return c.target.URLs(c.namespace) }
