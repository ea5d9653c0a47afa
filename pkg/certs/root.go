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

// dataKeyNextCAPrivateKey is the key of the Secret for the private key of the next CA.
const dataKeyNextCAPrivateKey = "ca-next.key"

// maxBundleSize limits the bundle: the signing CA, the next one, and previous ones that are still valid.
const maxBundleSize = 4

// Step is a change that EnsureRoot made.
type Step string

const (
	// Unchanged is not a change.
	Unchanged Step = ""
	// Created is the issue of the first CA.
	Created Step = "Created"
	// Repaired is the replacement of an unusable CA.
	Repaired Step = "Repaired"
	// Announced is the publication of the next CA in the bundle.
	Announced Step = "Announced"
	// Replaced is the start of signing by the next CA.
	Replaced Step = "Replaced"
	// Reordered is the move of the signing CA to the start of the bundle.
	Reordered Step = "Reordered"
	// Retired is the removal of an expired CA from the bundle, or of CAs beyond maxBundleSize.
	Retired Step = "Retired"
)

// RootOptions describe a new CA.
type RootOptions struct {
	// CommonName is the only field of the subject.
	CommonName string
	// Lifetime is the validity of the CA. Its certificates should live for at most a third of it, see Root.
	Lifetime time.Duration
	// Algorithm is the algorithm of the key.
	Algorithm Algorithm
}

// Root is a CA whose rotation suits servers that read certificate and bundle only at start. It is rotated in two steps: the next CA is
// published after a third of the lifetime and signs after two thirds. Any two servers trust each other while their certificates are valid,
// if these live for at most a third of the lifetime of the CA.
type Root struct {
	// Data is the data of the Secret: ca.crt with the signing CA first, ca.key with its key, and ca-next.key with the key of a next CA.
	// It is the given map if Step is Unchanged, and always for LoadRoot.
	Data map[string][]byte
	// Step is the most important change. Cause completes a sentence after "because".
	Step  Step
	Cause string
	// Expires is the end of the signing CA. Next is the time of the next call.
	Expires, Next time.Time

	bundle  []*x509.Certificate // the signing CA first, then the next one
	key     *signingKey
	nextKey *signingKey // nil without a next CA
}

// LoadRoot loads a CA and issues no other one. It returns an error if neither the CA nor a next CA in data can sign now.
func LoadRoot(data map[string][]byte, now time.Time) (Root, error) {
	r, err := loadRoot(data, now)
	if err != nil {
		return Root{}, err
	}
	r.Data, r.Expires, r.Next = data, r.bundle[0].NotAfter, r.bundle[0].NotAfter
	return r, nil
}

// EnsureRoot returns the CA of a Secret, which any program may have created, or a new one if it is not usable, after all rotation steps
// that are due. Valid CAs of the previous bundle stay in the bundle, up to maxBundleSize.
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
	r.Data = map[string][]byte{dataKeyCACert: encodeCertificates(r.bundle...), dataKeyCAPrivateKey: r.key.pem}
	if r.nextKey != nil {
		r.Data[dataKeyNextCAPrivateKey] = r.nextKey.pem
	}
	return r, nil
}

// loadRoot loads the signing CA with its key, and the next CA, which replaces an expired signing CA.
func loadRoot(data map[string][]byte, now time.Time) (Root, error) {
	var r Root
	var err error
	if r.bundle, err = certutil.ParseCertsPEM(data[dataKeyCACert]); err != nil {
		return r, fmt.Errorf("reading %s: %w", dataKeyCACert, err)
	}
	if r.key, err = parseKey(data[dataKeyCAPrivateKey]); err != nil {
		return r, fmt.Errorf("reading %s: %w", dataKeyCAPrivateKey, err)
	}
	index := r.indexForKey(r.key)
	if index < 0 {
		return r, fmt.Errorf("%s does not belong to a CA in %s", dataKeyCAPrivateKey, dataKeyCACert)
	}
	if index > 0 {
		r.moveCA(index, 0)
		r.Step, r.Cause = Reordered, "the signing CA was not the first in "+dataKeyCACert
	}
	// A next key without a CA is ignored and later replaced.
	if next, err := parseKey(data[dataKeyNextCAPrivateKey]); err == nil {
		if index := r.indexForKey(next); index > 0 {
			r.moveCA(index, 1)
			r.nextKey = next
		}
	}
	if !now.After(r.bundle[0].NotAfter) {
		return r, nil
	}
	if r.nextKey == nil || now.After(r.bundle[1].NotAfter) {
		return r, errors.New("the CA has expired")
	}
	r.promoteNext("the signing CA has expired")
	return r, nil
}

// indexForKey returns the index of the CA with a key, or -1.
func (r *Root) indexForKey(key *signingKey) int {
	return slices.IndexFunc(r.bundle, func(c *x509.Certificate) bool { return c.IsCA && keyMatches(key, c) })
}

// moveCA moves a CA within the bundle.
func (r *Root) moveCA(from, to int) {
	ca := r.bundle[from]
	r.bundle = slices.Insert(slices.Delete(slices.Clone(r.bundle), from, from+1), to, ca)
}

// createRoot issues a new CA, followed by the CAs of the previous bundle.
func createRoot(data map[string][]byte, o RootOptions, reason error, now time.Time) (Root, error) {
	r := Root{Step: Created, Cause: "no CA existed"}
	if len(data) > 0 {
		r.Step, r.Cause = Repaired, reason.Error()
	}
	if previous, err := certutil.ParseCertsPEM(data[dataKeyCACert]); err == nil {
		r.bundle = slices.DeleteFunc(previous, func(c *x509.Certificate) bool { return !c.IsCA })
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

// rotate makes all changes that are due. After a long pause the CA that starts to sign may itself be due for rotation.
func (r *Root) rotate(o RootOptions, now time.Time) error {
	for replaced := true; replaced; {
		r.removeExpired(now)
		if r.nextKey == nil && !now.Before(r.announceTime()) {
			ca, key, err := o.issue(now)
			if err != nil {
				return err
			}
			r.bundle, r.nextKey = slices.Insert(slices.Clone(r.bundle), 1, ca), key
			r.recordStep(Announced, "a third of the lifetime of the CA has passed")
		}
		if replaced = r.nextKey != nil && !now.Before(r.promoteTime()); replaced {
			r.promoteNext("the signing CA expires soon")
		}
	}
	r.bundle = r.bundle[:min(len(r.bundle), maxBundleSize)]
	return nil
}

// removeExpired removes expired CAs from the bundle, and the last ones if it exceeds maxBundleSize.
func (r *Root) removeExpired(now time.Time) {
	if r.nextKey != nil && now.After(r.bundle[1].NotAfter) {
		r.nextKey = nil
	}
	valid := slices.DeleteFunc(slices.Clone(r.bundle), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	if valid = valid[:min(len(valid), maxBundleSize)]; len(valid) < len(r.bundle) {
		r.bundle = valid
		r.recordStep(Retired, "a CA has expired, or there were too many")
	}
}

// recordStep records a step with its reason unless a more important one was recorded.
func (r *Root) recordStep(step Step, reason string) {
	byImportance := []Step{Unchanged, Retired, Reordered, Announced, Replaced, Created, Repaired}
	if slices.Index(byImportance, step) > slices.Index(byImportance, r.Step) {
		r.Step, r.Cause = step, reason
	}
}

func (r *Root) promoteNext(reason string) {
	r.moveCA(1, 0)
	r.key, r.nextKey = r.nextKey, nil
	r.recordStep(Replaced, reason)
}

// nextRotation returns the time of the next change.
func (r *Root) nextRotation() time.Time {
	next := r.announceTime()
	if r.nextKey != nil {
		next = r.promoteTime()
	}
	for _, c := range r.bundle {
		if c.NotAfter.Before(next) {
			next = c.NotAfter.Add(time.Second)
		}
	}
	return next
}

func lifetime(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

// announceTime returns when the next CA is published.
func (r *Root) announceTime() time.Time { return r.bundle[0].NotBefore.Add(lifetime(r.bundle[0]) / 3) }

// promoteTime returns when the next CA starts to sign: after two thirds of the lifetime of the signing CA, or later if the next CA was
// published late, but at the latest a twelfth of the lifetime before the signing CA expires.
func (r *Root) promoteTime() time.Time {
	signer, next := r.bundle[0], r.bundle[1]
	third := lifetime(signer) / 3
	promote := signer.NotBefore.Add(2 * third)
	if distributed := next.NotBefore.Add(maxClockSkew + third); distributed.After(promote) {
		promote = distributed
	}
	if latest := signer.NotAfter.Add(-third / 4); latest.Before(promote) {
		promote = latest
	}
	return promote
}
