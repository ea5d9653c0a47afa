package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

var servingOptions = ServingOptions{CACommonName: "test-ca", DNSNames: []string{"mlflow", "mlflow.ns.svc", "localhost"}, Lifetime: 90 * 24 * time.Hour}

func ensureServing(t *testing.T, data map[string][]byte, now time.Time) Leaf {
	t.Helper()
	s, err := EnsureServing(data, servingOptions, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// accepts reports whether a client with a bundle accepts the certificate for all names.
func accepts(t *testing.T, data map[string][]byte, bundle []byte, now time.Time) bool {
	t.Helper()
	served, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	for _, name := range servingOptions.DNSNames {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

func TestEnsureServingIssuesOnce(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := ensureServing(t, nil, now)
	if first.Cause == "" || !accepts(t, first.Data, first.Data["ca.crt"], now) {
		t.Fatal("clients do not accept the first certificate")
	}
	if len(first.Data) != 3 {
		t.Errorf("got %d keys, want 3 without the private key of the CA", len(first.Data))
	}
	again := ensureServing(t, first.Data, first.Next.Add(-time.Second))
	if again.Cause != "" || !again.Next.Equal(first.Next) || !again.Expires.Equal(first.Expires) {
		t.Errorf("issued again before the renewal was due: cause %q, next %s, expiry %s", again.Cause, again.Next, again.Expires)
	}
	if remaining := first.Expires.Sub(first.Next); remaining < servingOptions.Lifetime/4 {
		t.Errorf("renewed only %s before the expiry", remaining)
	}
}

// During a renewal clients with the new bundle trust both certificates.
func TestEnsureServingKeepsPreviousCA(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := ensureServing(t, nil, now)
	second := ensureServing(t, first.Data, first.Next)
	if second.Cause == "" || bytes.Equal(first.Data["tls.key"], second.Data["tls.key"]) {
		t.Fatal("the certificate was not renewed when it was due")
	}
	for name, data := range map[string]map[string][]byte{"old": first.Data, "new": second.Data} {
		if !accepts(t, data, second.Data["ca.crt"], first.Next) {
			t.Errorf("the %s certificate is not trusted", name)
		}
	}
	late := second.Expires.Add(time.Hour)
	third := ensureServing(t, second.Data, late)
	if got, err := certutil.ParseCertsPEM(third.Data["ca.crt"]); err != nil || len(got) != 1 {
		t.Errorf("got %d CAs after the others expired, error %v, want one", len(got), err)
	}
	if !accepts(t, third.Data, third.Data["ca.crt"], late) {
		t.Error("clients do not accept the third certificate")
	}
}

func TestEnsureServingReplacesInvalidCertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good, other := ensureServing(t, nil, now), ensureServing(t, nil, now)
	for name, change := range map[string]func(map[string][]byte){
		"no certificate":      func(d map[string][]byte) { delete(d, "tls.crt") },
		"no key":              func(d map[string][]byte) { delete(d, "tls.key") },
		"no CA":               func(d map[string][]byte) { delete(d, "ca.crt") },
		"invalid certificate": func(d map[string][]byte) { d["tls.crt"] = []byte("x") },
		"another key":         func(d map[string][]byte) { d["tls.key"] = other.Data["tls.key"] },
		"another CA":          func(d map[string][]byte) { d["ca.crt"] = other.Data["ca.crt"] },
		"invalid CA": func(d map[string][]byte) {
			d["ca.crt"] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		},
		"invalid key": func(d map[string][]byte) {
			d["tls.key"] = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range good.Data {
				data[k] = v
			}
			change(data)
			repaired := ensureServing(t, data, now)
			if repaired.Cause == "" || !accepts(t, repaired.Data, repaired.Data["ca.crt"], now) {
				t.Error("the invalid Secret was not repaired")
			}
		})
	}
	t.Run("other names", func(t *testing.T) {
		o := servingOptions
		o.DNSNames = append([]string{"added"}, o.DNSNames...)
		if s, err := EnsureServing(good.Data, o, now); err != nil || s.Cause == "" {
			t.Errorf("got cause %q and error %v, want a new certificate", s.Cause, err)
		}
	})
}
