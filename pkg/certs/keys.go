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

// Data keys of the Secrets. The first two are those of type kubernetes.io/tls.
const (
	dataKeyCert         = "tls.crt"
	dataKeyPrivateKey   = "tls.key"
	dataKeyCACert       = "ca.crt"
	dataKeyCAPrivateKey = "ca.key"
)

// Algorithm is the algorithm of a private key.
type Algorithm string

const (
	// ECDSA uses the curve P-256, which is fast and supported by OpenSSL, BoringSSL (gRPC) and Python.
	ECDSA Algorithm = "ECDSA"
	// RSA uses 2048 bits, for clients without ECDSA.
	RSA Algorithm = "RSA"
)

const rsaBits = 2048

// signingKey is a private key with its PEM encoding.
type signingKey struct {
	crypto.Signer
	pem []byte
}

// newKey generates a key; the empty Algorithm is ECDSA.
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

// parseKey parses the first PEM key as PKCS #8, PKCS #1 (RSA) or SEC 1 (EC).
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

// keyMatches reports whether a certificate has the public key of key.
func keyMatches(key crypto.Signer, c *x509.Certificate) bool {
	publicKey, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && publicKey.Equal(c.PublicKey)
}

// signCertificate returns a certificate with a random serial number. A CA certificate gets a subject key ID.
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

// FirstCertificate returns the first PEM certificate, which is the server certificate in tls.crt; nil if parsing fails.
func FirstCertificate(raw []byte) *x509.Certificate {
	if certificates, err := certutil.ParseCertsPEM(raw); err == nil {
		return certificates[0]
	}
	return nil
}
