package certs

import (
	"bytes"
	"encoding/pem"
	"slices"
	"time"
)

// trustOverlap is how long a CA stays trusted after its Secret was deleted or damaged. Within that time kubelets update the mounted files or
// pods are replaced. It is short, because the Secret may be deleted after a leak of its key.
const trustOverlap = 10 * time.Minute

// Trust holds the CAs that clients of a server trust: ca.crt of its Secret, and for trustOverlap the previous CA if EnsureServing could not
// keep it because the Secret was lost. The zero value trusts nothing.
type Trust struct {
	current, previous []byte
	previousUntil     time.Time
}

// Update stores the ca.crt of a Secret. If caCert is empty, such as for a foreign certificate, nothing is trusted any more.
func (t *Trust) Update(caCert []byte, now time.Time) {
	if signer, _ := pem.Decode(t.current); signer == nil || len(caCert) == 0 {
		*t = Trust{}
	} else if previous := pem.EncodeToMemory(signer); !bytes.Contains(caCert, previous) {
		t.previous, t.previousUntil = previous, now.Add(trustOverlap)
	}
	t.current = caCert
}

// Bundle returns the PEM certificates of the CAs; nil for none.
func (t *Trust) Bundle(now time.Time) []byte {
	if now.Before(t.previousUntil) {
		return slices.Concat(t.current, t.previous)
	}
	return t.current
}

// RequeueAfter returns requeueAfter, or the time until Bundle changes if that is shorter.
func (t *Trust) RequeueAfter(requeueAfter time.Duration, now time.Time) time.Duration {
	if now.Before(t.previousUntil) {
		return min(requeueAfter, t.previousUntil.Sub(now))
	}
	return requeueAfter
}
