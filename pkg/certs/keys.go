package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secrets. The first two are those of type kubernetes.io/tls.
const (
	secretKeyCert, secretKeyPrivateKey     = "tls.crt", "tls.key"
	secretKeyCACert, secretKeyCAPrivateKey = "ca.crt", "ca.key"
)

// Algorithm is the kind of key that a certificate is made for.
type Algorithm string

const (
	// ECDSA is a key on the curve P-256: small, quick to make, and understood by OpenSSL, BoringSSL (gRPC) and Python.
	ECDSA Algorithm = "ECDSA"
	// RSA is a key of 2048 bits, for clients that cannot do with the other.
	RSA Algorithm = "RSA"
)

// rsaBits is the size of an RSA key.
const rsaBits = 2048

// signingKey is a key, and how it is written.
type signingKey struct {
	crypto.Signer
	pem []byte
}

// newKey makes a key; the empty Algorithm is ECDSA.
func newKey(a Algorithm) (*signingKey, error) {
	var key crypto.Signer
	var err error
	if a == RSA {
		key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return &signingKey{key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}, nil
}

// parseKey reads the first key in any of the forms that programs write: PKCS #8, PKCS #1 (RSA) and SEC 1 (EC).
func parseKey(raw []byte) (*signingKey, error) {
	key, err := keyutil.ParsePrivateKeyPEM(raw)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T, which cannot sign", key)
	}
	return &signingKey{signer, raw}, nil
}

// belongs reports whether a certificate is for a key.
func keyMatches(key crypto.Signer, c *x509.Certificate) bool {
	own, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && own.Equal(c.PublicKey)
}

// sign makes a certificate, with a random serial number. An authority gets the id of its key.
func signCertificate(template, parent *x509.Certificate, key, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encodeCertificates(certs ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range certs {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: c.Raw}))
	}
	return b.Bytes()
}

// FirstCertificate reads the first certificate of a text in PEM form, which is that of the server in tls.crt; nil when there is none
// that can be read.
func FirstCertificate(raw []byte) *x509.Certificate {
	if all, err := certutil.ParseCertsPEM(raw); err == nil {
		return all[0]
	}
	return nil
}
