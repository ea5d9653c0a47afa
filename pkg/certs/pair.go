package certs

import (
	"bytes"
	"crypto/tls"
	"maps"
	"time"
)

const (
	// skew is how far the clocks of the cluster may differ.
	skew = 5 * time.Minute
	// caLifetime and leafLifetime are how long the certificates of webhooks are valid.
	caLifetime, leafLifetime = 2 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// commonName of their CA.
	commonName = "odh-platform-operator-webhook-ca"
)

// pair is the content of the Secret: a CA and the serving certificate.
type pair struct {
	root   Root
	leaf   Leaf
	served *tls.Certificate
	data   map[string][]byte
}

// keepPair returns what is in the data of a Secret with what is due at now done to it.
func keepPair(data map[string][]byte, names []string, now time.Time) (*pair, error) {
	root, err := KeepRoot(data, RootOptions{CommonName: commonName, Lifetime: caLifetime}, now)
	if err != nil {
		return nil, err
	}
	leaf, err := root.KeepLeaf(data, LeafOptions{CommonName: names[0], DNSNames: names, Lifetime: leafLifetime, ServerOnly: true}, now)
	if err != nil {
		return nil, err
	}
	p := &pair{root: root, leaf: leaf, data: maps.Clone(root.Data)}
	p.data[keyLeafCert], p.data[keyLeafKey] = leaf.Data[keyLeafCert], leaf.Data[keyLeafKey]
	served, err := tls.X509KeyPair(p.data[keyLeafCert], p.data[keyLeafKey])
	if err != nil {
		return nil, err
	}
	p.served = &served
	return p, nil
}

// holds reports whether a Secret needs no change.
func (p *pair) holds(data map[string][]byte) bool { return maps.EqualFunc(data, p.data, bytes.Equal) }
