package certs

import (
	"bytes"
	"crypto/tls"
	"maps"
	"time"
)

const (
	// maxClockSkew is the assumed maximum difference between the clocks of nodes and clients.
	maxClockSkew = 5 * time.Minute
	caLifetime   = 2 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
	caCommonName = "odh-platform-operator-webhook-ca"
)

// certificatePair is the content of the Secret: a CA and the serving certificate.
type certificatePair struct {
	root           Root
	leaf           Leaf
	tlsCertificate *tls.Certificate
	data           map[string][]byte
}

// ensurePair returns the pair in the data of a Secret after all renewals that are due.
func ensurePair(data map[string][]byte, names []string, now time.Time) (*certificatePair, error) {
	root, err := EnsureRoot(data, RootOptions{CommonName: caCommonName, Lifetime: caLifetime}, now)
	if err != nil {
		return nil, err
	}
	leaf, err := root.EnsureLeaf(data, LeafOptions{CommonName: names[0], DNSNames: names, Lifetime: leafLifetime, ServerOnly: true}, now)
	if err != nil {
		return nil, err
	}
	p := &certificatePair{root: root, leaf: leaf, data: maps.Clone(root.Data)}
	p.data[dataKeyCert], p.data[dataKeyPrivateKey] = leaf.Data[dataKeyCert], leaf.Data[dataKeyPrivateKey]
	tlsCertificate, err := tls.X509KeyPair(p.data[dataKeyCert], p.data[dataKeyPrivateKey])
	if err != nil {
		return nil, err
	}
	p.tlsCertificate = &tlsCertificate
	return p, nil
}

// matches reports whether the data of a Secret is up to date.
func (p *certificatePair) matches(data map[string][]byte) bool {
	return maps.EqualFunc(data, p.data, bytes.Equal)
}

// hasSameSigner reports whether the serving certificates of both pairs are signed by the same CA.
func (p *certificatePair) hasSameSigner(other *certificatePair) bool {
	return p.root.bundle[0].Equal(other.root.bundle[0])
}
