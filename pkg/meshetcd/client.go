package meshetcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/balancer/roundrobin" // the policy that serviceConfig names
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/pkg/meshetcd/etcdpb"
)

const serviceConfig = `{"loadBalancingPolicy":"round_robin"}`

// Methods and header of etcd's API, version 3.
const (
	rangeMethod        = "/etcdserverpb.KV/Range"
	watchMethod        = "/etcdserverpb.Watch/Watch"
	authenticateMethod = "/etcdserverpb.Auth/Authenticate"
	tokenHeader        = "token"
)

// Connections are tried anew at most this far apart, and one that is dead is noticed within a minute: a watch waits silently.
var (
	reconnecting = grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 15 * time.Second},
		MinConnectTimeout: 5 * time.Second,
	}
	alive = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}
)

// Client reads from etcd. It is safe for concurrent use.
type Client struct {
	config Config
	conn   *grpc.ClientConn

	mu    sync.Mutex
	token string // what etcd gave for the password, "" before
}

// New returns a client for the data of the Secret. Nothing is sent yet.
func New(data map[string][]byte) (*Client, error) {
	config, err := ConfigOf(data)
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client config: %w", err)
	}
	creds := insecure.NewCredentials()
	if config.TLS != nil {
		creds = credentials.NewTLS(config.TLS)
	}
	addresses, target := addressesOf(config)
	endpoints := manual.NewBuilderWithScheme("etcd")
	endpoints.InitialState(resolver.State{Endpoints: addresses})
	conn, err := grpc.NewClient("etcd:///"+target, append([]grpc.DialOption{
		grpc.WithResolvers(endpoints), grpc.WithTransportCredentials(creds), grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(), grpc.WithConnectParams(reconnecting), grpc.WithKeepaliveParams(alive),
		// Never to sleep: a watch is always open.
		grpc.WithIdleTimeout(0), grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	}, config.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client: %w", err)
	}
	return &Client{config: config, conn: conn}, nil
}

// addressesOf returns the endpoints as gRPC wants them, and the first one, by which it decides about proxies. Every endpoint has to
// prove its own name, unless one name is given for all.
func addressesOf(config Config) (out []resolver.Endpoint, first string) {
	for _, endpoint := range config.Endpoints {
		address := resolver.Address{Addr: hostPort(endpoint)}
		if len(config.Options) == 0 {
			address.ServerName = address.Addr
		}
		out = append(out, resolver.Endpoint{Addresses: []resolver.Address{address}})
	}
	return out, out[0].Addresses[0].Addr
}

// hostPort is what is behind the scheme of a URL.
func hostPort(endpoint string) string {
	if _, rest, found := strings.Cut(endpoint, "://"); found {
		endpoint = rest
	}
	host, _, _ := strings.Cut(endpoint, "/")
	return host
}

// RootPrefix stands before every key.
func (c *Client) RootPrefix() string { return c.config.RootPrefix }

// Close ends all connections and what runs over them.
func (c *Client) Close() error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// authorized adds the token to a request, which it gets first when there is none. Failed requests drop theirs: etcd forgets tokens
// after some minutes and at every restart.
func (c *Client) authorized(ctx context.Context) (context.Context, string, error) {
	if c.config.Username == "" || c.config.Password == "" {
		return ctx, "", nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" {
		limited, cancel := context.WithTimeout(ctx, c.config.DialTimeout)
		defer cancel()
		request := &etcdpb.AuthenticateRequest{Name: c.config.Username, Password: c.config.Password}
		var answer etcdpb.AuthenticateResponse
		err := c.conn.Invoke(limited, authenticateMethod, request, &answer)
		if status.Code(err) == codes.FailedPrecondition { // etcd asks nobody who they are
			return ctx, "", nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("authenticating with etcd: %w", err)
		}
		c.token = answer.GetToken()
	}
	return metadata.AppendToOutgoingContext(ctx, tokenHeader, c.token), c.token, nil
}

func (c *Client) drop(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.token = ""
	}
}

// ErrCompacted says that etcd no longer knows what happened since the revision that a watch starts from.
var ErrCompacted = errors.New("etcd has compacted the revision that the watch starts from")
