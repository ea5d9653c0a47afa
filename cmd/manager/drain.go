package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// drainIdle is the time without requests after which a draining server closes its connections. maxDrain limits the wait for it.
	drainIdle = 500 * time.Millisecond
	maxDrain  = 3 * time.Second
	// idleConnectionTimeout is how long the server keeps a connection without requests.
	idleConnectionTimeout = 90 * time.Second
)

// drainingServer is a webhook server that drains HTTP/1.1 connections before it stops. API servers do not retry a request on a connection
// that is closed at the same moment, and would reject the write. Responses to requests that arrive while draining have the header
// "Connection: close".
type drainingServer struct {
	webhook.Server
	clock       clock.Clock
	draining    atomic.Bool
	lastRequest atomic.Pointer[time.Time]
}

// Register implements webhook.Server.
func (s *drainingServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.touch()
		defer s.touch()
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		hook.ServeHTTP(w, r)
	}))
}

func (s *drainingServer) touch() { s.lastRequest.Store(new(s.clock.Now())) }

// Start implements manager.Runnable.
func (s *drainingServer) Start(ctx context.Context) error {
	serveCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		defer stop()
		s.draining.Store(true)
		s.waitIdle()
	})()
	return s.Server.Start(serveCtx)
}

// waitIdle waits up to maxDrain until no request starts or ends for drainIdle. It does not wait if there was no request for
// idleConnectionTimeout, because no connection is open then.
func (s *drainingServer) waitIdle() {
	started, timeout := s.clock.Now(), s.clock.After(maxDrain)
	if last := s.lastRequest.Load(); last == nil || started.Sub(*last) > idleConnectionTimeout {
		return
	}
	for idle := time.Duration(0); idle < drainIdle; idle = min(s.clock.Since(started), s.clock.Since(*s.lastRequest.Load())) {
		select {
		case <-timeout:
			return
		case <-s.clock.After(drainIdle - idle):
		}
	}
}
