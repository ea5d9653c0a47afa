package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

var leafOptions = LeafOptions{
	CommonName: "ray-head", DNSNames: []string{"localhost", "127.0.0.1", "demo-head-svc.team.svc"},
	Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")},
	Lifetime:  year,
}

func ensureLeaf(t *testing.T, r *Root, data map[string][]byte, o LeafOptions, now time.Time) Leaf {
	t.Helper()
	l, err := r.EnsureLeaf(data, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// verify verifies a certificate against a bundle, as a server with a name and as a client.
func verify(data map[string][]byte, bundle []byte, name string, now time.Time) error {
	chain, err := certutil.ParseCertsPEM(data[dataKeyCert])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("the bundle holds no certificate")
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestEnsureLeafIssuesCertificate(t *testing.T) {
	root := ensureRoot(t, nil, epoch)
	l := ensureLeaf(t, &root, nil, leafOptions, epoch)
	for _, name := range []string{"localhost", "127.0.0.1", "demo-head-svc.team.svc", "10.0.0.7", "[fd00::7]"} {
		if name == "127.0.0.1" {
			continue // a DNS name of the certificate, for clients that compare it as text; Verify looks for an IP address
		}
		if err := verify(l.Data, root.Data[dataKeyCACert], name, epoch); err != nil {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
	chain, _ := certutil.ParseCertsPEM(l.Data[dataKeyCert])
	c := chain[0]
	if c.Subject.String() != "CN=ray-head" || c.IsCA || len(c.AuthorityKeyId) == 0 || !slices.Contains(c.DNSNames, "127.0.0.1") {
		t.Errorf("subject %s, CA %t, key ID of the authority %x, DNS names %v; want the leaf of ray-head", c.Subject, c.IsCA, c.AuthorityKeyId, c.DNSNames)
	}
	if l.Cause == "" || len(l.Data) != 3 || !l.Expires.Equal(epoch.Add(year)) || len(l.Addresses) != 2 {
		t.Errorf("cause %q, %d keys, expires %s, addresses %v; want a cause, 3 keys, a year and 2 addresses", l.Cause, len(l.Data), l.Expires, l.Addresses)
	}
	if _, found := l.Data[dataKeyCAPrivateKey]; found {
		t.Error("the Secret of the leaf contains the key of the CA")
	}
	if again := ensureLeaf(t, &root, l.Data, leafOptions, l.Next.Add(-time.Second)); again.Cause != "" {
		t.Errorf("issued before the renewal was due, because %s", again.Cause)
	}
	if due := ensureLeaf(t, &root, l.Data, leafOptions, l.Next); due.Cause != "a third of its lifetime has passed" || bytes.Equal(due.Data[dataKeyPrivateKey], l.Data[dataKeyPrivateKey]) {
		t.Errorf("renewal when due: cause %q, want a third of the lifetime and a new private key", due.Cause)
	}
}

func TestLeafIsIssuedWhenNeeded(t *testing.T) {
	root, foreign := ensureRoot(t, nil, epoch), ensureRoot(t, nil, epoch)
	good := ensureLeaf(t, &root, nil, leafOptions, epoch)
	add := func(o LeafOptions, names []string, addresses ...string) LeafOptions {
		o.DNSNames = append(names, o.DNSNames...)
		for _, a := range addresses {
			o.Addresses = append([]netip.Addr{netip.MustParseAddr(a)}, o.Addresses...)
		}
		return o
	}
	fewer := leafOptions
	fewer.DNSNames, fewer.Addresses = fewer.DNSNames[:1], nil
	mapped := leafOptions
	mapped.Addresses = []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.7")}
	for name, tc := range map[string]struct {
		options LeafOptions
		modify  func(map[string][]byte)
		signer  *Root
		issued  bool
		keyKept bool
	}{
		"no change":                 {options: leafOptions, keyKept: true},
		"fewer names and addresses": {options: fewer, keyKept: true},
		"IPv4 address in IPv6 form": {options: mapped, keyKept: true},
		"repeated name and address": {options: add(leafOptions, []string{"localhost"}, "10.0.0.7"), keyKept: true},
		"additional address":        {options: add(leafOptions, nil, "10.0.0.8"), issued: true, keyKept: true},
		"additional DNS name":       {options: add(leafOptions, []string{"rayclient-demo-team.apps"}), issued: true, keyKept: true},
		"no private key":            {options: leafOptions, modify: func(d map[string][]byte) { delete(d, dataKeyPrivateKey) }, issued: true},
		"private key of the CA":     {options: leafOptions, modify: func(d map[string][]byte) { d[dataKeyPrivateKey] = root.Data[dataKeyCAPrivateKey] }, issued: true},
		"truncated certificate":     {options: leafOptions, modify: func(d map[string][]byte) { d[dataKeyCert] = d[dataKeyCert][:60] }, issued: true},
		"empty Secret":              {options: leafOptions, modify: func(d map[string][]byte) { clear(d) }, issued: true},
		"no bundle":                 {options: leafOptions, modify: func(d map[string][]byte) { delete(d, dataKeyCACert) }, keyKept: true},
		"issued by another CA":      {options: leafOptions, signer: &foreign, issued: true, keyKept: true},
	} {
		t.Run(name, func(t *testing.T) {
			signer := &root
			if tc.signer != nil {
				signer = tc.signer
			}
			data := maps.Clone(good.Data)
			if tc.modify != nil {
				tc.modify(data)
			}
			l := ensureLeaf(t, signer, data, tc.options, epoch.Add(time.Hour))
			if issued := !bytes.Equal(l.Data[dataKeyCert], good.Data[dataKeyCert]); issued != tc.issued {
				t.Errorf("issued: %t (cause %q), want %t", issued, l.Cause, tc.issued)
			}
			if changed := !maps.EqualFunc(l.Data, data, bytes.Equal); changed != (l.Cause != "") {
				t.Errorf("data changed: %t, but the cause is %q", changed, l.Cause)
			}
			if kept := bytes.Equal(l.Data[dataKeyPrivateKey], good.Data[dataKeyPrivateKey]); kept != tc.keyKept {
				t.Errorf("private key kept: %t, want %t", kept, tc.keyKept)
			}
			for _, a := range tc.options.Addresses {
				host := a.Unmap().String()
				if a.Unmap().Is6() {
					host = "[" + host + "]"
				}
				if err := verify(l.Data, l.Data[dataKeyCACert], host, epoch.Add(time.Hour)); err != nil {
					t.Errorf("%s: unexpected error: %v", host, err)
				}
			}
		})
	}
}

// Added names keep the expiry, so frequent changes of pods do not postpone a renewal.
func TestAddedNamesKeepExpiry(t *testing.T) {
	root := ensureRoot(t, nil, epoch)
	l := ensureLeaf(t, &root, nil, leafOptions, epoch)
	more := leafOptions
	more.Addresses = append(more.Addresses, netip.MustParseAddr("10.0.0.9"))
	added := ensureLeaf(t, &root, l.Data, more, epoch.Add(24*time.Hour))
	if added.Cause != "10.0.0.9 is not in the certificate" || !added.Expires.Equal(l.Expires) || !added.Next.Equal(l.Next) {
		t.Errorf("cause %q, expires %s, renewal %s; want the new address, and both times of the previous certificate", added.Cause, added.Expires, added.Next)
	}
	fewer := more
	fewer.Addresses = more.Addresses[2:]
	if l := ensureLeaf(t, &root, added.Data, fewer, epoch.Add(24*time.Hour)); l.Cause != "" {
		t.Errorf("a certificate was issued for fewer addresses, because %s", l.Cause)
	}
	if l := ensureLeaf(t, &root, added.Data, fewer, added.Next); len(l.Addresses) != 1 {
		t.Errorf("the renewed certificate has addresses %v, want only that of the remaining pod", l.Addresses)
	}
}

// A certificate that expires with its CA is not issued again before it expires.
func TestLeafExpiresWithCA(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	late := first.Expires.Add(-30 * 24 * time.Hour)
	root, err := LoadRoot(first.Data, late) // EnsureRoot would have replaced the CA by now
	if err != nil {
		t.Fatal(err)
	}
	l := ensureLeaf(t, &root, nil, leafOptions, late)
	if !l.Expires.Equal(first.Expires) || !l.Next.Equal(first.Expires) {
		t.Errorf("leaf expires %s, renewal %s; want both when the CA expires, %s", l.Expires, l.Next, first.Expires)
	}
	if again := ensureLeaf(t, &root, l.Data, leafOptions, first.Expires.Add(-time.Hour)); again.Cause != "" {
		t.Errorf("issued again because %s", again.Cause)
	}
}

// process is a server with the files that it read at start.
type process struct {
	started time.Time
	leaf    Leaf
}

// For ten years, with a call every 23 days: processes with valid certificates trust each other, whenever they started. Each process starts
// with a certificate that is valid for at least two thirds of its lifetime, minus the interval between the calls.
func TestProcessesTrustEachOtherForYears(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var root Root
	var current Leaf
	var replicas []process
	const stride = 23 * 24 * time.Hour
	handshakes, authorities := 0, map[string]bool{}
	for now := epoch; now.Before(epoch.Add(10 * year)); now = now.Add(stride) {
		root = ensureRoot(t, root.Data, now)
		mustSign(t, root, now)
		if len(root.bundle) > maxBundleSize {
			t.Fatalf("got %d CAs in the bundle, want at most %d", len(root.bundle), maxBundleSize)
		}
		authorities[string(root.bundle[0].Raw)] = true
		current = ensureLeaf(t, &root, current.Data, leafOptions, now)
		if left := current.Expires.Sub(now); left < 2*year/3-stride {
			t.Fatalf("at %s, a process would start with a certificate that is valid for %s", now, left)
		}
		if random.IntN(3) == 0 {
			replicas = append(replicas, process{started: now, leaf: current})
		}
		replicas = slices.DeleteFunc(replicas, func(p process) bool { return now.After(p.leaf.Expires) })
		for _, p := range replicas { // the oldest process has the oldest bundle, and the next process will have the current files
			for _, other := range []process{replicas[0], {started: now, leaf: current}} {
				handshakes++
				if err := verify(p.leaf.Data, other.leaf.Data[dataKeyCACert], "localhost", now); err != nil {
					t.Fatalf("at %s, the process of %s does not trust the process of %s: %v", now, other.started, p.started, err)
				}
				if err := verify(other.leaf.Data, p.leaf.Data[dataKeyCACert], "localhost", now); err != nil {
					t.Fatalf("at %s, the process of %s does not trust the process of %s: %v", now, p.started, other.started, err)
				}
			}
		}
	}
	if handshakes < 1000 || len(authorities) < 4 {
		t.Errorf("%d handshakes with %d CAs, want at least 1000 with 4", handshakes, len(authorities))
	}
}
