package certs

import (
	"bytes"
	"encoding/pem"
	"slices"
	"time"
)

// overlap is how long a CA stays trusted whose Secret was deleted or damaged. Kubelets bring pods the new certificate, or the pods are
// replaced, in less; and who deletes a Secret because its key has leaked must not have to wait until that certificate ends.
const trustOverlap = 10 * time.Minute

// Trust holds the CAs that clients of a server trust: the ca.crt of its Secret, and for some minutes the CA before it, if the Secret was lost
// from which KeepServing would have kept it. It is remembered from the certificates that this program issued, and not read from objects,
// since users may write those. The zero value trusts nothing.
type Trust struct {
	current, previous []byte
	previousUntil     time.Time
}

// Follow records the ca.crt of a Secret; none for a certificate that is foreign or was deleted.
func (t *Trust) Update(authority []byte, now time.Time) {
	if signer, _ := pem.Decode(t.current); signer == nil || len(authority) == 0 {
		*t = Trust{}
	} else if before := pem.EncodeToMemory(signer); !bytes.Contains(authority, before) {
		t.previous, t.previousUntil = before, now.Add(trustOverlap)
	}
	t.current = authority
}

// Bundle holds the certificates of the CAs in PEM; nil for none.
func (t *Trust) Bundle(now time.Time) []byte {
	if now.Before(t.previousUntil) {
		return slices.Concat(t.current, t.previous)
	}
	return t.current
}

// Sooner is the time that is left, or that after which Bundle changes, if that is shorter.
func (t *Trust) RequeueAfter(left time.Duration, now time.Time) time.Duration {
	if now.Before(t.previousUntil) {
		return min(left, t.previousUntil.Sub(now))
	}
	return left
}
