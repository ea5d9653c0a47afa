package certs

import (
	"crypto/x509"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// ServingOptions describe a serving certificate.
type ServingOptions struct {
	// CACommonName is the common name of the CA.
	CACommonName string
	// DNSNames are the names of the certificate, at least one. The first is its common name.
	DNSNames []string
	// Lifetime is the validity of certificate and CA. They are renewed after two thirds of it.
	Lifetime time.Duration
	// Algorithm is the algorithm of both keys.
	Algorithm Algorithm
}

// EnsureServing returns the certificate of a Secret until it must be renewed, and a new one then. The key of the CA is discarded after one
// signature, so a reader of the Secret, such as the server itself, can impersonate only this Service. ca.crt contains the CA and,
// while valid, the previous one: clients that read it trust both certificates during a renewal.
func EnsureServing(data map[string][]byte, o ServingOptions, now time.Time) (Leaf, error) {
	leaf := LeafOptions{CommonName: o.DNSNames[0], DNSNames: o.DNSNames, Lifetime: o.Lifetime, Algorithm: o.Algorithm, ServerOnly: true}
	var r Root
	var previous []*x509.Certificate
	if bundle, err := certutil.ParseCertsPEM(data[dataKeyCACert]); err == nil {
		r.bundle, previous = bundle, bundle[:1]
		existing, _, reason := r.checkLeaf(data, leaf, now)
		if reason == "" {
			return r.newLeaf(leaf, data, existing, ""), nil
		}
		if now.After(bundle[0].NotAfter) {
			previous = nil
		}
	}
	ca, key, err := RootOptions{CommonName: o.CACommonName, Lifetime: o.Lifetime, Algorithm: o.Algorithm}.issue(now)
	if err != nil {
		return Leaf{}, err
	}
	r.bundle, r.key = append([]*x509.Certificate{ca}, previous...), key
	r.Data = map[string][]byte{dataKeyCACert: encodeCertificates(r.bundle...)}
	return r.EnsureLeaf(nil, leaf, now)
}
