package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const (
	// readHeaderTimeout, readTimeout and writeTimeout limit slow clients, as in http.Server.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 40 * time.Second
	// probeTimeout limits a readiness check.
	probeTimeout = 10 * time.Second
	// maxConnections is more than API servers open. Each connection takes memory before it sends a request.
	maxConnections = 1000
	maxHeaderBytes = 16 << 10
	// certificatePoll is the interval of checks whether the certificate has been read after a restart.
	certificatePoll = 20 * time.Millisecond
)

// limitedServer is a webhook server with limits for connections and slow clients, because every pod can reach the port. The server of
// controller-runtime limits only headers and idle connections.
type limitedServer struct {
	webhook.Server
	address    string
	tlsOptions []func(*tls.Config)
	// inherited is the file descriptor of the listener that the process kept during a restart, or 0.
	inherited int
	started   atomic.Bool
	// socket is a duplicate of the listener. It stays open when the server stops.
	socket *os.File
}

func newLimitedServer(w config.Webhook, options ...func(*tls.Config)) *limitedServer {
	return &limitedServer{Server: webhook.NewServer(webhook.Options{}), address: net.JoinHostPort("", strconv.Itoa(w.Port)), tlsOptions: options, inherited: w.Listener}
}

// budgetedServer is a webhook server whose requests share a memory budget.
type budgetedServer struct {
	webhook.Server
	budget *admission.Budget
}

// Register implements webhook.Server.
func (s budgetedServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, s.budget.Guard(hook))
}

// Start implements manager.Runnable.
func (s *limitedServer) Start(ctx context.Context) error {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, set := range s.tlsOptions {
		set(tlsConfig)
	}
	// API servers call webhooks with HTTP/1.1. With HTTP/2, bodies are buffered before a handler reads them.
	tlsConfig.NextProtos = []string{"http/1.1"}
	listener, err := s.listen(ctx)
	if err == nil {
		s.socket, err = listener.(*net.TCPListener).File()
	}
	if err != nil {
		return fmt.Errorf("listening for webhooks: %w", err)
	}
	limiter := connectionLimiter{open: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler: s.WebhookMux(), BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }, ConnState: limiter.onStateChange,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleConnectionTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	shutdownErr := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		shutdownErr <- server.Shutdown(shutdownCtx)
	})()
	// Connections that have been waiting since a restart would fail without the certificate.
	for _, err := tlsConfig.GetCertificate(nil); err != nil && s.inherited > 0 && ctx.Err() == nil; _, err = tlsConfig.GetCertificate(nil) {
		<-time.After(certificatePoll)
	}
	s.started.Store(true)
	if err := server.Serve(tls.NewListener(listener, tlsConfig)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return <-shutdownErr
}

// listen returns the inherited listener or a new one.
func (s *limitedServer) listen(ctx context.Context) (net.Listener, error) {
	if s.inherited > 0 {
		return net.FileListener(os.NewFile(uintptr(s.inherited), s.address))
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", s.address)
}

// restart runs the program again in the same process and keeps the listener open: connections wait until the webhooks are served again.
// If the listener were closed, connections would be refused until nodes no longer route to this pod. restart returns only after a failure.
func (s *limitedServer) restart() error {
	fd, err := syscall.Dup(int(s.socket.Fd())) // remains open in the new program
	if err == nil {
		_ = os.Setenv(config.ListenerVariable, strconv.Itoa(fd)) // fails only for invalid names
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	return fmt.Errorf("starting again: %w", err)
}

// StartedChecker implements webhook.Server. It checks that the server accepts a TLS connection.
func (s *limitedServer) StartedChecker() healthz.Checker {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is for other names
	return func(r *http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server has not started yet")
		}
		connection, err := dialer.DialContext(r.Context(), "tcp", s.address)
		if err != nil {
			return fmt.Errorf("the webhook server cannot be reached: %w", err)
		}
		return connection.Close()
	}
}

// connectionLimiter limits the open connections of a server.
type connectionLimiter struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// onStateChange tracks the state of a connection. At the limit it closes a random one, most likely of the client with the most connections.
func (c *connectionLimiter) onStateChange(connection net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		for other := range c.open {
			if len(c.open) < maxConnections {
				break
			}
			delete(c.open, other)
			go func() { _ = other.Close() }() // may block on the peer
		}
		c.open[connection] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, connection)
	case http.StateActive, http.StateIdle:
	}
}
