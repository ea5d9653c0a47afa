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
	// partingQuiet is how long no request may have come before a server that stops closes connections; partingMax bounds the wait for that.
	partingQuiet, partingMax = 500 * time.Millisecond, 2 * time.Second
	// connectionIdle is how long the library's server keeps a connection without requests.
	connectionIdle = 90 * time.Second
)

// parting is a webhook server that lets callers go before it ends. API servers keep connections of HTTP/1.1 open, and do not repeat a
// request that they send on one in the moment in which it is closed: a write would be refused. So each answer asks to close its
// connection first, until no more requests come.
type parting struct {
	webhook.Server
	clock  clock.Clock
	ending atomic.Bool
	asked  atomic.Pointer[time.Time] // the last time
}

// Register implements webhook.Server.
func (p *parting) Register(path string, hook http.Handler) {
	p.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.note()
		defer p.note()
		if p.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		hook.ServeHTTP(w, r)
	}))
}

func (p *parting) note() { p.asked.Store(new(p.clock.Now())) }

// Start implements manager.Runnable.
func (p *parting) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		defer stop()
		p.ending.Store(true)
		p.awaitQuiet()
	})()
	return p.Server.Start(serving)
}

// awaitQuiet returns when no request has come for a while since the stop began, at once where no connection can be open.
func (p *parting) awaitQuiet() {
	begun, end := p.clock.Now(), p.clock.After(partingMax)
	if asked := p.asked.Load(); asked == nil || begun.Sub(*asked) > connectionIdle {
		return
	}
	for quiet := time.Duration(0); quiet < partingQuiet; quiet = min(p.clock.Since(begun), p.clock.Since(*p.asked.Load())) {
		select {
		case <-end:
			return
		case <-p.clock.After(partingQuiet - quiet):
		}
	}
}
