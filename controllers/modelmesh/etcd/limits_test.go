package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// endlessServer is an etcd with an unlimited number of keys.
type endlessServer struct {
	pb.UnimplementedKVServer
	value string
	keys  int
}

func (e *endlessServer) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	r := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7, ClusterId: 1}, More: true}
	for range pageSize {
		e.keys++
		r.Kvs = append(r.Kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "p/%012d", e.keys), Value: []byte(e.value), ModRevision: 1})
	}
	return r, nil
}

// List limits keys, bytes and the size of a response: the etcd of a namespace must not exhaust the operator's memory.
func TestListingLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		value   string
		maxKeys int
		want    error
	}{
		"many keys":     {"x", MaxKeys + pageSize, ErrTooLarge},
		"large values":  {strings.Repeat("x", 2<<10), maxListingBytes/(2<<10) + pageSize, ErrTooLarge},
		"huge response": {strings.Repeat("x", 20<<10), 2 * pageSize, nil},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, grpcServer := &endlessServer{value: tc.value}, grpc.NewServer()
			pb.RegisterKVServer(grpcServer, server)
			go func() { _ = grpcServer.Serve(listener) }()
			defer grpcServer.Stop()
			c, err := New(map[string][]byte{ConnectionKey: []byte(`{"endpoints":"http://` + listener.Addr().String() + `"}`)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			listing, err := c.List(t.Context(), "p/", true)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || len(listing.Entries) != 0 || server.keys > tc.maxKeys {
				t.Errorf("%d keys sent, %d returned, error %v, want at most %d sent and error %v", server.keys, len(listing.Entries), err, tc.maxKeys, tc.want)
			}
		})
	}
}

// A response that is small on the wire and large in memory is not decoded.
func TestResponseWithTooManyElementsIsRefused(t *testing.T) {
	s := &fakeServer{list: func(*pb.RangeRequest) (*pb.RangeResponse, error) {
		return &pb.RangeResponse{Header: header(1), Kvs: slices.Repeat([]*mvccpb.KeyValue{{}}, MaxKeys)}, nil
	}}
	address, _ := serve(t, "127.0.0.1:0", s, nil)
	_, err := dial(t, secret(t, connectionTo(address), nil)).List(t.Context(), "p/", true)
	if err == nil || !strings.Contains(err.Error(), "50001 elements, more than 50000") {
		t.Errorf("error %v, want too many elements", err)
	}
}

// A watch ends with an error after responses for which the etcd client would panic or use unlimited memory.
func TestWatchRejectsInvalidResponses(t *testing.T) {
	event := &mvccpb.Event{Kv: kv("p/a", strings.Repeat("x", 64<<10), 8)}
	for name, tc := range map[string]struct {
		response func(n int) *pb.WatchResponse
		want     string
	}{
		"event without a key": {func(int) *pb.WatchResponse { return &pb.WatchResponse{Events: []*mvccpb.Event{event, {}}} }, "an event without a key"},
		"endless fragments": {func(int) *pb.WatchResponse {
			return &pb.WatchResponse{Events: []*mvccpb.Event{event}, Fragment: true}
		}, "fragments of more than 4 MiB"},
		"endless fragments, and responses of another watch between them": {func(n int) *pb.WatchResponse {
			return &pb.WatchResponse{Events: []*mvccpb.Event{event}, Fragment: n%2 == 0, WatchId: int64(n % 2)}
		}, "fragments of several watches"},
		"watch that ends twice": {func(int) *pb.WatchResponse { return &pb.WatchResponse{Canceled: true, WatchId: 9} }, "the end of a watch twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{watch: func(_ *pb.WatchCreateRequest, send func(*pb.WatchResponse) error) error {
				err := send(&pb.WatchResponse{Header: header(1), Created: true})
				for n := 0; n < 1000 && err == nil; n++ {
					r := tc.response(n)
					r.Header = header(int64(n))
					err = send(r)
				}
				return err
			}}
			address, _ := serve(t, "127.0.0.1:0", s, nil)
			err := dial(t, secret(t, connectionTo(address), nil)).Watch(t.Context(), "p/", 1, func([]Entry) {})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// While one goroutine logs in to an etcd that does not answer, the others wait no longer than their context.
func TestConnectHeedsContextWhileAnotherLogsIn(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts connections and never answers
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	connection := connectionTo(listener.Addr().String())
	connection.UserID, connection.Password = "root", "secret"
	c := dial(t, secret(t, connection, nil))
	ctx, cancel := context.WithCancel(t.Context())
	var logins sync.WaitGroup
	for range 3 {
		logins.Go(func() { _, _ = c.List(ctx, "p/", true) }) // ends with the context
	}
	defer logins.Wait()
	defer cancel()
	poll.Until(t, 10*time.Second, "a goroutine logs in", func() bool { return len(c.lock) == 1 })
	short, cancelShort := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelShort()
	start := time.Now()
	if err := c.Ensure(short, Account{Name: "a"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("error %v after %s, want the end of the context after 50ms", err, time.Since(start))
	}
}
