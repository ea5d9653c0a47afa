package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

const (
	// headTimeout and bodyTimeout are how long a client may take to send a request, and answerTimeout until it has read the answer.
	headTimeout, bodyTimeout, answerTimeout = 5 * time.Second, 10 * time.Second, 40 * time.Second
	// probeTimeout bounds a check of readiness.
	probeTimeout = 10 * time.Second
	// maxConnections is what API servers never need. Each takes memory before it has sent anything.
	maxConnections = 1000
	maxHead        = 16 << 10
)

// bounded is the library's webhook server with bounds for clients, because every pod reaches the port: the library's own listener
// has none for the number of connections, nor for slow clients.
type bounded struct {
	webhook.Server
	address string
	tls     []func(*tls.Config)
	started atomic.Bool
}

func newBounded(port int, options ...func(*tls.Config)) *bounded {
	return &bounded{Server: webhook.NewServer(webhook.Options{}), address: net.JoinHostPort("", strconv.Itoa(port)), tls: options}
}

// guarded is a webhook server all of whose requests share a budget of memory.
type guarded struct {
	webhook.Server
	budget *admission.Budget
}

// Register implements webhook.Server.
func (g guarded) Register(path string, hook http.Handler) {
	g.Server.Register(path, g.budget.Guard(hook))
}

// Start implements manager.Runnable.
func (b *bounded) Start(ctx context.Context) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, set := range b.tls {
		set(config)
	}
	// API servers call webhooks with HTTP/1.1, and with HTTP/2 bodies are in memory before a handler reads them.
	config.NextProtos = []string{"http/1.1"}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", b.address)
	if err != nil {
		return fmt.Errorf("listening for webhooks: %w", err)
	}
	open := connections{open: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler: b.WebhookMux(), BaseContext: func(net.Listener) context.Context { return ctx }, ConnState: open.changed,
		ReadHeaderTimeout: headTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: connectionIdle, MaxHeaderBytes: maxHead,
	}
	ended := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		ended <- server.Shutdown(last)
	})()
	b.started.Store(true)
	if err := server.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return <-ended
}

// StartedChecker implements webhook.Server: it is ready when a connection is answered.
func (b *bounded) StartedChecker() healthz.Checker {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is for other names
	return func(r *http.Request) error {
		if !b.started.Load() {
			return errors.New("the webhook server has not started yet")
		}
		connection, err := dialer.DialContext(r.Context(), "tcp", b.address)
		if err != nil {
			return fmt.Errorf("the webhook server cannot be reached: %w", err)
		}
		return connection.Close()
	}
}

// connections are the open ones of a server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// changed follows the state of a connection. One too many ends another at random: most likely one of the client that has the most.
func (c *connections) changed(connection net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		for other := range c.open {
			if len(c.open) < maxConnections {
				break
			}
			delete(c.open, other)
			go func() { _ = other.Close() }() // it waits for its peer
		}
		c.open[connection] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, connection)
	case http.StateActive, http.StateIdle:
	}
}
