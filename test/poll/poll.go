// Package poll waits in unit tests for conditions that no event reports.
package poll

import (
	"testing"
	"time"
)

// Until looks each millisecond until ok, and ends the test after the patience.
func Until(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s", what)
		case <-tick.C:
		}
	}
}
