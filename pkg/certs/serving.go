package certs

import (
	"fmt"
	"time"
)

// ServingOptions say for what a serving certificate is good.
type ServingOptions struct {
	// Authority is the common name of the CA.
	Authority string
	// DNSNames of the certificate, the first of which is its common name. At least one.
	DNSNames []string
	// Lifetime of certificate and CA. They are renewed after two thirds of it.
	Lifetime time.Duration
	// Algorithm of both keys.
	Algorithm Algorithm
}

// Serving is a serving certificate for a program that is not this one.
type Serving struct {
	// Data of a Secret of type kubernetes.io/tls: tls.crt, tls.key, and ca.crt with the CA that signed, followed by the
	// one before it while that is valid.
	Data map[string][]byte
	// Issued says that Data is new and has to be written.
	Issued bool
	// Renew is when this is to be looked at again; Expires is when the certificate ends.
	Renew, Expires time.Time
}

// KeepServing returns the certificate in the data of a Secret while it is good, and otherwise a new one. The key of a CA
// signs once and is thrown away: whoever reads the Secret, the program that serves with it above all, can pose as this
// service and as no other. Clients that read ca.crt trust both the old certificate and the new one during the change.
func KeepServing(data map[string][]byte, o ServingOptions, now time.Time) (Serving, error) {
	p := &pair{}
	if known, err := parseCertificates(data[keyCACert]); err == nil {
		p.authorities = known
		p.leaf, p.leafKey = loadLeaf(data, known[:1], o.DNSNames, now)
	}
	if p.leaf != nil && now.Before(renewal(p.leaf)) {
		return Serving{Data: data, Renew: renewal(p.leaf), Expires: p.leaf.NotAfter}, nil
	}
	if len(p.authorities) > 0 && now.After(p.authorities[0].NotAfter) {
		p.authorities = nil
	}
	t := terms{authority: o.Authority, names: o.DNSNames, caLifetime: o.Lifetime, leafLifetime: o.Lifetime, algorithm: o.Algorithm}
	if err := p.issueCA(t, now); err != nil {
		return Serving{}, err
	}
	if err := p.issueLeaf(t, now); err != nil {
		return Serving{}, err
	}
	key, err := encodeKey(p.leafKey)
	if err != nil {
		return Serving{}, fmt.Errorf("encoding the serving certificate: %w", err)
	}
	return Serving{
		Data: map[string][]byte{
			keyLeafCert: encodeCertificates(p.leaf), keyLeafKey: key, keyCACert: encodeCertificates(p.authorities...),
		},
		Issued: true, Renew: renewal(p.leaf), Expires: p.leaf.NotAfter,
	}, nil
}
