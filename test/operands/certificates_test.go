//go:build operands

package operands

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// certificates are an unknown authority, and what it signed for this machine: a client that connects has been given
// the authority by the bundle of the pod.
type certificates struct {
	// ca is the certificate of the authority as PEM.
	ca []byte
	// certificate and key are the files of the certificate for localhost.
	certificate, key string
}

func newCertificates(dir string) (*certificates, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of this test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte{1},
	}
	ca, err := x509.CreateCertificate(rand.Reader, root, root, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, AuthorityKeyId: root.SubjectKeyId,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	made := &certificates{
		ca:          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}),
		certificate: filepath.Join(dir, "tls.crt"),
		key:         filepath.Join(dir, "tls.key"),
	}
	if err := os.WriteFile(made.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644); err != nil {
		return nil, err
	}
	return made, os.WriteFile(made.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
}
