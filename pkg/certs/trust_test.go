package certs

import (
	"bytes"
	"testing"
	"time"
)

// Clients trust the old and the new certificate after a renewal and after a recreation of the Secret.
func TestTrustKeepsPreviousCA(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := ensureServing(t, nil, now)
	due := first.Next
	for name, before := range map[string]map[string][]byte{
		"renewed": first.Data, "deleted": nil, "damaged": {"ca.crt": []byte("x"), "tls.crt": first.Data["tls.crt"], "tls.key": first.Data["tls.key"]},
	} {
		t.Run(name, func(t *testing.T) {
			var trust Trust
			trust.Update(first.Data["ca.crt"], now)
			if !bytes.Equal(trust.Bundle(now), first.Data["ca.crt"]) || trust.RequeueAfter(time.Hour, now) != time.Hour {
				t.Error("want only the first CA trusted, and no early requeue")
			}
			second := ensureServing(t, before, due)
			for range 2 { // each reconcile calls Update
				trust.Update(second.Data["ca.crt"], due)
			}
			for which, data := range map[string]map[string][]byte{"old": first.Data, "new": second.Data} {
				if !accepts(t, data, trust.Bundle(due.Add(trustOverlap-time.Second)), due) {
					t.Errorf("the %s certificate is not trusted", which)
				}
			}
			if left := trust.RequeueAfter(time.Hour, due); name != "renewed" && left != trustOverlap || name == "renewed" && left != time.Hour {
				t.Errorf("RequeueAfter returned %s", left)
			}
			later := due.Add(trustOverlap)
			if !bytes.Equal(trust.Bundle(later), second.Data["ca.crt"]) || trust.RequeueAfter(time.Hour, later) != time.Hour {
				t.Error("want only ca.crt of the Secret trusted after trustOverlap, and no early requeue")
			}
		})
	}
}

// A foreign or deleted certificate leaves no trusted CA.
func TestTrustDropsForeignCertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, second := ensureServing(t, nil, now), ensureServing(t, nil, now)
	var trust Trust
	trust.Update(first.Data["ca.crt"], now)
	trust.Update(nil, now)
	if trust.Bundle(now) != nil {
		t.Error("the bundle of a deleted Secret is not empty")
	}
	trust.Update(second.Data["ca.crt"], now)
	if !bytes.Equal(trust.Bundle(now), second.Data["ca.crt"]) {
		t.Error("want only the CA of the new certificate trusted")
	}
}
