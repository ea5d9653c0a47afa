package main

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	validity   = 365 * 24 * time.Hour
	serialBits = 128
	// skew is how far clocks may be apart without the certificate being rejected as not yet valid.
	skew = time.Hour
)

// servingCertificate supplies the TLS Secret of a Service, which on OpenShift the platform makes.
func servingCertificate(service, secret string) supplier {
	return func(namespace string, now time.Time) (*corev1.Secret, string, error) {
		certificate, key, err := selfSigned(service, namespace, now)
		if err != nil {
			return nil, "", fmt.Errorf("making the certificate for Secret %s: %w", secret, err)
		}
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		}, "a self-signed certificate of Service " + service + ", which on plain Kubernetes the user supplies", nil
	}
}

// selfSigned returns certificate and key, both as PEM, for every name that a Service has inside the cluster.
func selfSigned(service, namespace string, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	full := service + "." + namespace + ".svc"
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: full},
		DNSNames:  []string{service, service + "." + namespace, full, full + ".cluster.local"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(validity),
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
