package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// fakeServer serves the registered webhooks without a listener.
type fakeServer struct {
	webhook.Server
	stopped bool
}

func (s *fakeServer) Start(ctx context.Context) error {
	<-ctx.Done()
	s.stopped = true
	return nil
}

func (s *fakeServer) connection() string {
	recorder := httptest.NewRecorder()
	s.WebhookMux().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert-drain", http.NoBody))
	return recorder.Header().Get("Connection")
}

// A draining server asks clients to close their connections, and stops after an idle period or a timeout. It stops immediately if no connection
// can be open.
func TestServerDrainsBeforeStop(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after int // requests before and after the stop signal; those after it arrive at intervals just below drainIdle
		pause         time.Duration
		want          time.Duration
	}{
		"no request":                  {},
		"idle connection is closed":   {before: 1, pause: idleConnectionTimeout + time.Second},
		"idle connection may be open": {before: 1, pause: idleConnectionTimeout - time.Second, want: drainIdle},
		"a few requests":              {before: 1, after: 2, want: 3*drainIdle - 2*time.Millisecond},
		"continuous requests":         {before: 1, after: 8, want: maxDrain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &fakeServer{Server: webhook.NewServer(webhook.Options{})}
				server := &drainingServer{Server: inner, clock: clock.RealClock{}}
				server.Register("/convert-drain", http.NotFoundHandler())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- server.Start(ctx) }()
				for range tc.before {
					if got := inner.connection(); got != "" {
						t.Errorf("got header Connection: %s before the stop, want none", got)
					}
				}
				time.Sleep(tc.pause)
				synctest.Wait()
				if inner.stopped {
					t.Fatal("the server stopped before its context ended")
				}
				start := time.Now()
				cancel()
				var requests sync.WaitGroup
				requests.Go(func() {
					for range tc.after {
						time.Sleep(drainIdle - time.Millisecond)
						if got := inner.connection(); got != "close" {
							t.Errorf("got header Connection: %q while draining, want close", got)
						}
					}
				})
				defer requests.Wait()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("stopped after %s, want %s", took, tc.want)
				}
			})
		})
	}
}
