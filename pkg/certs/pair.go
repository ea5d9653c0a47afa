package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"
)

const (
	// caLifetime and leafLifetime are how long what we issue is valid.
	caLifetime, leafLifetime = 2 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// skew is how far the clocks of the cluster may differ.
	skew = 5 * time.Minute
	// overlap is how long a new CA is published before it signs the serving certificate.
	overlap = time.Hour
	// commonName of the CA.
	commonName = "odh-platform-operator-webhook-ca"
)

// Keys of the Secret. The first two are those of type kubernetes.io/tls.
const (
	keyLeafCert, keyLeafKey = "tls.crt", "tls.key"
	keyCACert, keyCAKey     = "ca.crt", "ca.key"
)

// pair is the content of the Secret: an authority and a serving certificate.
type pair struct {
	authorities []*x509.Certificate // the newest first; it signs
	caKey       crypto.Signer
	leaf        *x509.Certificate
	leafKey     crypto.Signer
	data        map[string][]byte
}

// renewal is the moment from which a certificate should be replaced: after two thirds of its life.
func renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}

// trusted is the moment at which everybody knows the newest CA.
func (p *pair) trusted() time.Time { return p.authorities[0].NotBefore.Add(skew + overlap) }

// bySigner tells whether the newest CA signed the serving certificate.
func (p *pair) bySigner() bool { return p.leaf.CheckSignatureFrom(p.authorities[0]) == nil }

// next is the moment at which something is due.
func (p *pair) next() time.Time {
	leaf := renewal(p.leaf)
	if !p.bySigner() || leaf.Before(p.trusted()) {
		leaf = p.trusted()
	}
	if ca := renewal(p.authorities[0]); ca.Before(leaf) {
		return ca
	}
	return leaf
}

// leafDue tells whether a new serving certificate is to be issued. While the newest CA is not trusted everywhere, a
// valid certificate of the one before is better than a new one.
func (p *pair) leafDue(now time.Time) bool {
	if p.leaf == nil {
		return true
	}
	return !now.Before(p.trusted()) && (!p.bySigner() || !now.Before(renewal(p.leaf)))
}

// certificate is what a listener serves.
func (p *pair) certificate() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.leaf.Raw}, PrivateKey: p.leafKey, Leaf: p.leaf}
}

// terms are what certificates are issued for.
type terms struct {
	authority                string   // common name of the CA
	names                    []string // of the serving certificate, the first of which is its common name
	caLifetime, leafLifetime time.Duration
	algorithm                Algorithm
}

// webhookTerms are those of an Authority.
func webhookTerms(names []string) terms {
	return terms{authority: commonName, names: names, caLifetime: caLifetime, leafLifetime: leafLifetime}
}

// load reads the Secret's data. A pair without an error has a usable authority; leaf is nil when the serving
// certificate is missing, damaged, for other names or not valid now.
func load(data map[string][]byte, names []string, now time.Time) (*pair, error) {
	p := &pair{data: data}
	var err error
	if p.authorities, err = parseCertificates(data[keyCACert]); err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyCACert, err)
	}
	if p.caKey, err = parseKey(data[keyCAKey]); err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyCAKey, err)
	}
	signer := p.authorities[0]
	if !belongs(p.caKey, signer) || !signer.IsCA {
		return nil, errors.New("the key of the CA does not belong to its certificate")
	}
	if now.After(signer.NotAfter) {
		return nil, errors.New("the CA has expired")
	}
	p.leaf, p.leafKey = loadLeaf(data, p.authorities, names, now)
	return p, nil
}

func loadLeaf(data map[string][]byte, authorities []*x509.Certificate, names []string, now time.Time) (*x509.Certificate, crypto.Signer) {
	chain, err := parseCertificates(data[keyLeafCert])
	if err != nil {
		return nil, nil
	}
	key, err := parseKey(data[keyLeafKey])
	if err != nil || !belongs(key, chain[0]) {
		return nil, nil
	}
	roots := x509.NewCertPool()
	for _, ca := range authorities {
		roots.AddCert(ca)
	}
	for _, name := range names {
		if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return nil, nil
		}
	}
	return chain[0], key
}

// renew returns p, or a new pair in which what is due at now has been done. A nil p is a start from nothing.
func renew(p *pair, names []string, now time.Time) (*pair, error) {
	out := &pair{}
	if p != nil {
		*out = *p
	}
	if p == nil || !now.Before(renewal(p.authorities[0])) {
		if err := out.issueCA(webhookTerms(names), now); err != nil {
			return nil, err
		}
	}
	if out.leafDue(now) {
		if err := out.issueLeaf(webhookTerms(names), now); err != nil {
			return nil, err
		}
	}
	if p != nil && out.leaf == p.leaf && out.caKey == p.caKey {
		return p, nil
	}
	return out, out.encode()
}

// issueCA puts a new CA first and keeps the one before it.
func (p *pair) issueCA(t terms, now time.Time) error {
	key, err := newKey(t.algorithm)
	if err != nil {
		return fmt.Errorf("generating the key of the CA: %w", err)
	}
	template := authorityTemplate(t.authority, now, t.caLifetime)
	template.MaxPathLenZero = true
	ca, err := sign(template, template, key, key)
	if err != nil {
		return fmt.Errorf("issuing the CA: %w", err)
	}
	p.authorities = append([]*x509.Certificate{ca}, p.authorities[:min(1, len(p.authorities))]...)
	p.caKey = key
	return nil
}

func (p *pair) issueLeaf(t terms, now time.Time) error {
	key, err := newKey(t.algorithm)
	if err != nil {
		return fmt.Errorf("generating the key of the serving certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: t.names[0]}, DNSNames: t.names,
		NotBefore: now.Add(-skew), NotAfter: now.Add(t.leafLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if p.leaf, err = sign(template, p.authorities[0], key, p.caKey); err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	p.leafKey = key
	return nil
}

// encode fills data from the parsed form.
func (p *pair) encode() error {
	caKey, err := encodeKey(p.caKey)
	if err != nil {
		return err
	}
	leafKey, err := encodeKey(p.leafKey)
	if err != nil {
		return err
	}
	p.data = map[string][]byte{
		keyLeafCert: encodeCertificates(p.leaf), keyLeafKey: leafKey,
		keyCACert: encodeCertificates(p.authorities...), keyCAKey: caKey,
	}
	return nil
}
