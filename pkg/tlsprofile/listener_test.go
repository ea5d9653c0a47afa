package tlsprofile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// serverConfig is configured in the order in which controller-runtime does it: options first, certificate later.
func serverConfig(t *testing.T, l *Listener) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{}
	l.Configure(config)
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return config
}

// handshake connects a client of the given top version and returns what was agreed on.
func handshake(t *testing.T, server *tls.Config, highest uint16) (tls.ConnectionState, error) {
	t.Helper()
	serverSide, clientSide := net.Pipe()
	defer serverSide.Close()
	defer clientSide.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		if tls.Server(serverSide, server).HandshakeContext(ctx) != nil {
			serverSide.Close()
		}
	}()
	client := tls.Client(clientSide, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // the test is about versions, not about trust
		MinVersion:         tls.VersionTLS10, MaxVersion: highest, NextProtos: []string{"h2"},
	})
	err := client.HandshakeContext(ctx)
	return client.ConnectionState(), err
}

func TestListenerFollowsTheProfileInForce(t *testing.T) {
	l := NewListener()
	config := serverConfig(t, l)

	state, err := handshake(t, config, tls.VersionTLS12)
	if err != nil || state.Version != tls.VersionTLS12 || state.NegotiatedProtocol != "h2" {
		t.Errorf("Intermediate: TLS 1.2 and h2 must be agreed on, got version %#x, protocol %q, error %v", state.Version, state.NegotiatedProtocol, err)
	}
	if _, err := handshake(t, config, tls.VersionTLS11); err == nil {
		t.Error("Intermediate: TLS 1.1 must be refused")
	}

	modern, _, err := FromAPIServer(apiServer(map[string]any{"type": "Modern"}))
	if err != nil {
		t.Fatal(err)
	}
	l.Set(modern)
	if _, err := handshake(t, config, tls.VersionTLS12); err == nil {
		t.Error("Modern: TLS 1.2 must be refused on the next connection")
	}
	if state, err := handshake(t, config, tls.VersionTLS13); err != nil || state.Version != tls.VersionTLS13 {
		t.Errorf("Modern: TLS 1.3 must be agreed on, got %#x, %v", state.Version, err)
	}

	one, _, err := FromAPIServer(apiServer(custom("VersionTLS12", "ECDHE-ECDSA-AES256-GCM-SHA384")))
	if err != nil {
		t.Fatal(err)
	}
	l.Set(one)
	state, err = handshake(t, config, tls.VersionTLS12)
	if err != nil || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
		t.Errorf("Custom: the one cipher must be agreed on, got %#x, %v", state.CipherSuite, err)
	}
}
