package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Connections are tried again at most this far apart, and one that is dead is noticed within a minute: a watch waits silently.
const (
	reconnectMax     = 15 * time.Second
	keepAlive        = 30 * time.Second
	keepAliveTimeout = 15 * time.Second
)

// attempts of one request: the second one with a new token. Longer pauses are up to the caller.
const attempts = 2

// Client reads from etcd. It is safe for concurrent use.
type Client struct {
	config     clientv3.Config
	rootPrefix string

	mu     sync.Mutex
	etcd   *clientv3.Client // nil until the first use
	closed bool
}

// New returns a client for the data of the Secret. Nothing is sent yet.
func New(data map[string][]byte) (*Client, error) {
	config, rootPrefix, err := ConfigOf(data)
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client config: %w", err)
	}
	config.Logger = zap.NewNop() // errors are returned, and logged by the caller
	config.MaxUnaryRetries = attempts
	config.MaxCallRecvMsgSize = maxMessage
	config.DialKeepAliveTime, config.DialKeepAliveTimeout = keepAlive, keepAliveTimeout
	delays := backoff.DefaultConfig
	delays.MaxDelay = reconnectMax
	config.DialOptions = append(config.DialOptions,
		// Directly, as the pods reach it too: no list of names that need no proxy knows the host `etcd`.
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: dialTimeout}),
		grpc.WithChainStreamInterceptor(endWithConnection))
	return &Client{config: config, rootPrefix: rootPrefix}, nil
}

// RootPrefix stands before every key.
func (c *Client) RootPrefix() string { return c.rootPrefix }

// Close ends all connections and what runs over them.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.etcd == nil {
		return nil
	}
	if err := c.etcd.Close(); err != nil && !errors.Is(err, context.Canceled) { // its own end of what still ran
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// connected returns the client of etcd. With a password it logs in when it is made, which is why New does not make it.
func (c *Client) connected(ctx context.Context) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the connection to etcd is closed")
	}
	if c.etcd != nil {
		return c.etcd, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config := c.config
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // what the client lives by, longer than this request
	config.Context = life
	defer context.AfterFunc(ctx, end)()
	made, err := clientv3.New(config)
	if err != nil {
		end()
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	c.etcd = made
	return made, nil
}

// endWithConnection makes a watch end when its connection breaks. The client of etcd would continue from its revision on a new
// connection, which waits for ever where etcd has lost its data and counts from one again; the caller lists again instead.
func endWithConnection(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := next(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, final(err)
	}
	return &ending{stream}, nil
}

type ending struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (e *ending) RecvMsg(m any) error { return final(e.ClientStream.RecvMsg(m)) }

// final turns the errors after which the client of etcd tries again into one that ends.
func final(err error) error {
	if code := status.Code(err); code == codes.Unavailable || code == codes.Internal {
		return status.Error(codes.Aborted, err.Error())
	}
	return err
}

// ErrCompacted says that etcd no longer knows what happened since the revision that a watch starts from.
var ErrCompacted = errors.New("etcd has compacted the revision that the watch starts from")
