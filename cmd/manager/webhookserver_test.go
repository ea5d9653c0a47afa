package main

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// One connection too many ends one of those before, and what has ended counts no longer.
func TestConnectionsAreLimited(t *testing.T) {
	c := connectionLimiter{open: map[net.Conn]struct{}{}}
	peers := make([]net.Conn, 0, maxConnections)
	for range maxConnections {
		managed, peer := net.Pipe()
		peers = append(peers, peer)
		c.onStateChange(managed, http.StateNew)
	}
	last, _ := net.Pipe()
	c.onStateChange(last, http.StateNew)
	if len(c.open) != maxConnections {
		t.Errorf("%d connections are open", len(c.open))
	}
	if _, known := c.open[last]; !known {
		t.Error("the last one is not open")
	}
	ended := make(chan struct{}, maxConnections)
	for _, peer := range peers {
		go func() {
			if _, err := peer.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				ended <- struct{}{}
			}
		}()
	}
	<-ended
	for connection := range c.open {
		c.onStateChange(connection, http.StateClosed)
	}
	if len(c.open) > 0 {
		t.Errorf("%d connections are open after all ended", len(c.open))
	}
}

// Every path of the webhook server is within the budget.
func TestWebhooksAreWithinBudget(t *testing.T) {
	inner := &fakeServer{Server: webhook.NewServer(webhook.Options{})}
	instrumentedServer{budgetedServer{inner, admission.NewBudget()}}.Register("/guarded", http.NotFoundHandler())
	request := httptest.NewRequest(http.MethodPost, "/guarded", http.NoBody)
	request.ContentLength = 1 << 40
	answer := httptest.NewRecorder()
	inner.WebhookMux().ServeHTTP(answer, request)
	if answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", answer.Code)
	}
}

func TestMemoryLimitIsLowered(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for given, want := range map[int64]int64{math.MaxInt64: math.MaxInt64, 1000 << 20: 900 << 20} {
		debug.SetMemoryLimit(given)
		lowerMemoryLimit()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%d became %d, want %d", given, got, want)
		}
	}
}
