// Package poll waits for conditions in unit tests.
package poll

import (
	"testing"
	"time"
)

// Until calls ok every millisecond until it returns true, and fails the test after the timeout.
func Until(t testing.TB, timeout time.Duration, description string, ok func() bool) {
	t.Helper()
	deadline := time.After(timeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s", description)
		case <-tick.C:
		}
	}
}
