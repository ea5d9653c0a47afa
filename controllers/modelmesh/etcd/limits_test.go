package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
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
		"large values":  {strings.Repeat("x", 8<<10), maxListingBytes/(8<<10) + pageSize, ErrTooLarge},
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
