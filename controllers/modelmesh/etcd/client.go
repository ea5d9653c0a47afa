package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/encoding"
)

const (
	// maxReconnectDelay is the maximum back-off between connection attempts.
	maxReconnectDelay = 15 * time.Second
	// keepAliveTime and keepAliveTimeout detect a broken connection within a minute, because a watch sends nothing itself.
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 15 * time.Second
)

// maxAttempts is the number of attempts of a request: one retry if etcd is unavailable, or with a new token if the token is invalid.
const maxAttempts = 2

// Client lists and watches keys of etcd, and manages accounts. It is safe for concurrent use.
type Client struct {
	config     clientv3.Config
	rootPrefix string

	lock   chan struct{}    // holds an element while a goroutine uses the fields below
	etcd   *clientv3.Client // nil until the first use
	closed bool
}

// New returns a client for the data of the Secret. It does not connect.
func New(data map[string][]byte) (*Client, error) {
	config, rootPrefix, err := ConfigOf(data)
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client config: %w", err)
	}
	config.Logger = zap.NewNop() // the client returns its errors
	config.MaxUnaryRetries = maxAttempts
	config.MaxCallRecvMsgSize = maxMessageBytes
	config.DialKeepAliveTime, config.DialKeepAliveTimeout = keepAliveTime, keepAliveTimeout
	delays := backoff.DefaultConfig
	delays.MaxDelay = maxReconnectDelay
	config.DialOptions = append(config.DialOptions,
		// No proxy, as in the pods: the short host name `etcd` is in no NO_PROXY list.
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: requestTimeout}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(limitedCodec{encoding.GetCodecV2("proto")})),
		grpc.WithChainStreamInterceptor(abortOnDisconnect))
	return &Client{config: config, rootPrefix: rootPrefix, lock: make(chan struct{}, 1)}, nil
}

// RootPrefix returns the prefix of all keys.
func (c *Client) RootPrefix() string { return c.rootPrefix }

// Close closes the connection and ends its requests and watches.
func (c *Client) Close() error {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	c.closed = true
	if c.etcd == nil {
		return nil
	}
	if err := c.etcd.Close(); err != nil && !errors.Is(err, context.Canceled) { // Close cancels requests
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// connect returns the etcd client. It is created on first use, because clientv3.New logs in if there is a password.
// Other callers wait until it is created or their context ends.
func (c *Client) connect(ctx context.Context) (*clientv3.Client, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the connection to etcd at %s: %w", strings.Join(c.config.Endpoints, ", "), context.Cause(ctx))
	}
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
	clientCtx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the client outlives this request
	config.Context = clientCtx
	defer context.AfterFunc(ctx, cancel)()
	client, err := clientv3.New(config)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	c.etcd = client
	return client, nil
}

// pageSize is the number of keys per list request.
const pageSize = 1000

// Limits of a listing. A namespace can have its own etcd, whose data must not exhaust the memory of the operator. The state of ModelMesh
// is far below these limits: an entry has some hundred bytes.
const (
	// MaxKeys is the maximum number of keys of a prefix.
	MaxKeys = 50_000
	// maxListingBytes limits the keys and values of a listing, maxMessageBytes those of one response.
	maxListingBytes = 64 << 20
	maxMessageBytes = 4 << 20
	listingTimeout  = time.Minute
)

// ErrTooLarge is returned for a prefix with more data than the state of ModelMesh can have.
var ErrTooLarge = fmt.Errorf("more than %d keys or %d MiB cannot be the state of ModelMesh: check root_prefix and endpoints in the Secret with the connection to etcd", MaxKeys, maxListingBytes>>20)

// Entry is a key-value pair.
type Entry struct {
	Key   string
	Value []byte
	// Revision is the revision of the last write, or of the deletion.
	Revision int64
	Deleted  bool
}

// Listing is the content of a prefix at one revision.
type Listing struct {
	Entries []Entry
	// Revision is the revision after which a watch must start.
	Revision int64
	// ClusterID identifies the etcd cluster. Revisions of different clusters cannot be compared.
	ClusterID uint64
}

// List returns all entries below a prefix. With keysOnly, it omits the values.
func (c *Client) List(ctx context.Context, prefix string, keysOnly bool) (Listing, error) {
	etcd, err := c.connect(ctx)
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listingTimeout, fmt.Errorf("listing %s took more than %s: check the health of etcd", prefix, listingTimeout))
	defer cancel()
	var listing Listing
	size := 0
	options := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(pageSize)}
	if keysOnly {
		options = append(options, clientv3.WithKeysOnly())
	}
	for from := prefix; ; from = listing.Entries[len(listing.Entries)-1].Key + "\x00" {
		page, err := c.get(ctx, etcd, from, options)
		if err != nil {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if listing.Revision == 0 { // read all pages at the revision of the first one
			listing.Revision, listing.ClusterID = page.Header.GetRevision(), page.Header.GetClusterId()
			options = append(options, clientv3.WithRev(listing.Revision))
		}
		for _, kv := range page.Kvs {
			listing.Entries = append(listing.Entries, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision()})
			size += len(kv.GetKey()) + len(kv.GetValue())
		}
		if len(listing.Entries) > MaxKeys || size > maxListingBytes {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, ErrTooLarge)
		}
		if !page.More || len(page.Kvs) == 0 {
			return listing, nil
		}
	}
}

func (c *Client) get(ctx context.Context, etcd *clientv3.Client, key string, options []clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.DialTimeout)
	defer cancel()
	page, err := etcd.Get(ctx, key, options...)
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, c.timeoutError()
	}
	return page, err
}

func (c *Client) timeoutError() error {
	return fmt.Errorf("etcd at %s did not answer within %v: check its address, its pods and the NetworkPolicies", strings.Join(c.config.Endpoints, ", "), c.config.DialTimeout)
}

// Watch calls handle with all changes below a prefix after the given revision, in order, until ctx ends or an error occurs. It always
// returns an error, after which the caller must list again.
func (c *Client) Watch(ctx context.Context, prefix string, after int64, handle func([]Entry)) error {
	etcd, err := c.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	startTimeout := time.AfterFunc(c.config.DialTimeout, func() { cancel(c.timeoutError()) })
	defer startTimeout.Stop()
	// WithRequireLeader ends the watch when etcd has lost its leader.
	changes := etcd.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1),
		clientv3.WithCreatedNotify(), clientv3.WithFragment())
	for change := range changes {
		startTimeout.Stop()
		if err := change.Err(); err != nil {
			return fmt.Errorf("watching %s: %w", prefix, err)
		}
		if len(change.Events) > 0 {
			handle(toEntries(change.Events))
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("watching %s: %w", prefix, cause)
	}
	return fmt.Errorf("watching %s: the connection to etcd has ended", prefix)
}

func toEntries(events []*clientv3.Event) []Entry {
	out := make([]Entry, 0, len(events))
	for _, event := range events {
		kv := event.Kv
		out = append(out, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision(), Deleted: event.Type == clientv3.EventTypeDelete})
	}
	return out
}
