package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/runtimepb"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	// leaseSeconds is the time until the record of a crashed instance expires.
	leaseSeconds = 5
	// statusInterval is the interval of RuntimeStatus requests, refreshInterval that of reading the records of instances.
	statusInterval  = time.Second
	refreshInterval = 250 * time.Millisecond
	// migrationTimeout limits the time that a terminating instance waits for the migration of its models.
	migrationTimeout = 30 * time.Second
)

// Keys relative to the prefix of the Service.
const (
	keyPods   = "pods/"
	keyLeader = "leaderLatch"
	// keyInstances is the prefix under which a layer stores its instances.
	keyInstances = "instances/"
)

// instance is the routing layer in one pod.
type instance struct {
	settings
	log  logr.Logger
	etcd *clientv3.Client
	base string // the prefix of the keys in etcd
	// adapter and server are the connections to the other containers of the pod.
	adapter, server *grpc.ClientConn
	// methods are the methods whose requests have the id of a model.
	methods   map[string]*runtimepb.RuntimeStatusResponse_MethodInfo
	leaveOnce sync.Once
	left      chan struct{} // closed when the instance has left
	failed    chan error    // receives errors that require a restart

	mu      sync.Mutex
	session *concurrency.Session // nil until the instance has joined
	resign  func()               // resigns as leader
	leader  string               // the address of the leader
	fleet   *fleet               // nil unless the instance is the leader
	conns   map[string]*grpc.ClientConn
	loads   map[string]*loadCall // by model
}

// Run runs an instance until the context ends or an error occurs that requires a restart.
func Run(ctx context.Context, log logr.Logger) error {
	s, err := readSettings()
	if err != nil {
		return fmt.Errorf("reading the environment of container mm: %w", err)
	}
	i := &instance{
		settings: s, log: log, conns: map[string]*grpc.ClientConn{}, loads: map[string]*loadCall{},
		left: make(chan struct{}), failed: make(chan error, 8),
	}
	if err := i.connect(); err != nil {
		return err
	}
	defer i.close()
	if err := i.serveProbes(ctx); err != nil {
		return err
	}
	if err := i.waitRuntime(ctx); err != nil {
		return err
	}
	stop, err := i.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	session, err := i.join(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		i.leave(context.WithoutCancel(ctx)) // unless the preStop hook has done so
		return nil
	case err := <-i.failed:
		return err
	case <-session.Done():
		select {
		case <-i.left:
			<-ctx.Done()
			return nil
		default:
			return errors.New("the lease in etcd has expired")
		}
	}
}

func (i *instance) connect() (err error) {
	if i.etcd, i.base, err = modelmesh.Dial(i.settings.etcd, i.service); err != nil {
		return err
	}
	if i.adapter, err = i.dial(i.runtime); err != nil {
		return err
	}
	i.server, err = i.dial(i.data)
	return err
}

func (i *instance) dial(target string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(i.maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", target, err)
	}
	return conn, nil
}

// peer returns the connection to an address of the peer port of a pod.
func (i *instance) peer(address string) (*grpc.ClientConn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if conn := i.conns[address]; conn != nil {
		return conn, nil
	}
	conn, err := i.dial("passthrough:///" + address)
	if err == nil {
		i.conns[address] = conn
	}
	return conn, err
}

// waitRuntime returns when the adapter reports that its server is ready. It is called once, because an adapter unloads all models
// on every RuntimeStatus request.
func (i *instance) waitRuntime(ctx context.Context) error {
	adapter := runtimepb.NewModelRuntimeClient(i.adapter)
	for {
		response, err := adapter.RuntimeStatus(ctx, &runtimepb.RuntimeStatusRequest{})
		if err == nil && response.GetStatus() == runtimepb.RuntimeStatusResponse_READY {
			i.methods = response.GetMethodInfos()
			i.log.Info("The runtime is ready", "status", response)
			return nil
		}
		i.log.Info("The runtime is not ready", "status", response.GetStatus().String(), "error", fmt.Sprint(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(statusInterval):
		}
	}
}

// serve starts the servers for clients and for other instances.
func (i *instance) serve(ctx context.Context) (stop func(), err error) {
	var servers []*grpc.Server
	for port, handler := range map[int]grpc.StreamHandler{i.port: i.forwardToLeader, peerPort: i.handlePeer} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
		if err != nil {
			return nil, fmt.Errorf("listening for requests: %w", err)
		}
		server := grpc.NewServer(grpc.ForceServerCodecV2(newCodec()), grpc.UnknownServiceHandler(handler), grpc.MaxRecvMsgSize(i.maxMessage))
		servers = append(servers, server)
		go func() { i.fail(server.Serve(listener)) }()
	}
	return func() {
		for _, server := range servers {
			server.GracefulStop()
		}
	}, nil
}

func (i *instance) fail(err error) {
	if err != nil {
		i.failed <- err
	}
}

func (i *instance) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, conn := range i.conns {
		_ = conn.Close() // the process exits
	}
	_ = i.etcd.Close() // likewise
}
