package main

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// The holder of the Lease is the pod name, so that a restarted container leads again immediately.
func TestLeaseIsHeldByPod(t *testing.T) {
	for name, tc := range map[string]struct {
		le   config.LeaderElection
		want string
	}{
		"in a pod":         {config.LeaderElection{Enabled: true, Namespace: "ns", Identity: "manager-1", RenewDeadline: time.Minute}, "manager-1"},
		"elsewhere":        {config.LeaderElection{Enabled: true, Namespace: "ns", RenewDeadline: time.Minute}, ""},
		"without election": {config.LeaderElection{Namespace: "ns", Identity: "manager-1"}, ""},
	} {
		lock, err := leaderLock(tc.le, &rest.Config{Host: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		if lock == nil && tc.want == "" {
			continue
		}
		if lock == nil || lock.Identity() != tc.want || lock.Describe() != "ns/odh-platform-operator" {
			t.Errorf("%s: lock %v", name, lock)
		}
	}
}
