package etcd

import (
	"context"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// abortOnDisconnect ends a watch when its connection breaks; the caller then lists again. The etcd client would resume the watch at
// its revision, and wait forever if etcd has lost its data and restarted at revision 1.
func abortOnDisconnect(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := next(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, nonRetryable(err)
	}
	return &abortingStream{ClientStream: stream, cancelled: map[int64]bool{}}, nil
}

// abortingStream is the stream of one or more watches.
type abortingStream struct {
	grpc.ClientStream
	// fragments is the size of the fragments that the etcd client holds, 0 for none; fragmented is the ID of their watch.
	fragments  int
	fragmented int64
	// cancelled holds the IDs of the watches that etcd cancelled.
	cancelled map[int64]bool
}

// RecvMsg implements grpc.ClientStream.
func (s *abortingStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return nonRetryable(err)
	}
	if response, ok := m.(*pb.WatchResponse); ok {
		if problem := s.check(response); problem != "" {
			return status.Error(codes.Aborted, "the server is not an etcd, because it sent "+problem+": check endpoints in the Secret with the connection to etcd")
		}
	}
	return nil
}

// check returns the problem of a response, or "". The etcd client, which trusts its server, panics for an event without a key and for a
// watch that is cancelled twice, and merges fragments without a limit.
func (s *abortingStream) check(r *pb.WatchResponse) string {
	if slices.ContainsFunc(r.GetEvents(), func(e *mvccpb.Event) bool { return e.GetKv() == nil }) {
		return "an event without a key"
	}
	if s.fragments > 0 && s.fragmented != r.GetWatchId() {
		return "fragments of several watches at a time"
	}
	s.fragments, s.fragmented = s.fragments+proto.Size(r), r.GetWatchId()
	if s.fragments > maxMessageBytes {
		return fmt.Sprintf("fragments of more than %d MiB", maxMessageBytes>>20)
	}
	if !r.GetFragment() {
		s.fragments = 0
	}
	if r.GetCanceled() && !r.GetCreated() && r.GetCompactRevision() == 0 {
		if s.cancelled[r.GetWatchId()] || len(s.cancelled) >= MaxKeys {
			return "the end of a watch twice"
		}
		s.cancelled[r.GetWatchId()] = true
	}
	return ""
}

// nonRetryable replaces Unavailable and Internal, which the etcd client retries, with Aborted.
func nonRetryable(err error) error {
	if code := status.Code(err); code == codes.Unavailable || code == codes.Internal {
		return status.Error(codes.Aborted, err.Error())
	}
	return err
}

// limitedCodec refuses messages with more elements than the state of ModelMesh can have, before they are decoded: an empty element has two
// bytes, and more than a hundred in memory.
type limitedCodec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c limitedCodec) Unmarshal(data mem.BufferSlice, message any) error {
	elements := 0
	for rest := data.Materialize(); len(rest) > 0; elements++ {
		_, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return protowire.ParseError(n)
		}
		rest = rest[n:]
	}
	if elements > MaxKeys {
		return fmt.Errorf("a response of etcd has %d elements, more than %d: check endpoints in the Secret with the connection to etcd", elements, MaxKeys)
	}
	return c.CodecV2.Unmarshal(data, message)
}
