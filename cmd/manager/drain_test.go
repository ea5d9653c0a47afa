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

// fakeServer answers what is registered, and listens nowhere.
type fakeServer struct {
	webhook.Server
	ended bool
}

func (s *fakeServer) Start(ctx context.Context) error {
	<-ctx.Done()
	s.ended = true
	return nil
}

func (s *fakeServer) connection() string {
	recorder := httptest.NewRecorder()
	s.WebhookMux().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert-parting", http.NoBody))
	return recorder.Header().Get("Connection")
}

// Answers ask clients to close their connections while requests come, within bounds; without requests nothing is waited for.
func TestServerDrainsBeforeStop(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after int // requests; those after the signal come a little more often than the quiet period allows
		pause         time.Duration
		want          time.Duration
	}{
		"no request at all":           {},
		"the connection is closed":    {before: 1, pause: idleConnectionTimeout + time.Second},
		"idle connection may be open": {before: 1, pause: idleConnectionTimeout - time.Second, want: drainIdle},
		"a few requests":              {before: 1, after: 2, want: 3*drainIdle - 2*time.Millisecond},
		"requests without end":        {before: 1, after: 8, want: maxDrain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &fakeServer{Server: webhook.NewServer(webhook.Options{})}
				server := &drainingServer{Server: inner, clock: clock.RealClock{}}
				server.Register("/convert-parting", http.NotFoundHandler())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- server.Start(ctx) }()
				for range tc.before {
					if got := inner.connection(); got != "" {
						t.Errorf("Connection: %s while it serves", got)
					}
				}
				time.Sleep(tc.pause)
				synctest.Wait()
				if inner.ended {
					t.Fatal("the server ended before its context")
				}
				start := time.Now()
				cancel()
				var asking sync.WaitGroup
				asking.Go(func() {
					for range tc.after {
						time.Sleep(drainIdle - time.Millisecond)
						if got := inner.connection(); got != "close" {
							t.Errorf("Connection: %q while it ends", got)
						}
					}
				})
				defer asking.Wait()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("ended after %s, want %s", took, tc.want)
				}
			})
		})
	}
}
