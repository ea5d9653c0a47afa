package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageSize is how many keys one request lists.
const pageSize = 1000

// A namespace may bring an etcd of its own, and whatever it says is held by a manager that serves all others. A state of ModelMesh
// is far below these limits: an entry has some hundred bytes.
const (
	// MaxKeys is how many keys of one prefix are taken.
	MaxKeys = 50_000
	// maxBytes is how large keys and values of a listing may be together, maxMessage one answer, maxListing how long it may take.
	maxBytes   = 64 << 20
	maxMessage = 16 << 20
	maxListing = time.Minute
)

// ErrTooMuch says that there is more under a prefix than a state of ModelMesh has.
var ErrTooMuch = fmt.Errorf("more than %d keys or %d MiB are not a state of ModelMesh", MaxKeys, maxBytes>>20)

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
	Cluster uint64
}

// List reads everything below a prefix; keysOnly leaves the values out.
func (c *Client) List(ctx context.Context, prefix string, keysOnly bool) (Listing, error) {
	etcd, err := c.connected(ctx)
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxListing, fmt.Errorf("listing %s took more than %s", prefix, maxListing))
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
			out.Revision, out.Cluster = page.Header.GetRevision(), page.Header.GetClusterId()
			options = append(options, clientv3.WithRev(out.Revision))
		}
		for _, kv := range page.Kvs {
			out.Entries = append(out.Entries, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision()})
			size += len(kv.GetKey()) + len(kv.GetValue())
		}
		if len(out.Entries) > MaxKeys || size > maxBytes {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, ErrTooMuch)
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
		return nil, c.silent()
	}
	return page, err
}

func (c *Client) silent() error {
	return fmt.Errorf("etcd at %s did not answer within %v", strings.Join(c.config.Endpoints, ", "), c.config.DialTimeout)
}

// Watch hands over everything that is written below a prefix after the given revision, in order, until ctx ends or something
// breaks; it returns an error in any case. ErrCompacted demands a new listing.
func (c *Client) Watch(ctx context.Context, prefix string, after int64, handle func([]Entry)) error {
	etcd, err := c.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(c.config.DialTimeout, func() { cancel(c.silent()) })
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
			handle(entries(change.Events))
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("watching %s: %w", prefix, cause)
	}
	return fmt.Errorf("watching %s: the connection to etcd has ended", prefix)
}

func entries(events []*clientv3.Event) []Entry {
	out := make([]Entry, 0, len(events))
	for _, event := range events {
		kv := event.Kv
		out = append(out, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision(), Deleted: event.Type == clientv3.EventTypeDelete})
	}
	return out
}
