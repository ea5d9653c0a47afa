package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCAVerifiesIssuedCertificates(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	ca, err := newAuthority(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range (&Instance{state: state{Real: true}}).subjects() {
		if err := ca.issue(s); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	content, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !pool.AppendCertsFromPEM(content) {
		t.Fatalf("reading the CA: %v", err)
	}
	for _, s := range (&Instance{state: state{Real: true}}).subjects() {
		t.Run(s.file, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, s.file+".crt"), filepath.Join(dir, s.file+".key"))
			if err != nil {
				t.Fatal(err)
			}
			options := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
			if len(s.hosts) > 0 {
				options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}
			if _, err := pair.Leaf.Verify(options); err != nil {
				t.Error(err)
			}
			for _, host := range s.hosts {
				if err := pair.Leaf.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
			if len(pair.Leaf.AuthorityKeyId) == 0 {
				t.Error("the certificate has no authority key identifier, which Python requires")
			}
			if pair.Leaf.Subject.CommonName != s.name {
				t.Errorf("got name %q, want %q", pair.Leaf.Subject.CommonName, s.name)
			}
			if s.group != "" && pair.Leaf.Subject.Organization[0] != s.group {
				t.Errorf("got groups %v, want %q", pair.Leaf.Subject.Organization, s.group)
			}
		})
	}
}

// Servers trust any user name from a client with this certificate, so its CA has no other purpose.
func TestFrontProxyCertificateIsSignedBySeparateCA(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if _, err := newAuthority(dir, now); err != nil {
		t.Fatal(err)
	}
	if err := issueFrontProxy(dir, now); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "front-proxy.crt"), filepath.Join(dir, "front-proxy.key"))
	if err != nil {
		t.Fatal(err)
	}
	for file, trusted := range map[string]bool{"front-proxy-ca.crt": true, "ca.crt": false} {
		pool := x509.NewCertPool()
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !pool.AppendCertsFromPEM(content) {
			t.Fatalf("reading the CA: %v", err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != trusted || pair.Leaf.Subject.CommonName != frontProxy {
			t.Errorf("%s: got certificate of %s, trusted %t, error %v, want trusted %t", file, pair.Leaf.Subject, err == nil, err, trusted)
		}
	}
}

func TestNewAuthorityFailsWithoutDirectory(t *testing.T) {
	if _, err := newAuthority(filepath.Join(t.TempDir(), "missing"), time.Now()); err == nil {
		t.Error("want an error for a missing directory")
	}
}
