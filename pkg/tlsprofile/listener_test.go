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

// serverConfig returns a server configuration, built in the order of controller-runtime: TLSOpts first, then the certificate.
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

// handshake connects a client with the given maximum version and returns the negotiated state.
func handshake(t *testing.T, server *tls.Config, maxVersion uint16) (tls.ConnectionState, error) {
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
		InsecureSkipVerify: true, //nolint:gosec // the test checks versions, not trust
		MinVersion:         tls.VersionTLS10, MaxVersion: maxVersion, NextProtos: []string{"h2"},
	})
	err := client.HandshakeContext(ctx)
	return client.ConnectionState(), err
}

func TestListenerUsesCurrentProfile(t *testing.T) {
	l := NewListener()
	config := serverConfig(t, l)

	state, err := handshake(t, config, tls.VersionTLS12)
	if err != nil || state.Version != tls.VersionTLS12 || state.NegotiatedProtocol != "h2" {
		t.Errorf("Intermediate: want TLS 1.2 and h2 negotiated, got version %#x, protocol %q, error %v", state.Version, state.NegotiatedProtocol, err)
	}
	if _, err := handshake(t, config, tls.VersionTLS11); err == nil {
		t.Error("Intermediate: TLS 1.1 was not rejected")
	}

	modern, _, err := FromAPIServer(apiServer(map[string]any{"type": "Modern"}))
	if err != nil {
		t.Fatal(err)
	}
	l.Set(modern)
	if _, err := handshake(t, config, tls.VersionTLS12); err == nil {
		t.Error("Modern: TLS 1.2 was not rejected on the next connection")
	}
	if state, err := handshake(t, config, tls.VersionTLS13); err != nil || state.Version != tls.VersionTLS13 {
		t.Errorf("Modern: want TLS 1.3 negotiated, got version %#x, error %v", state.Version, err)
	}

	singleCipher, _, err := FromAPIServer(apiServer(custom("VersionTLS12", "ECDHE-ECDSA-AES256-GCM-SHA384")))
	if err != nil {
		t.Fatal(err)
	}
	l.Set(singleCipher)
	state, err = handshake(t, config, tls.VersionTLS12)
	if err != nil || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
		t.Errorf("Custom: want its only cipher negotiated, got %#x, error %v", state.CipherSuite, err)
	}
}
