package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// LeafOptions say for what a certificate is good that is client and server in one.
type LeafOptions struct {
	// CommonName is the whole subject.
	CommonName string
	// DNSNames and Addresses under which it is reached, in any order. More may stand in the certificate: what is gone goes
	// with the next one that is issued for another reason.
	DNSNames  []string
	Addresses []netip.Addr
	// Lifetime of the certificate, which never outlives its CA. It is renewed after a third of it, because a process that starts
	// with it keeps it for as long as it runs.
	Lifetime time.Duration
	// ServerOnly is for a program that reads a renewed certificate without a restart and calls no server with it: it is renewed after
	// two thirds of its life.
	ServerOnly bool
	// Algorithm of its key.
	Algorithm Algorithm
}

// Leaf is a certificate for a server, or for one role of servers that trust each other.
type Leaf struct {
	// Data of a Secret of type kubernetes.io/tls: tls.crt, tls.key and ca.crt with the whole bundle. It is the given map when
	// nothing changed.
	Data map[string][]byte
	// Why says what made a change necessary; empty says that there was none.
	Reason string
	// Expires is when the certificate ends. Next is when it is to be looked at again.
	Expires, Next time.Time
	// Renewed says that the certificate before was near its end or of no use, and not that names were added or that it is the
	// first.
	Renewed bool
	// Names and Addresses that the certificate is good for.
	Names     []string
	Addresses []netip.Addr
}

// KeepLeaf returns the certificate in the data of a Secret while it is good, and otherwise one that is. Names that are added
// cost neither the key nor a day of the life: a server that reads the new certificate with the old key, or the other way
// round, still finds a pair.
func (r *Root) EnsureLeaf(data map[string][]byte, o LeafOptions, now time.Time) (Leaf, error) {
	old, key, why := r.checkLeaf(data, o, now)
	if why == "" && bytes.Equal(data[secretKeyCACert], r.Data[secretKeyCACert]) {
		return r.newLeaf(o, data, old, ""), nil
	}
	if why == "" { // the bundle alone has changed
		return r.newLeaf(o, map[string][]byte{
			secretKeyCert: data[secretKeyCert], secretKeyPrivateKey: data[secretKeyPrivateKey], secretKeyCACert: r.Data[secretKeyCACert],
		}, old, "other CAs are trusted"), nil
	}
	template := o.buildTemplate(now, r.bundle[0])
	var err error
	switch {
	case key == nil:
		key, err = newKey(o.Algorithm)
	case old.CheckSignatureFrom(r.bundle[0]) == nil:
		template.NotBefore, template.NotAfter = old.NotBefore, old.NotAfter
	}
	if err != nil {
		return Leaf{}, fmt.Errorf("issuing certificate %s: %w", o.CommonName, err)
	}
	issued, err := signCertificate(template, r.bundle[0], key, r.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("issuing certificate %s: %w", o.CommonName, err)
	}
	l := r.newLeaf(o, map[string][]byte{
		secretKeyCert: encodeCertificates(issued), secretKeyPrivateKey: key.pem, secretKeyCACert: r.Data[secretKeyCACert],
	}, issued, why)
	l.Renewed = old == nil && len(data) > 0
	return l, nil
}

// judge says why the certificate in data will not do, and returns its key when that may be used again.
func (r *Root) checkLeaf(data map[string][]byte, o LeafOptions, now time.Time) (*x509.Certificate, *signingKey, string) {
	if len(data) == 0 {
		return nil, nil, "there was none"
	}
	pair, err := tls.X509KeyPair(data[secretKeyCert], data[secretKeyPrivateKey])
	if err != nil {
		return nil, nil, fmt.Sprintf("reading %s and %s: %v", secretKeyCert, secretKeyPrivateKey, err)
	}
	signer, _ := pair.PrivateKey.(crypto.Signer) // all keys that are read there sign
	c, key := pair.Leaf, &signingKey{signer, data[secretKeyPrivateKey]}
	switch {
	case c.IsCA:
		return nil, nil, secretKeyCert + " holds a CA"
	case !now.Before(r.renewalTime(o, c)) || now.Before(c.NotBefore):
		return nil, nil, o.renewalFraction() + " of its life is over"
	case c.CheckSignatureFrom(r.bundle[0]) != nil:
		return c, key, "another CA signs"
	}
	if missing := o.firstMissingName(c); missing != "" {
		return c, key, missing + " is new"
	}
	return c, key, ""
}

// renewal is when a leaf is due. One that ends with its CA cannot be bettered before that is replaced.
func (r *Root) renewalTime(o LeafOptions, c *x509.Certificate) time.Time {
	if o.ServerOnly {
		return c.NotBefore.Add(lifetime(c) * 2 / 3)
	}
	if !c.NotAfter.Before(r.bundle[0].NotAfter) {
		return c.NotAfter
	}
	return c.NotBefore.Add(lifetime(c) / 3)
}

// share of its life after which a certificate is renewed.
func (o LeafOptions) renewalFraction() string {
	if o.ServerOnly {
		return "two thirds"
	}
	return "a third"
}

// missing returns the first name or address that a certificate lacks.
func (o LeafOptions) firstMissingName(c *x509.Certificate) string {
	for _, name := range o.DNSNames {
		if !slices.Contains(c.DNSNames, name) {
			return name
		}
	}
	held := ipAddresses(c)
	for _, a := range o.Addresses {
		if !slices.Contains(held, a.Unmap()) {
			return a.String()
		}
	}
	return ""
}

func ipAddresses(c *x509.Certificate) []netip.Addr {
	out := make([]netip.Addr, 0, len(c.IPAddresses))
	for _, ip := range c.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func (o LeafOptions) buildTemplate(now time.Time, signer *x509.Certificate) *x509.Certificate {
	addresses := slices.Clone(o.Addresses)
	slices.SortFunc(addresses, netip.Addr.Compare)
	ips := make([]net.IP, 0, len(addresses))
	for _, a := range slices.Compact(addresses) {
		ips = append(ips, a.Unmap().AsSlice())
	}
	end := now.Add(o.Lifetime)
	if signer.NotAfter.Before(end) {
		end = signer.NotAfter
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if o.ServerOnly {
		usages = usages[:1]
	}
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: o.CommonName}, DNSNames: slices.Compact(slices.Sorted(slices.Values(o.DNSNames))), IPAddresses: ips,
		NotBefore: now.Add(-maxClockSkew), NotAfter: end, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: usages,
	}
}

func (r *Root) newLeaf(o LeafOptions, data map[string][]byte, c *x509.Certificate, why string) Leaf {
	next := r.renewalTime(o, c)
	if !r.Next.IsZero() && r.Next.Before(next) {
		next = r.Next
	}
	return Leaf{Data: data, Reason: why, Expires: c.NotAfter, Next: next, Names: c.DNSNames, Addresses: ipAddresses(c)}
}
