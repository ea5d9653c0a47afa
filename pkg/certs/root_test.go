package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const year = 365 * 24 * time.Hour

var (
	rootOptions = RootOptions{CommonName: "root-ca", Lifetime: 3 * year, Algorithm: ECDSA}
	epoch       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func ensureRoot(t *testing.T, data map[string][]byte, now time.Time) Root {
	t.Helper()
	r, err := EnsureRoot(data, rootOptions, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustSign checks that the first certificate of ca.crt belongs to ca.key and can sign now.
func mustSign(t *testing.T, r Root, now time.Time) {
	t.Helper()
	bundle, err := certutil.ParseCertsPEM(r.Data[dataKeyCACert])
	if err != nil {
		t.Fatal(err)
	}
	key, err := parseKey(r.Data[dataKeyCAPrivateKey])
	if err != nil {
		t.Fatal(err)
	}
	if !keyMatches(key, bundle[0]) || !bundle[0].IsCA || now.After(bundle[0].NotAfter) {
		t.Errorf("the first certificate (until %s) does not belong to %s, or cannot sign at %s", bundle[0].NotAfter, dataKeyCAPrivateKey, now)
	}
}

func TestNewRoot(t *testing.T) {
	for name, tc := range map[string]struct {
		algorithm Algorithm
		isKey     func(any) bool
	}{
		"default": {"", func(k any) bool { e, ok := k.(*ecdsa.PublicKey); return ok && e.Curve == elliptic.P256() }},
		"ECDSA":   {ECDSA, func(k any) bool { e, ok := k.(*ecdsa.PublicKey); return ok && e.Curve == elliptic.P256() }},
		"RSA":     {RSA, func(k any) bool { r, ok := k.(*rsa.PublicKey); return ok && r.N.BitLen() == 2048 }},
	} {
		t.Run(name, func(t *testing.T) {
			o := rootOptions
			o.Algorithm = tc.algorithm
			r, err := EnsureRoot(nil, o, epoch)
			if err != nil {
				t.Fatal(err)
			}
			mustSign(t, r, epoch)
			c := r.bundle[0]
			if !tc.isKey(c.PublicKey) {
				t.Errorf("the key of type %T does not match algorithm %q", c.PublicKey, tc.algorithm)
			}
			if c.Subject.String() != "CN=root-ca" || c.Issuer.String() != "CN=root-ca" {
				t.Errorf("got subject %q and issuer %q, want CN=root-ca for both", c.Subject, c.Issuer)
			}
			if len(c.SubjectKeyId) == 0 || c.MaxPathLen > 0 || c.MaxPathLenZero || !c.BasicConstraintsValid {
				t.Errorf("got subject key ID %x and path length %d (zero: %t), want a key ID and no path length", c.SubjectKeyId, c.MaxPathLen, c.MaxPathLenZero)
			}
			if c.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature || len(c.ExtKeyUsage) != 2 {
				t.Errorf("got key usage %v and extended usages %v, want CertSign, DigitalSignature and 2 extended usages", c.KeyUsage, c.ExtKeyUsage)
			}
			if c.SerialNumber.BitLen() < 64 {
				t.Errorf("serial number %s is not random enough", c.SerialNumber)
			}
			if r.Step != Created || len(r.Data) != 2 || !r.Expires.Equal(epoch.Add(3*year)) {
				t.Errorf("got step %s, %d keys and expiry %s, want %s, 2 keys and %s", r.Step, len(r.Data), r.Expires, Created, epoch.Add(3*year))
			}
		})
	}
}

// A CA of another program is kept unchanged if its key is encoded as PKCS #1 or SEC 1. The first step of its rotation keeps the key.
func TestValidRootIsKept(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	ec := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})
	for name, key := range map[string][]byte{
		"PKCS #1":                   pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}),
		"SEC 1":                     ec,
		"SEC 1 after EC parameters": append(parameters, ec...),
	} {
		t.Run(name, func(t *testing.T) {
			signer, err := parseKey(key)
			if err != nil {
				t.Fatal(err)
			}
			template := &x509.Certificate{
				Subject: pkix.Name{CommonName: "root-ca"}, NotBefore: epoch, NotAfter: epoch.Add(year),
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			}
			ca, err := signCertificate(template, template, signer, signer)
			if err != nil {
				t.Fatal(err)
			}
			data := map[string][]byte{dataKeyCACert: append([]byte("a comment\n"), encodeCertificates(ca)...), dataKeyCAPrivateKey: key}
			if r := ensureRoot(t, data, epoch); r.Step != Unchanged || !maps.EqualFunc(r.Data, data, bytes.Equal) {
				t.Errorf("got step %s (%s), want %s and the same data", r.Step, r.Cause, Unchanged)
			}
			due := ensureRoot(t, data, epoch).Next
			announced := ensureRoot(t, data, due)
			if announced.Step != Announced || !bytes.Equal(announced.Data[dataKeyCAPrivateKey], key) {
				t.Errorf("got step %s, want %s and the same signing key", announced.Step, Announced)
			}
			mustSign(t, announced, due)
		})
	}
}

func TestInvalidRootIsRepaired(t *testing.T) {
	good, other := ensureRoot(t, nil, epoch), ensureRoot(t, nil, epoch)
	leaf := ensureLeaf(t, &good, nil, leafOptions, epoch)
	for name, tc := range map[string]struct {
		damage      func(map[string][]byte)
		wantTrusted bool // whether the previous CA stays trusted
	}{
		"no key":         {func(d map[string][]byte) { delete(d, dataKeyCAPrivateKey) }, true},
		"key is not PEM": {func(d map[string][]byte) { d[dataKeyCAPrivateKey] = []byte("noise") }, true},
		"key is not DER": {func(d map[string][]byte) {
			d[dataKeyCAPrivateKey] = []byte("-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n")
		}, true},
		"key of another CA":     {func(d map[string][]byte) { d[dataKeyCAPrivateKey] = other.Data[dataKeyCAPrivateKey] }, true},
		"no certificate":        {func(d map[string][]byte) { delete(d, dataKeyCACert) }, false},
		"truncated certificate": {func(d map[string][]byte) { d[dataKeyCACert] = d[dataKeyCACert][:60] }, false},
		"leaf certificate": {func(d map[string][]byte) {
			d[dataKeyCACert], d[dataKeyCAPrivateKey] = leaf.Data[dataKeyCert], leaf.Data[dataKeyPrivateKey]
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(good.Data)
			tc.damage(data)
			r := ensureRoot(t, data, epoch)
			if r.Step != Repaired || r.Cause == "" {
				t.Errorf("got step %s with cause %q, want %s with a cause", r.Step, r.Cause, Repaired)
			}
			mustSign(t, r, epoch)
			if trusted := bytes.Contains(r.Data[dataKeyCACert], good.Data[dataKeyCACert]); trusted != tc.wantTrusted {
				t.Errorf("previous CA trusted: %t, want %t", trusted, tc.wantTrusted)
			}
			if _, err := LoadRoot(data, epoch); err == nil {
				t.Error("LoadRoot accepts data that needs a repair")
			}
			if again := ensureRoot(t, r.Data, epoch); again.Step != Unchanged {
				t.Errorf("a second call repaired the result again: %s", again.Cause)
			}
		})
	}
}

func TestSigningCAIsMovedFirst(t *testing.T) {
	a, b := ensureRoot(t, nil, epoch), ensureRoot(t, nil, epoch)
	data := map[string][]byte{dataKeyCACert: append(bytes.Clone(b.Data[dataKeyCACert]), a.Data[dataKeyCACert]...), dataKeyCAPrivateKey: a.Data[dataKeyCAPrivateKey]}
	r := ensureRoot(t, data, epoch)
	if r.Step != Reordered || !bytes.Equal(r.Data[dataKeyCACert], append(bytes.Clone(a.Data[dataKeyCACert]), b.Data[dataKeyCACert]...)) {
		t.Errorf("got step %s (%s), want %s with the signing CA first", r.Step, r.Cause, Reordered)
	}
	mustSign(t, r, epoch)
}

// A CA is announced after a third of its lifetime, replaced after two thirds, and retired at its expiry.
func TestRootRotation(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	if r := ensureRoot(t, first.Data, first.Next.Add(-time.Second)); r.Step != Unchanged {
		t.Errorf("got step %s (%s) a second before the next step, want %s", r.Step, r.Cause, Unchanged)
	}
	announced := ensureRoot(t, first.Data, first.Next)
	if announced.Step != Announced || !bytes.HasPrefix(announced.Data[dataKeyCACert], first.Data[dataKeyCACert]) || len(announced.bundle) != 2 {
		t.Fatalf("got step %s and %d CAs, want %s and 2 CAs, the signing one first", announced.Step, len(announced.bundle), Announced)
	}
	if r := ensureRoot(t, announced.Data, announced.Next.Add(-time.Second)); r.Step != Unchanged {
		t.Errorf("got step %s (%s) a second before the next step, want %s", r.Step, r.Cause, Unchanged)
	}
	replaced := ensureRoot(t, announced.Data, announced.Next)
	if replaced.Step != Replaced || !bytes.HasSuffix(replaced.Data[dataKeyCACert], first.Data[dataKeyCACert]) {
		t.Fatalf("got step %s (%s), want %s with the previous CA last", replaced.Step, replaced.Cause, Replaced)
	}
	if !bytes.Equal(replaced.Data[dataKeyCAPrivateKey], announced.Data[dataKeyNextCAPrivateKey]) {
		t.Error("want the announced CA to become the signing CA")
	}
	mustSign(t, replaced, announced.Next)
	retired := ensureRoot(t, replaced.Data, first.Expires.Add(time.Second))
	if bytes.Contains(retired.Data[dataKeyCACert], first.Data[dataKeyCACert]) {
		t.Error("the expired CA is still in the bundle")
	}
	mustSign(t, retired, first.Expires.Add(time.Second))
}

// After the CA has expired, the next CA signs if it is valid; otherwise a new one is issued.
func TestExpiredRootIsReplaced(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	announced := ensureRoot(t, first.Data, first.Next)
	afterExpiry := first.Expires.Add(time.Hour)
	r := ensureRoot(t, announced.Data, afterExpiry)
	if r.Step != Replaced || !bytes.Equal(r.Data[dataKeyCAPrivateKey], announced.Data[dataKeyNextCAPrivateKey]) {
		t.Errorf("got step %s (%s), want %s with the key of the next CA", r.Step, r.Cause, Replaced)
	}
	mustSign(t, r, afterExpiry)
	r = ensureRoot(t, first.Data, afterExpiry)
	if r.Step != Repaired || r.Cause != "the CA has expired" || len(r.bundle) != 1 {
		t.Errorf("got step %s (%s) and %d CAs, want %s because the CA has expired, and 1 CA", r.Step, r.Cause, len(r.bundle), Repaired)
	}
	mustSign(t, r, afterExpiry)
	afterAllExpiries := afterExpiry.Add(20 * year)
	r = ensureRoot(t, announced.Data, afterAllExpiries)
	if r.Step != Repaired || len(r.bundle) != 1 {
		t.Errorf("got step %s (%s) and %d CAs, want %s because the CA has expired, and 1 CA", r.Step, r.Cause, len(r.bundle), Repaired)
	}
	mustSign(t, r, afterAllExpiries)
}

// A CA that was not rotated in time is replaced before it expires.
func TestLateRootIsReplacedBeforeExpiry(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	for _, remaining := range []time.Duration{year, 90 * 24 * time.Hour, 24 * time.Hour, time.Minute} {
		now := first.Expires.Add(-remaining)
		r := ensureRoot(t, first.Data, now)
		for r.nextKey != nil {
			if !r.Next.After(now) || !r.Next.Before(first.Expires) {
				t.Fatalf("%s before expiry: got the next step at %s, want it between now and the expiry at %s", remaining, r.Next, first.Expires)
			}
			now = r.Next
			r = ensureRoot(t, r.Data, now)
		}
		mustSign(t, r, now)
		if bytes.HasPrefix(r.Data[dataKeyCACert], first.Data[dataKeyCACert]) {
			t.Errorf("%s before expiry: the previous CA still signs", remaining)
		}
	}
}

// A next CA with a damaged key is replaced by another one, and the signing CA is kept.
func TestInvalidNextKeyIsReplaced(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	announced := ensureRoot(t, first.Data, first.Next)
	for name, key := range map[string][]byte{"no key": nil, "not PEM": []byte("noise"), "key of another CA": ensureRoot(t, nil, epoch).Data[dataKeyCAPrivateKey]} {
		data := maps.Clone(announced.Data)
		data[dataKeyNextCAPrivateKey] = key
		r := ensureRoot(t, data, first.Next)
		if r.Step != Announced || !bytes.HasPrefix(r.Data[dataKeyCACert], first.Data[dataKeyCACert]) || r.nextKey == nil {
			t.Errorf("%s: got step %s (%s), want %s with the same signing CA and another next key", name, r.Step, r.Cause, Announced)
		}
		mustSign(t, r, first.Next)
	}
}

// A CA of another program is loaded and not rotated.
func TestLoadRoot(t *testing.T) {
	first := ensureRoot(t, nil, epoch)
	r, err := LoadRoot(first.Data, epoch.Add(5*year/2))
	if err != nil || r.Step != Unchanged || !bytes.Equal(r.Data[dataKeyCACert], first.Data[dataKeyCACert]) || !r.Next.Equal(first.Expires) {
		t.Errorf("got step %s until %s, error %v, want %s until %s", r.Step, r.Next, err, Unchanged, first.Expires)
	}
	if _, err := LoadRoot(first.Data, epoch.Add(4*year)); err == nil {
		t.Error("LoadRoot accepts an expired CA")
	}
}
