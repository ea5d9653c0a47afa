package meshetcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/odh-platform/odh-platform-operator/pkg/meshetcd/etcdpb"
)

// pageSize is how many keys are asked for at a time.
const pageSize = 1000

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
	// Revision of the moment: a watch goes on from here.
	Revision int64
	// Cluster identifies the store: revisions of two stores have nothing in common.
	Cluster uint64
}

// List reads everything below a prefix; keysOnly leaves the values out.
func (c *Client) List(ctx context.Context, prefix string, keysOnly bool) (Listing, error) {
	var out Listing
	request := &etcdpb.RangeRequest{Key: []byte(prefix), RangeEnd: behind(prefix), Limit: pageSize, KeysOnly: keysOnly}
	for {
		page, err := c.page(ctx, request)
		if err != nil {
			return Listing{}, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if request.Revision == 0 { // all pages show the state that the first one shows
			out.Revision, out.Cluster = page.GetHeader().GetRevision(), page.GetHeader().GetClusterId()
			request.Revision = out.Revision
		}
		for _, kv := range page.GetKvs() {
			out.Entries = append(out.Entries, Entry{Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision()})
		}
		if !page.GetMore() || len(page.GetKvs()) == 0 {
			return out, nil
		}
		request.Key = append([]byte(out.Entries[len(out.Entries)-1].Key), 0)
	}
}

func (c *Client) page(ctx context.Context, request *etcdpb.RangeRequest) (*etcdpb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.DialTimeout)
	defer cancel()
	ctx, token, err := c.authorized(ctx)
	if err != nil {
		return nil, err
	}
	var page etcdpb.RangeResponse
	if err := c.conn.Invoke(ctx, rangeMethod, request, &page); err != nil {
		c.drop(token)
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	return &page, nil
}

// behind is the first key after all keys with the prefix.
func behind(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{0} // no key is behind them
}

// Watch hands over everything that is written below a prefix after the given revision, in order, until ctx ends or something
// breaks; it returns an error in any case. ErrCompacted demands a new listing.
func (c *Client) Watch(ctx context.Context, prefix string, after int64, handle func([]Entry)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Etcd must start the watch in time, and end it when it has lost its leader and could tell nothing new.
	slow := time.AfterFunc(c.config.DialTimeout, func() { cancel(errors.New("etcd did not start the watch in time")) })
	defer slow.Stop()
	ctx, token, err := c.authorized(metadata.AppendToOutgoingContext(ctx, "hasleader", "true"))
	if err != nil {
		return err
	}
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, watchMethod)
	if err != nil {
		c.drop(token)
		return fmt.Errorf("watching %s: %w", prefix, explained(ctx, err))
	}
	create := &etcdpb.WatchCreateRequest{Key: []byte(prefix), RangeEnd: behind(prefix), StartRevision: after + 1}
	if err := stream.SendMsg(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		c.drop(token)
		return fmt.Errorf("watching %s: %w", prefix, explained(ctx, err))
	}
	for {
		var answer etcdpb.WatchResponse
		if err := stream.RecvMsg(&answer); err != nil {
			c.drop(token)
			return fmt.Errorf("watching %s: %w", prefix, explained(ctx, err))
		}
		slow.Stop()
		if err := ended(&answer); err != nil {
			c.drop(token)
			return fmt.Errorf("watching %s: %w", prefix, err)
		}
		if len(answer.GetEvents()) > 0 {
			handle(entries(answer.GetEvents()))
		}
	}
}

// explained names the cause of a cancellation of ours.
func explained(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func ended(answer *etcdpb.WatchResponse) error {
	switch {
	case answer.GetCompactRevision() > 0:
		return ErrCompacted
	case answer.GetCanceled():
		return fmt.Errorf("etcd ended the watch: %s", answer.GetCancelReason())
	}
	return nil
}

func entries(events []*etcdpb.Event) []Entry {
	out := make([]Entry, 0, len(events))
	for _, event := range events {
		kv := event.GetKv()
		out = append(out, Entry{
			Key: string(kv.GetKey()), Value: kv.GetValue(), Revision: kv.GetModRevision(), Deleted: event.GetType() == etcdpb.Event_DELETE,
		})
	}
	return out
}
