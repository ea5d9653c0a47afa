package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 42, Revision: revision}
}

func kv(key, value string, revision int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: revision}
}

func connectionTo(address string) Connection { return Connection{Endpoints: "http://" + address} }

func TestListPages(t *testing.T) {
	var requests []string
	s := &fakeServer{list: func(in *pb.RangeRequest) (*pb.RangeResponse, error) {
		requests = append(requests, fmt.Sprintf("%q %q %d@%d %t", in.Key, in.RangeEnd, in.Limit, in.Revision, in.KeysOnly))
		if in.Revision == 0 {
			return &pb.RangeResponse{Header: header(7), Kvs: []*mvccpb.KeyValue{kv("p/a", "1", 3), kv("p/b", "2", 4)}, More: true}, nil
		}
		return &pb.RangeResponse{Header: header(9), Kvs: []*mvccpb.KeyValue{kv("p/c", "3", 5)}}, nil
	}}
	address, _ := serve(t, "127.0.0.1:0", s, nil)
	got, err := dial(t, secret(t, connectionTo(address), nil)).List(t.Context(), "p/", true)
	must(t, err)
	if got.Revision != 7 || got.ClusterID != 42 || len(got.Entries) != 3 {
		t.Fatalf("listing %+v, want all pages at the revision of the first", got)
	}
	if last := got.Entries[2]; last.Key != "p/c" || string(last.Value) != "3" || last.Revision != 5 || last.Deleted {
		t.Errorf("last entry %+v, want p/c with its value and revision", last)
	}
	if want := []string{`"p/" "p0" 1000@0 true`, `"p/b\x00" "p0" 1000@7 true`}; !slices.Equal(requests, want) {
		t.Errorf("requests %v, want %v", requests, want)
	}
}

func TestListErrors(t *testing.T) {
	s := &fakeServer{list: func(*pb.RangeRequest) (*pb.RangeResponse, error) {
		return nil, status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	}}
	address, _ := serve(t, "127.0.0.1:0", s, nil)
	_, err := dial(t, secret(t, connectionTo(address), nil)).List(t.Context(), "p/", false)
	if err == nil || err.Error() != "listing p/: etcdserver: permission denied" {
		t.Errorf("error %v", err)
	}
}

func TestWatch(t *testing.T) {
	var request *pb.WatchCreateRequest
	received := make(chan struct{})
	s := &fakeServer{watch: func(in *pb.WatchCreateRequest, send func(*pb.WatchResponse) error) error {
		request = in
		err := errors.Join(
			send(&pb.WatchResponse{Header: header(7), Created: true}),
			send(&pb.WatchResponse{Header: header(8), Events: []*mvccpb.Event{
				{Type: mvccpb.Event_PUT, Kv: kv("p/a", "1", 8)}, {Type: mvccpb.Event_DELETE, Kv: kv("p/b", "", 8)},
			}}),
			send(&pb.WatchResponse{Header: header(9)})) // a progress notification
		<-received // after an error, the etcd client drops events that the caller has not received yet
		return errors.Join(err, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}}
	address, _ := serve(t, "127.0.0.1:0", s, nil)
	var got []Entry
	err := dial(t, secret(t, connectionTo(address), nil)).Watch(t.Context(), "p/", 7, func(entries []Entry) {
		got = append(got, entries...)
		close(received)
	})
	if err == nil || !strings.Contains(err.Error(), "watching p/: ") || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v", err)
	}
	if len(got) != 2 || got[0].Key != "p/a" || string(got[0].Value) != "1" || got[0].Deleted || got[1].Key != "p/b" || !got[1].Deleted || got[1].Revision != 8 {
		t.Errorf("entries %+v", got)
	}
	if request.GetStartRevision() != 8 || string(request.GetKey()) != "p/" || string(request.GetRangeEnd()) != "p0" || !slices.Equal(s.leader, []string{"true"}) {
		t.Errorf("request %v, hasleader %v", request, s.leader)
	}
}

func TestWatchErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		response *pb.WatchResponse
		want     string
	}{
		"compacted": {&pb.WatchResponse{Header: header(9), Canceled: true, CompactRevision: 9}, rpctypes.ErrCompacted.Error()},
		"canceled":  {&pb.WatchResponse{Header: header(9), WatchId: -1, Created: true, Canceled: true, CancelReason: "permission denied"}, "watching p/: permission denied"},
	} {
		s := &fakeServer{watch: respondOnce(t, tc.response)}
		address, _ := serve(t, "127.0.0.1:0", s, nil)
		err := dial(t, secret(t, connectionTo(address), nil)).Watch(t.Context(), "p/", 1, func([]Entry) { t.Error("handle was called without an entry") })
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, rpctypes.ErrCompacted) != (name == "compacted") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// respondOnce confirms a watch, if the response does not, and sends the response. The stream stays open until the test ends, as with etcd.
func respondOnce(t *testing.T, response *pb.WatchResponse) func(*pb.WatchCreateRequest, func(*pb.WatchResponse) error) error {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return func(_ *pb.WatchCreateRequest, send func(*pb.WatchResponse) error) error {
		var err error
		if !response.GetCreated() {
			err = send(&pb.WatchResponse{Header: header(1), Created: true})
		}
		err = errors.Join(err, send(response))
		<-done
		return err
	}
}

// [M5] A cancelled watch ends even if etcd does not respond.
func TestWatchCancellation(t *testing.T) {
	unresponsive := respondOnce(t, &pb.WatchResponse{Created: true})
	address, _ := serve(t, "127.0.0.1:0", &fakeServer{watch: unresponsive}, nil)
	for name, endpoint := range map[string]string{"during a watch": address, "etcd is down": "127.0.0.1:1"} {
		c := dial(t, secret(t, connectionTo(endpoint), nil))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Watch(ctx, "p/", 1, func([]Entry) {}) }()
		time.AfterFunc(100*time.Millisecond, cancel) // the watch has started, or waits for a connection
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want context.Canceled", name, err)
		}
	}
}

func TestUnavailableEtcdTimesOut(t *testing.T) {
	c := dial(t, secret(t, connectionTo("127.0.0.1:1"), nil))
	c.config.DialTimeout = 500 * time.Millisecond
	if _, err := c.List(t.Context(), "p/", false); err == nil || !strings.HasPrefix(err.Error(), "listing p/: etcd at http://127.0.0.1:1 did not answer within 500ms: check its address") {
		t.Errorf("error %v", err)
	}
	if err := c.Watch(t.Context(), "p/", 1, func([]Entry) {}); err == nil || !strings.Contains(err.Error(), "watching p/: etcd at http://127.0.0.1:1 did not answer within 500ms") {
		t.Errorf("error %v", err)
	}
}

func TestPasswordAuthentication(t *testing.T) {
	s := &fakeServer{password: "secret", list: func(*pb.RangeRequest) (*pb.RangeResponse, error) {
		return &pb.RangeResponse{Header: header(1)}, nil
	}}
	s.watch = respondOnce(t, &pb.WatchResponse{Header: header(9), WatchId: -1, Created: true, Canceled: true, CancelReason: "test ended"})
	address, _ := serve(t, "127.0.0.1:0", s, nil)
	connection := connectionTo(address)
	connection.UserID, connection.Password = "root", "secret"
	c := dial(t, secret(t, connection, nil))
	list := func() error { _, err := c.List(t.Context(), "p/", false); return err }
	watch := func() error { return c.Watch(t.Context(), "p/", 1, func([]Entry) {}) }
	must(t, list())
	must(t, list())
	if s.logins != 1 {
		t.Errorf("%d logins, want 1", s.logins)
	}
	s.invalidateToken() // as etcd does after some minutes and after each restart
	must(t, list())
	s.invalidateToken()
	if err := watch(); err == nil || !strings.Contains(err.Error(), "test ended") {
		t.Errorf("the watch was not authenticated: %v", err)
	}

	connection.Password = "wrong"
	c = dial(t, secret(t, connection, nil))
	for _, err := range []error{list(), watch()} {
		if err == nil || !strings.Contains(err.Error(), "connecting to etcd: etcdserver: authentication failed") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("error %v", err)
		}
	}
	s.password = ""
	must(t, func() error { _, err := dial(t, secret(t, connection, nil)).List(t.Context(), "p/", false); return err }())
}

func TestMultipleEndpoints(t *testing.T) {
	respondWith := func(revision int64) *fakeServer {
		return &fakeServer{list: func(*pb.RangeRequest) (*pb.RangeResponse, error) {
			return &pb.RangeResponse{Header: header(revision)}, nil
		}}
	}
	first, stop := serve(t, "127.0.0.1:0", respondWith(1), nil)
	second, _ := serve(t, "127.0.0.1:0", respondWith(2), nil)
	c := dial(t, secret(t, Connection{Endpoints: "http://" + first + ",http://" + second}, nil))
	seen := map[int64]bool{}
	for deadline := time.Now().Add(time.Minute); len(seen) < 2 && time.Now().Before(deadline); {
		got, err := c.List(t.Context(), "p/", false)
		must(t, err)
		seen[got.Revision] = true
	}
	if len(seen) != 2 {
		t.Fatalf("responses of %v, want both servers", seen)
	}
	stop()
	for range 3 {
		_, err := c.List(t.Context(), "p/", false)
		if status.Code(err) == codes.Unavailable {
			continue // the request was on the closed connection
		}
		must(t, err)
	}
	got, err := c.List(t.Context(), "p/", false)
	if must(t, err); got.Revision != 2 {
		t.Errorf("response of server %d, want that of the second", got.Revision)
	}
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t, "127.0.0.1")
	hostCert, hostKey := certificate(t, "etcd.example")
	client, clientKey := certificate(t, "client")
	responses := &fakeServer{list: func(*pb.RangeRequest) (*pb.RangeResponse, error) {
		return &pb.RangeResponse{Header: header(1)}, nil
	}}
	serveTLS := func(cert, key string) string {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		must(t, err)
		roots, err := TLSMaterial{CA: []byte(client)}.tlsConfig(true)
		must(t, err)
		address, _ := serve(t, "127.0.0.1:0", responses, &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: roots.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		})
		return "https://" + address
	}
	byAddress, byName := serveTLS(cert, key), serveTLS(hostCert, hostKey)
	for name, tc := range map[string]struct {
		connection Connection
		wantErr    bool
	}{
		"certificate of the address":                 {Connection{Endpoints: byAddress, Certificate: cert, ClientKey: clientKey, ClientCertificate: client}, false},
		"certificate of another name":                {Connection{Endpoints: byName, Certificate: hostCert, ClientKey: clientKey, ClientCertificate: client}, true},
		"certificate of another name, with override": {Connection{Endpoints: byName, Certificate: hostCert, ClientKey: clientKey, ClientCertificate: client, OverrideAuthority: "etcd.example"}, false},
		"certificate of an unknown CA":               {Connection{Endpoints: byAddress, Certificate: hostCert, ClientKey: clientKey, ClientCertificate: client}, true},
		"no client certificate":                      {Connection{Endpoints: byAddress, Certificate: cert}, true},
		"system CAs":                                 {Connection{Endpoints: byAddress, ClientKey: clientKey, ClientCertificate: client}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, secret(t, tc.connection, nil))
			if tc.wantErr {
				c.config.DialTimeout = 500 * time.Millisecond
			}
			if _, err := c.List(t.Context(), "p/", false); (err != nil) != tc.wantErr {
				t.Errorf("error %v, wantErr %t", err, tc.wantErr)
			}
		})
	}
}
