package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	maxReconnectDelay = 15 * time.Second
	keepAliveTime     = 30 * time.Second
	keepAliveTimeout  = 15 * time.Second
)

// attempts of one request: the second one with a new token. Longer pauses are up to the caller.
const maxAttempts = 2

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
	config.MaxUnaryRetries = maxAttempts
	config.MaxCallRecvMsgSize = maxMessageBytes
	config.DialKeepAliveTime, config.DialKeepAliveTimeout = keepAliveTime, keepAliveTimeout
	delays := backoff.DefaultConfig
	delays.MaxDelay = maxReconnectDelay
	config.DialOptions = append(config.DialOptions,
		// Directly, as the pods reach it too: no list of names that need no proxy knows the host `etcd`.
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: dialTimeout}),
		grpc.WithChainStreamInterceptor(abortOnDisconnect))
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
func (c *Client) connect(ctx context.Context) (*clientv3.Client, error) {
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
func abortOnDisconnect(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := next(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, nonRetryable(err)
	}
	return &abortingStream{stream}, nil
}

type abortingStream struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (e *abortingStream) RecvMsg(m any) error { return nonRetryable(e.ClientStream.RecvMsg(m)) }

// final turns the errors after which the client of etcd tries again into one that ends.
func nonRetryable(err error) error {
	if code := status.Code(err); code == codes.Unavailable || code == codes.Internal {
		return status.Error(codes.Aborted, err.Error())
	}
	return err
}

// ErrCompacted says that etcd no longer knows what happened since the revision that a watch starts from.
var ErrCompacted = errors.New("etcd has compacted the revision that the watch starts from")

// pageSize is how many keys one request lists.
const pageSize = 1000

// A namespace may bring an etcd of its own, and whatever it says is held by a manager that serves all others. A state of ModelMesh
// is far below these limits: an entry has some hundred bytes.
const (
	// MaxKeys is how many keys of one prefix are taken.
	MaxKeys = 50_000
	// maxBytes is how large keys and values of a listing may be together, maxMessage one answer, maxListing how long it may take.
	maxListingBytes = 64 << 20
	maxMessageBytes = 16 << 20
	listingTimeout  = time.Minute
)

// ErrTooMuch says that there is more under a prefix than a state of ModelMesh has.
var ErrTooLarge = fmt.Errorf("more than %d keys or %d MiB are not a state of ModelMesh", MaxKeys, maxListingBytes>>20)

// Entry is a key, and what is under it.
type Entry struct {
	Key   string
	Value []byte
	// Revision of the last write, which may be its deletion.
	Revision int64
	Deleted  bool
}

// Listing is the state of a prefix at one moment.
type Listing struct {
	Entries []Entry
	// Revision of the moment: a watch continues from here.
	Revision int64
	// Cluster identifies the store: revisions of two stores have nothing in common.
	ClusterID uint64
}

// List reads everything below a prefix; keysOnly leaves the values out.
func (c *Client) List(ctx context.Context, prefix string, keysOnly bool) (Listing, error) {
	etcd, err := c.connect(ctx)
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listingTimeout, fmt.Errorf("listing %s took more than %s", prefix, listingTimeout))
	defer cancel()
	var out Listing
	size := 0
	options := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(pageSize)}
	if keysOnly {
		options = append(options, clientv3.WithKeysOnly())
	}
	for from := prefix; ; from = out.Entries[len(out.Entries)-1].Key + "\x00" {
		page, err := c.get(ctx, etcd, from, options)
		if err != nil {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if out.Revision == 0 { // all pages show the state that the first one shows
			out.Revision, out.ClusterID = page.Header.GetRevision(), page.Header.GetClusterId()
			options = append(options, clientv3.WithRev(out.Revision))
		}
		for _, kv := range page.Kvs {
			out.Entries = append(out.Entries, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision()})
			size += len(kv.GetKey()) + len(kv.GetValue())
		}
		if len(out.Entries) > MaxKeys || size > maxListingBytes {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, ErrTooLarge)
		}
		if !page.More || len(page.Kvs) == 0 {
			return out, nil
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
	return fmt.Errorf("etcd at %s did not answer within %v", strings.Join(c.config.Endpoints, ", "), c.config.DialTimeout)
}

// Watch hands over everything that is written below a prefix after the given revision, in order, until ctx ends or something
// breaks; it returns an error in any case. ErrCompacted demands a new listing.
func (c *Client) Watch(ctx context.Context, prefix string, after int64, handle func([]Entry)) error {
	etcd, err := c.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(c.config.DialTimeout, func() { cancel(c.timeoutError()) })
	defer slow.Stop()
	// An etcd that has lost its leader, and could tell nothing new, ends the watch.
	changes := etcd.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1),
		clientv3.WithCreatedNotify(), clientv3.WithFragment())
	for change := range changes {
		slow.Stop()
		if change.CompactRevision > 0 {
			return fmt.Errorf("watching %s: %w", prefix, ErrCompacted)
		}
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
