package certs

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// keyNextKey holds the key of a CA that is published and does not sign yet.
const secretKeyNextCAPrivateKey = "ca-next.key"

// maxAuthorities bounds the bundle: who signs, who will, and those whose certificates are still about.
const maxBundleSize = 4

// Step is what KeepRoot did to a Secret.
type Step string

const (
	// Kept says that nothing was due.
	Unchanged Step = ""
	// Created says that there was no CA.
	Created Step = "Created"
	// Repaired says that what there was could not be used.
	Repaired Step = "Repaired"
	// Announced says that the next CA was published beside the one that signs.
	Announced Step = "Announced"
	// Replaced says that the next CA signs from now on.
	Replaced Step = "Replaced"
	// Retired says that an expired CA was taken out of the bundle.
	Retired Step = "Retired"
)

// RootOptions say what a new CA is made of.
type RootOptions struct {
	// CommonName is the whole subject of the CA.
	CommonName string
	// Lifetime of a CA. Certificates that it signs should live for a third of it at most, see Root.
	Lifetime time.Duration
	// Algorithm of its key.
	Algorithm Algorithm
}

// Root is a CA whose certificates go to servers that read them once, when they start. It is replaced in two steps: after a
// third of its life the next CA is published in the bundle, and after two thirds that one signs. So any two servers trust each
// other as long as neither certificate has expired, if those live for at most a third of the life of the CA.
type Root struct {
	// Data of the Secret: ca.crt with the CA that signs first, ca.key with its key, and ca-next.key while the next CA waits.
	// It is the given map when Step is Kept.
	Data map[string][]byte
	// Step is what was done, of several the one that matters most; Why completes "because".
	Step   Step
	Reason string
	// Expires is when the CA that signs ends. Next is when this is to be looked at again.
	Expires, Next time.Time

	bundle  []*x509.Certificate // the signer first
	key     *signingKey
	nextKey *signingKey // nil unless the CA after the signer waits
}

// LoadRoot reads a CA that is kept elsewhere. It returns an error when it cannot sign now.
func LoadRoot(data map[string][]byte, now time.Time) (Root, error) {
	r, err := loadRoot(data, now)
	if err != nil {
		return Root{}, err
	}
	r.Data, r.Expires, r.Next = data, r.bundle[0].NotAfter, r.bundle[0].NotAfter
	return r, nil
}

// KeepRoot returns the CA in the data of a Secret, regardless of who made it, with what is due at now done to it. What of the old bundle
// is still valid stays trusted in any case.
func EnsureRoot(data map[string][]byte, o RootOptions, now time.Time) (Root, error) {
	r, err := loadRoot(data, now)
	if err != nil {
		r, err = createRoot(data, o, err, now)
	}
	if err == nil {
		err = r.rotate(o, now)
	}
	if err != nil {
		return Root{}, err
	}
	r.Expires, r.Next = r.bundle[0].NotAfter, r.nextRotation()
	if r.Step == Unchanged {
		r.Data = data
		return r, nil
	}
	r.Data = map[string][]byte{secretKeyCACert: encodeCertificates(r.bundle...), secretKeyCAPrivateKey: r.key.pem}
	if r.nextKey != nil {
		r.Data[secretKeyNextCAPrivateKey] = r.nextKey.pem
	}
	return r, nil
}

// loadRoot finds the CA that ca.key belongs to, and the next one.
func loadRoot(data map[string][]byte, now time.Time) (Root, error) {
	var r Root
	var err error
	if r.bundle, err = certutil.ParseCertsPEM(data[secretKeyCACert]); err != nil {
		return r, fmt.Errorf("reading %s: %w", secretKeyCACert, err)
	}
	if r.key, err = parseKey(data[secretKeyCAPrivateKey]); err != nil {
		return r, fmt.Errorf("reading %s: %w", secretKeyCAPrivateKey, err)
	}
	at := r.indexForKey(r.key)
	if at < 0 {
		return r, fmt.Errorf("%s does not belong to a CA in %s", secretKeyCAPrivateKey, secretKeyCACert)
	}
	if at > 0 {
		r.moveCA(at, 0)
		r.Step, r.Reason = Repaired, "the CA that signs was not the first in "+secretKeyCACert
	}
	// A key of the next CA that belongs to none is ignored: it will be replaced.
	if next, err := parseKey(data[secretKeyNextCAPrivateKey]); err == nil {
		if at := r.indexForKey(next); at > 0 {
			r.moveCA(at, 1)
			r.nextKey = next
		}
	}
	if !now.After(r.bundle[0].NotAfter) {
		return r, nil
	}
	if r.nextKey == nil || now.After(r.bundle[1].NotAfter) {
		return r, errors.New("the CA has expired")
	}
	r.promoteNext("the CA that signed has expired")
	return r, nil
}

// authorityOf finds the CA that a key belongs to; -1 when there is none.
func (r *Root) indexForKey(key *signingKey) int {
	return slices.IndexFunc(r.bundle, func(c *x509.Certificate) bool { return c.IsCA && keyMatches(key, c) })
}

// move gives a CA another place in the bundle.
func (r *Root) moveCA(from, to int) {
	one := r.bundle[from]
	r.bundle = slices.Insert(slices.Delete(slices.Clone(r.bundle), from, from+1), to, one)
}

// freshRoot makes a new CA, and keeps what is valid of the old bundle behind the new CA.
func createRoot(data map[string][]byte, o RootOptions, reason error, now time.Time) (Root, error) {
	r := Root{Step: Created, Reason: "there was none"}
	if len(data) > 0 {
		r.Step, r.Reason = Repaired, reason.Error()
	}
	if known, err := certutil.ParseCertsPEM(data[secretKeyCACert]); err == nil {
		r.bundle = slices.DeleteFunc(known, func(c *x509.Certificate) bool { return !c.IsCA })
	}
	ca, key, err := o.issue(now)
	if err != nil {
		return r, err
	}
	r.bundle, r.key = append([]*x509.Certificate{ca}, r.bundle...), key
	return r, nil
}

func (o RootOptions) issue(now time.Time) (*x509.Certificate, *signingKey, error) {
	key, err := newKey(o.Algorithm)
	if err != nil {
		return nil, nil, fmt.Errorf("issuing the CA: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: o.CommonName},
		NotBefore: now.Add(-maxClockSkew), NotAfter: now.Add(o.Lifetime),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	ca, err := signCertificate(template, template, key, key)
	if err != nil {
		return nil, nil, fmt.Errorf("issuing the CA: %w", err)
	}
	return ca, key, nil
}

// advance does what is due. A CA that takes over may have waited for so long that the one after it is due as well.
func (r *Root) rotate(o RootOptions, now time.Time) error {
	for replaced := true; replaced; {
		r.removeExpired(now)
		if r.nextKey == nil && !now.Before(r.announceTime()) {
			ca, key, err := o.issue(now)
			if err != nil {
				return err
			}
			r.bundle, r.nextKey = slices.Insert(slices.Clone(r.bundle), 1, ca), key
			r.recordStep(Announced, "a third of the life of the CA is over")
		}
		if replaced = r.nextKey != nil && !now.Before(r.promoteTime()); replaced {
			r.promoteNext("the CA that signed is near its end")
		}
	}
	r.bundle = r.bundle[:min(len(r.bundle), maxBundleSize)]
	return nil
}

// retire drops what has expired.
func (r *Root) removeExpired(now time.Time) {
	if r.nextKey != nil && now.After(r.bundle[1].NotAfter) {
		r.nextKey = nil
	}
	valid := slices.DeleteFunc(slices.Clone(r.bundle), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	if valid = valid[:min(len(valid), maxBundleSize)]; len(valid) < len(r.bundle) {
		r.bundle = valid
		r.recordStep(Retired, "a CA has expired")
	}
}

// did notes a step, unless one that matters more to people was done.
func (r *Root) recordStep(step Step, why string) {
	matters := []Step{Unchanged, Retired, Announced, Replaced, Created, Repaired}
	if slices.Index(matters, step) > slices.Index(matters, r.Step) {
		r.Step, r.Reason = step, why
	}
}

func (r *Root) promoteNext(why string) {
	r.moveCA(1, 0)
	r.key, r.nextKey = r.nextKey, nil
	r.recordStep(Replaced, why)
}

// due is the moment at which something is to be done.
func (r *Root) nextRotation() time.Time {
	at := r.announceTime()
	if r.nextKey != nil {
		at = r.promoteTime()
	}
	for _, c := range r.bundle {
		if c.NotAfter.Before(at) {
			at = c.NotAfter.Add(time.Second)
		}
	}
	return at
}

func lifetime(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

// announce is when the next CA is published.
func (r *Root) announceTime() time.Time { return r.bundle[0].NotBefore.Add(lifetime(r.bundle[0]) / 3) }

// takeover is when the next CA signs: after two thirds of the life of the one before, or later when it was published late, but
// never so late that this one is about to expire.
func (r *Root) promoteTime() time.Time {
	signer, next := r.bundle[0], r.bundle[1]
	third := lifetime(signer) / 3
	at := signer.NotBefore.Add(2 * third)
	if known := next.NotBefore.Add(maxClockSkew + third); known.After(at) {
		at = known
	}
	if last := signer.NotAfter.Add(-third / 4); last.Before(at) {
		at = last
	}
	return at
}
