package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	selfSignedValidity = 365 * 24 * time.Hour
	selfSignedSerial   = 128 // bits
	// selfSignedSkew is how far clocks may be apart without the certificate being rejected as not yet valid.
	selfSignedSkew = time.Hour
)

// SelfSigned returns certificate and key, both as PEM, for every name that a Service has inside the cluster.
func SelfSigned(service, namespace string, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), selfSignedSerial))
	if err != nil {
		return nil, nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	full := service + "." + namespace + ".svc"
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: full},
		DNSNames:  []string{service, service + "." + namespace, full, full + ".cluster.local"},
		NotBefore: now.Add(-selfSignedSkew), NotAfter: now.Add(selfSignedValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("signing: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
