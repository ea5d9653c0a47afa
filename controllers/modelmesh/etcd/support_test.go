package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer is an etcd server with responses set by the test.
type fakeServer struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedAuthServer
	list  func(*pb.RangeRequest) (*pb.RangeResponse, error)
	watch func(*pb.WatchCreateRequest, func(*pb.WatchResponse) error) error
	// password is required if it is not empty.
	password string

	mu     sync.Mutex
	token  string
	logins int
	leader []string // the hasleader metadata of watches
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// authorize rejects requests without the current token if a password is required.
func (s *fakeServer) authorize(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	header, _ := metadata.FromIncomingContext(ctx)
	if s.password != "" && !slices.Equal(header.Get("token"), []string{s.token}) {
		return status.Error(codes.Unauthenticated, "etcdserver: invalid auth token")
	}
	return nil
}

// invalidateToken invalidates the current token.
func (s *fakeServer) invalidateToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = rand.Text()
}

// Authenticate implements pb.AuthServer.
func (s *fakeServer) Authenticate(_ context.Context, in *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	switch {
	case s.password == "":
		return nil, status.Error(codes.FailedPrecondition, "etcdserver: authentication is not enabled")
	case in.GetName() != "root" || in.GetPassword() != s.password:
		return nil, status.Error(codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	}
	s.token = rand.Text()
	return &pb.AuthenticateResponse{Token: s.token}, nil
}

// Range implements pb.KVServer.
func (s *fakeServer) Range(ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.authorize(ctx); err != nil {
		return nil, err
	}
	return s.list(in)
}

// Watch implements pb.WatchServer.
func (s *fakeServer) Watch(stream pb.Watch_WatchServer) error {
	header, _ := metadata.FromIncomingContext(stream.Context())
	s.mu.Lock()
	s.leader = append(s.leader, header.Get("hasleader")...)
	s.mu.Unlock()
	if err := s.authorize(stream.Context()); err != nil {
		return err
	}
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.watch(request.GetCreateRequest(), stream.Send)
}

// serve starts a server that stops when the test ends or stop is called.
func serve(t *testing.T, address string, s *fakeServer, config *tls.Config) (boundAddress string, stop func()) {
	t.Helper()
	listener, stop := meshtest.Serve(t, address, config, func(g *grpc.Server) {
		pb.RegisterKVServer(g, s)
		pb.RegisterWatchServer(g, s)
		pb.RegisterAuthServer(g, s)
	})
	return listener.String(), stop
}

// secret returns the data of a Secret with the connection and other keys.
func secret(t *testing.T, c Connection, files map[string]string) map[string][]byte {
	t.Helper()
	raw, err := json.Marshal(c)
	must(t, err)
	data := map[string][]byte{ConnectionKey: raw}
	for name, content := range files {
		data[name] = []byte(content)
	}
	return data
}

// dial returns a client that is closed when the test ends.
func dial(t *testing.T, data map[string][]byte) *Client {
	t.Helper()
	c, err := New(data)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// certificate returns a self-signed key pair as PEM.
func certificate(t *testing.T, names ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "etcd"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
