package main

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// One connection above the limit closes an older one, and closed connections do not count.
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
		t.Errorf("got %d open connections, want %d", len(c.open), maxConnections)
	}
	if _, found := c.open[last]; !found {
		t.Error("the most recent connection is not tracked as open")
	}
	closed := make(chan struct{}, maxConnections)
	for _, peer := range peers {
		go func() {
			if _, err := peer.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				closed <- struct{}{}
			}
		}()
	}
	<-closed
	for connection := range c.open {
		c.onStateChange(connection, http.StateClosed)
	}
	if len(c.open) > 0 {
		t.Errorf("got %d open connections after all were closed", len(c.open))
	}
}

// The memory budget applies to a registered path of the webhook server.
func TestMemoryBudgetAppliesToWebhooks(t *testing.T) {
	inner := &fakeServer{Server: webhook.NewServer(webhook.Options{})}
	instrumentedServer{budgetedServer{inner, admission.NewBudget()}}.Register("/guarded", http.NotFoundHandler())
	request := httptest.NewRequest(http.MethodPost, "/guarded", http.NoBody)
	request.ContentLength = 1 << 40
	response := httptest.NewRecorder()
	inner.WebhookMux().ServeHTTP(response, request)
	if response.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", response.Code)
	}
}

func TestMemoryLimitIsLowered(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{math.MaxInt64: math.MaxInt64, 1000 << 20: 900 << 20} {
		debug.SetMemoryLimit(limit)
		lowerMemoryLimit()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("limit %d became %d, want %d", limit, got, want)
		}
	}
}

// A connection that arrives while the program starts again waits for the new server.
func TestListenerIsKeptDuringRestart(t *testing.T) {
	before, err := (&limitedServer{address: "127.0.0.1:0"}).listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := before.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	address := before.Addr().String()
	if err := before.Close(); err != nil { // as the stopping server does
		t.Fatal(err)
	}
	caller, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	webhook := config.Webhook{Port: before.Addr().(*net.TCPAddr).Port, Listener: int(socket.Fd())}
	after, err := newLimitedServer(webhook).listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := checkPorts(t.Context(), config.Config{Webhook: webhook, Metrics: config.Metrics{BindAddress: "0"}, Health: config.Health{BindAddress: "0"}}, true); err != nil {
		t.Errorf("the port of the inherited listener was reported as in use: %v", err)
	}
	called, err := after.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer called.Close()
	if called.RemoteAddr().String() != caller.LocalAddr().String() {
		t.Errorf("accepted %s, want %s", called.RemoteAddr(), caller.LocalAddr())
	}
}

// Without a listener restart fails, so the container exits and the kubelet restarts it.
func TestRestartWithoutListenerFails(t *testing.T) {
	if err := new(limitedServer).restart(); err == nil || !strings.Contains(err.Error(), "starting again") {
		t.Errorf("got error %v, want a failed restart", err)
	}
}
