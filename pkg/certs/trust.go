package certs

import (
	"bytes"
	"encoding/pem"
	"slices"
	"time"
)

// overlap is how long a CA stays trusted whose Secret was deleted or damaged. Kubelets bring pods the new certificate, or the pods are
// replaced, in less; and who deletes a Secret because its key has leaked must not have to wait until that certificate ends.
const overlap = 10 * time.Minute

// Trust is what clients of a server trust: the ca.crt beside its certificate, and for a while the CA before it, where KeepServing had no
// data left to keep it from. It is remembered from what this program issued, and read from no object, for users may write those that have
// it. The zero value trusts nothing.
type Trust struct {
	authority, before []byte
	until             time.Time
}

// Follow notes the ca.crt beside a certificate; none for a certificate that is foreign, or gone.
func (t *Trust) Follow(authority []byte, now time.Time) {
	if signer, _ := pem.Decode(t.authority); signer == nil || len(authority) == 0 {
		*t = Trust{}
	} else if before := pem.EncodeToMemory(signer); !bytes.Contains(authority, before) {
		t.before, t.until = before, now.Add(overlap)
	}
	t.authority = authority
}

// Bundle holds the certificates of the CAs in PEM; nil for none.
func (t *Trust) Bundle(now time.Time) []byte {
	if now.Before(t.until) {
		return slices.Concat(t.authority, t.before)
	}
	return t.authority
}

// Sooner is the time that is left, or that after which Bundle changes, if that is shorter.
func (t *Trust) Sooner(left time.Duration, now time.Time) time.Duration {
	if now.Before(t.until) {
		return min(left, t.until.Sub(now))
	}
	return left
}
