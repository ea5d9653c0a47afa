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
	// drainIdle is the time without requests after which a draining server closes its connections, maxDrain the longest wait for that.
	drainIdle = 500 * time.Millisecond
	maxDrain  = 3 * time.Second
	// idleConnectionTimeout is how long the server keeps a connection without requests.
	idleConnectionTimeout = 90 * time.Second
)

// drainingServer is a webhook server that drains HTTP/1.1 connections before it stops. API servers do not retry a request on a connection
// that is closed at the same moment, and would reject the write. While draining, each response has the header "Connection: close".
type drainingServer struct {
	webhook.Server
	clock       clock.Clock
	draining    atomic.Bool
	lastRequest atomic.Pointer[time.Time]
}

// Register implements webhook.Server.
func (p *drainingServer) Register(path string, hook http.Handler) {
	p.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.touch()
		defer p.touch()
		if p.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		hook.ServeHTTP(w, r)
	}))
}

func (p *drainingServer) touch() { p.lastRequest.Store(new(p.clock.Now())) }

// Start implements manager.Runnable.
func (p *drainingServer) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		defer stop()
		p.draining.Store(true)
		p.waitIdle()
	})()
	return p.Server.Start(serving)
}

// waitIdle waits until no request arrived for drainIdle. It returns immediately if all connections must be closed already.
func (p *drainingServer) waitIdle() {
	started, timeout := p.clock.Now(), p.clock.After(maxDrain)
	if last := p.lastRequest.Load(); last == nil || started.Sub(*last) > idleConnectionTimeout {
		return
	}
	for idle := time.Duration(0); idle < drainIdle; idle = min(p.clock.Since(started), p.clock.Since(*p.lastRequest.Load())) {
		select {
		case <-timeout:
			return
		case <-p.clock.After(drainIdle - idle):
		}
	}
}
