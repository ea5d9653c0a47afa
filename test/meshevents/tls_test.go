package meshevents

import (
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
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// authority is a certificate authority.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem, _ = a.sign(template)
	block, _ := pem.Decode(a.pem)
	var err error
	a.cert, err = x509.ParseCertificate(block.Bytes)
	must(t, err)
	return a
}

// sign returns a certificate and its key; the first certificate is self-signed.
func (a *authority) sign(template *x509.Certificate) (cert, key []byte) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer, a.key = template, private, private
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	must(a.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (a *authority) leaf(name string) (cert, key []byte) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// The Secret has the certificates for mutual TLS under custom keys; the test rotates the client certificate.
func TestStreamUsesMutualTLS(t *testing.T) {
	ca, clients := newAuthority(t), newAuthority(t)
	cert, key := ca.leaf("etcd")
	e := startEtcdWith(t, "https://", "--cert-file="+write(t, "tls.crt", cert), "--key-file="+write(t, "tls.key", key),
		"--client-cert-auth", "--trusted-ca-file="+write(t, "ca.crt", clients.pem))
	clientCert, clientKey := clients.leaf("manager")
	pair, err := tls.X509KeyPair(clientCert, clientKey)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.pem)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.url()}, DialTimeout: waitTimeout, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	put(t, c, vmodelsPrefix+"first", `{}`)

	secret := func(ca, cert, key []byte) map[string][]byte {
		document, err := json.Marshal(meshetcd.Connection{
			Endpoints: e.url(), RootPrefix: "root", CertificateFile: "ca", ClientCertificateFile: "crt", ClientKeyFile: "key",
		})
		must(t, err)
		return map[string][]byte{meshetcd.ConnectionKey: document, "ca": ca, "crt": cert, "key": key}
	}
	s := startStream(t)
	s.Ensure("fraud", "mesh")
	untrustedCert, untrustedKey := ca.leaf("manager")
	must(t, s.Connect(secret(ca.pem, untrustedCert, untrustedKey))) // signed by a CA that etcd does not trust
	must(t, s.Connect(secret(ca.pem, clientCert, clientKey)))
	s.expect(t, predictor("first"))

	rotatedCert, rotatedKey := clients.leaf("manager")
	must(t, s.Connect(secret(ca.pem, rotatedCert, rotatedKey)))
	put(t, c, vmodelsPrefix+"second", `{}`)
	s.expect(t, predictor("second"))
	if err := s.Connect(secret(ca.pem, rotatedCert, clientKey)); err == nil {
		t.Error("a key of another certificate was not rejected")
	}
	put(t, c, vmodelsPrefix+"third", `{}`)
	s.expect(t, predictor("third"))
}
