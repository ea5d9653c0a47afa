package certs

import (
	"crypto/x509"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// ServingOptions say for what a serving certificate is good.
type ServingOptions struct {
	// Authority is the common name of the CA.
	CACommonName string
	// DNSNames of the certificate, the first of which is its common name. At least one.
	DNSNames []string
	// Lifetime of certificate and CA. They are renewed after two thirds of it.
	Lifetime time.Duration
	// Algorithm of both keys.
	Algorithm Algorithm
}

// KeepServing returns the certificate in the data of a Secret while it is good, and otherwise a new one. The key of a CA
// signs once and is thrown away: a client that reads the Secret, the program that serves with it above all, can pose as this
// service and as no other. ca.crt holds the CA that signed and the one before it, while that is valid: clients that read it trust
// both the old certificate and the new one during the change.
func EnsureServing(data map[string][]byte, o ServingOptions, now time.Time) (Leaf, error) {
	leaf := LeafOptions{CommonName: o.DNSNames[0], DNSNames: o.DNSNames, Lifetime: o.Lifetime, Algorithm: o.Algorithm, ServerOnly: true}
	var r Root
	var before []*x509.Certificate
	if known, err := certutil.ParseCertsPEM(data[secretKeyCACert]); err == nil {
		r.bundle, before = known, known[:1]
		old, _, why := r.checkLeaf(data, leaf, now)
		if why == "" {
			return r.newLeaf(leaf, data, old, ""), nil
		}
		if now.After(known[0].NotAfter) {
			before = nil
		}
	}
	ca, key, err := RootOptions{CommonName: o.CACommonName, Lifetime: o.Lifetime, Algorithm: o.Algorithm}.issue(now)
	if err != nil {
		return Leaf{}, err
	}
	r.bundle, r.key = append([]*x509.Certificate{ca}, before...), key
	r.Data = map[string][]byte{secretKeyCACert: encodeCertificates(r.bundle...)}
	return r.EnsureLeaf(nil, leaf, now)
}
