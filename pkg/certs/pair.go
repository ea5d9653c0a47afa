package certs

import (
	"bytes"
	"crypto/tls"
	"maps"
	"time"
)

const (
	// skew is how far the clocks of the cluster may differ.
	maxClockSkew = 5 * time.Minute
	// caLifetime and leafLifetime are how long the certificates of webhooks are valid.
	caLifetime, leafLifetime = 2 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// commonName of their CA.
	caCommonName = "odh-platform-operator-webhook-ca"
)

// pair is the content of the Secret: a CA and the serving certificate.
type certificatePair struct {
	root           Root
	leaf           Leaf
	tlsCertificate *tls.Certificate
	data           map[string][]byte
}

// keepPair returns what is in the data of a Secret with what is due at now done to it.
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
	p.data[secretKeyCert], p.data[secretKeyPrivateKey] = leaf.Data[secretKeyCert], leaf.Data[secretKeyPrivateKey]
	served, err := tls.X509KeyPair(p.data[secretKeyCert], p.data[secretKeyPrivateKey])
	if err != nil {
		return nil, err
	}
	p.tlsCertificate = &served
	return p, nil
}

// holds reports whether a Secret needs no change.
func (p *certificatePair) matches(data map[string][]byte) bool {
	return maps.EqualFunc(data, p.data, bytes.Equal)
}
