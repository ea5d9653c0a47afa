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

// LeafOptions describe a certificate for server authentication and, unless ServerOnly is set, client authentication.
type LeafOptions struct {
	// CommonName is the only field of the subject.
	CommonName string
	// DNSNames and Addresses are the required names and addresses in any order. An issued certificate keeps names that are no longer required until
	// it is renewed for another reason.
	DNSNames  []string
	Addresses []netip.Addr
	// Lifetime is the validity, limited by the validity of the CA. The certificate is renewed after a third, because a process
	// keeps the certificate that it read at start.
	Lifetime time.Duration
	// ServerOnly is for a server that reloads its certificate and does not use it as a client. The certificate is renewed after two
	// thirds of its lifetime.
	ServerOnly bool
	// Algorithm is the algorithm of the key.
	Algorithm Algorithm
}

// Leaf is a certificate with the data of its Secret and the time of its renewal.
type Leaf struct {
	// Data is the data of a Secret of type kubernetes.io/tls: tls.crt, tls.key and ca.crt with the bundle. It is the given map if nothing
	// changed.
	Data map[string][]byte
	// Cause is the reason for a change; empty for no change. It is the same for all certificates that EnsureServing issues.
	Cause string
	// Expires is the end of validity. Next is the time at which EnsureLeaf must be called again.
	Expires, Next time.Time
	// Renewed reports whether EnsureLeaf replaced an expiring or unusable certificate. It is false for a first certificate, added names and
	// another signing CA. EnsureServing never sets it.
	Renewed bool
	// Names and Addresses are the subject alternative names.
	Names     []string
	Addresses []netip.Addr
}

// EnsureLeaf returns the certificate of a Secret until it must be renewed, and a new one then. A certificate with added names keeps key and
// validity: a server that reloads tls.crt and tls.key at different times still has a matching pair.
func (r *Root) EnsureLeaf(data map[string][]byte, o LeafOptions, now time.Time) (Leaf, error) {
	existing, key, reason := r.checkLeaf(data, o, now)
	if reason == "" && bytes.Equal(data[dataKeyCACert], r.Data[dataKeyCACert]) {
		return r.newLeaf(o, data, existing, ""), nil
	}
	if reason == "" { // only the bundle has changed
		return r.newLeaf(o, map[string][]byte{
			dataKeyCert: data[dataKeyCert], dataKeyPrivateKey: data[dataKeyPrivateKey], dataKeyCACert: r.Data[dataKeyCACert],
		}, existing, "the bundle of trusted CAs has changed"), nil
	}
	template := o.buildTemplate(now, r.bundle[0])
	var err error
	switch {
	case key == nil:
		key, err = newKey(o.Algorithm)
	case existing.CheckSignatureFrom(r.bundle[0]) == nil:
		template.NotBefore, template.NotAfter = existing.NotBefore, existing.NotAfter
	}
	if err != nil {
		return Leaf{}, fmt.Errorf("issuing certificate %s: %w", o.CommonName, err)
	}
	issued, err := signCertificate(template, r.bundle[0], key, r.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("issuing certificate %s: %w", o.CommonName, err)
	}
	l := r.newLeaf(o, map[string][]byte{
		dataKeyCert: encodeCertificates(issued), dataKeyPrivateKey: key.pem, dataKeyCACert: r.Data[dataKeyCACert],
	}, issued, reason)
	l.Renewed = existing == nil && len(data) > 0
	return l, nil
}

// checkLeaf returns the reason to replace the certificate in data, empty for none. It returns certificate and key if the key can be reused.
func (r *Root) checkLeaf(data map[string][]byte, o LeafOptions, now time.Time) (*x509.Certificate, *signingKey, string) {
	if len(data) == 0 {
		return nil, nil, "no certificate existed"
	}
	pair, err := tls.X509KeyPair(data[dataKeyCert], data[dataKeyPrivateKey])
	if err != nil {
		return nil, nil, fmt.Sprintf("reading %s and %s: %v", dataKeyCert, dataKeyPrivateKey, err)
	}
	signer, _ := pair.PrivateKey.(crypto.Signer) // tls.X509KeyPair accepts signers only
	c, key := pair.Leaf, &signingKey{signer, data[dataKeyPrivateKey]}
	isDue := !now.Before(r.renewalTime(o, c))
	switch {
	case c.IsCA:
		return nil, nil, dataKeyCert + " holds a CA"
	case now.Before(c.NotBefore):
		return nil, nil, "it is not valid yet"
	case isDue && o.ServerOnly:
		return nil, nil, "two thirds of its lifetime have passed"
	case isDue:
		return nil, nil, "a third of its lifetime has passed"
	case c.CheckSignatureFrom(r.bundle[0]) != nil:
		return c, key, "it was signed by another CA"
	}
	if missing := o.firstMissingName(c); missing != "" {
		return c, key, missing + " is not in the certificate"
	}
	return c, key, ""
}

// renewalTime returns when a leaf is renewed. A leaf that expires with its CA cannot be extended before the CA is replaced.
func (r *Root) renewalTime(o LeafOptions, c *x509.Certificate) time.Time {
	if o.ServerOnly {
		return c.NotBefore.Add(lifetime(c) * 2 / 3)
	}
	if !c.NotAfter.Before(r.bundle[0].NotAfter) {
		return c.NotAfter
	}
	return c.NotBefore.Add(lifetime(c) / 3)
}

// firstMissingName returns the first required name or address that a certificate lacks.
func (o LeafOptions) firstMissingName(c *x509.Certificate) string {
	for _, name := range o.DNSNames {
		if !slices.Contains(c.DNSNames, name) {
			return name
		}
	}
	addresses := ipAddresses(c)
	for _, a := range o.Addresses {
		if !slices.Contains(addresses, a.Unmap()) {
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

func (r *Root) newLeaf(o LeafOptions, data map[string][]byte, c *x509.Certificate, reason string) Leaf {
	next := r.renewalTime(o, c)
	if !r.Next.IsZero() && r.Next.Before(next) {
		next = r.Next
	}
	return Leaf{Data: data, Cause: reason, Expires: c.NotAfter, Next: next, Names: c.DNSNames, Addresses: ipAddresses(c)}
}
