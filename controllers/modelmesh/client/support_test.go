package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMesh is a fake routing layer that records its calls.
type fakeMesh struct {
	meshpb.UnimplementedModelMeshServer
	respond func(context.Context) error

	mu       sync.Mutex
	requests []any
}

func (m *fakeMesh) recordCall(ctx context.Context, request any) error {
	m.mu.Lock()
	m.requests = append(m.requests, request)
	m.mu.Unlock()
	if m.respond != nil {
		return m.respond(ctx)
	}
	return nil
}

func (m *fakeMesh) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

func (m *fakeMesh) SetVModel(ctx context.Context, in *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	return &meshpb.VModelStatusInfo{TargetModelId: in.TargetModelId}, m.recordCall(ctx, in)
}

func (m *fakeMesh) DeleteVModel(ctx context.Context, in *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	return &meshpb.DeleteVModelResponse{}, m.recordCall(ctx, in)
}

func (m *fakeMesh) GetVModelStatus(ctx context.Context, in *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	return &meshpb.VModelStatusInfo{ActiveModelId: in.VModelId, Owner: in.Owner}, m.recordCall(ctx, in)
}

// serve starts a routing layer at an address and returns its port. It runs until stop is called or the test ends.
func serve(t *testing.T, address string, m *fakeMesh, config *tls.Config) (port int32, stop func()) {
	t.Helper()
	tcpAddress, stop := meshtest.Serve(t, address, config, func(s *grpc.Server) { meshpb.RegisterModelMeshServer(s, m) })
	return int32(tcpAddress.Port), stop
}

// newPool returns a pool that is closed when the test ends, and a function that returns the namespaces notified since its last call.
func newPool(t *testing.T) (*Pool, func() []string) {
	t.Helper()
	p := NewPool(testLogger(t))
	var mu sync.Mutex
	var notified []string
	p.Subscribe(t.Context(), func(namespace string) {
		mu.Lock()
		defer mu.Unlock()
		notified = append(notified, namespace)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned error %v", err)
		}
	})
	return p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		namespaces := notified
		notified = nil
		return namespaces
	}
}

var fraud = types.NamespacedName{Namespace: "fraud", Name: "modelmesh-serving"}

func target(port int32) Target { return Target{Service: fraud.Name, Port: port} }

// endpointSliceOf returns the EndpointSlice of a Service whose pods are ready at the given addresses.
func endpointSliceOf(port int32, addresses ...string) []discoveryv1.EndpointSlice {
	slice := discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("grpc"), Port: &port}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return []discoveryv1.EndpointSlice{slice}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clientOf(t *testing.T, p *Pool, namespace string) Client {
	t.Helper()
	c, found := p.Client(namespace)
	if !found {
		t.Fatalf("namespace %s has no client", namespace)
	}
	return c
}

// eventually calls try until it returns no error.
func eventually(t *testing.T, description string, try func() error) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s: %v", description, err)
		case <-tick.C:
		}
	}
}

// certificate returns a self-signed key pair for the given name, as PEM.
func certificate(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newKeyPair(t *testing.T, name string) *KeyPair {
	t.Helper()
	cert, key := certificate(t, name)
	pair, err := ParseKeyPair("mesh-tls", map[string][]byte{"tls.crt": cert, "tls.key": key})
	must(t, err)
	return pair
}

// mutualTLS returns a server configuration with the key pair that requires a client certificate signed with it.
func mutualTLS(t *testing.T, pair *KeyPair) *tls.Config {
	t.Helper()
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pair.Certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

func loopback(port int32) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }
