package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// newReviewServer returns an API server that accepts the tokens "reader" and "unprivileged", and authorizes only "reader".
func newReviewServer(t *testing.T, requests *atomic.Int32, failing *atomic.Bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if failing.Load() {
			http.Error(w, "failing", http.StatusBadGateway)
			return
		}
		var response any
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			review := &authenticationv1.TokenReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			review.Status.Authenticated = review.Spec.Token == "reader" || review.Spec.Token == "unprivileged"
			review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"},
				Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			response = review
		} else {
			review := &authorizationv1.SubjectAccessReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			path := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "reader" && review.Spec.Groups[0] == "g" && review.Spec.Extra["k"][0] == "v" &&
				path.Path == "/metrics" && path.Verb == "get"
			response = review
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(response)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestMetricsRequireAuthorization(t *testing.T) {
	var requests atomic.Int32
	var failing atomic.Bool
	server := newReviewServer(t, &requests, &failing)
	filter, err := metricsAuthFilter(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, path, authorization string) int {
		request := httptest.NewRequest(method, path, nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if (recorder.Body.String() == "metrics") != (recorder.Code == http.StatusOK) {
			t.Errorf("unexpected status %d with body %q", recorder.Code, recorder.Body)
		}
		return recorder.Code
	}
	for _, tc := range []struct {
		name, method, path, authorization string
		status, reviews                   int
	}{
		{"no token", "GET", "/metrics", "", 401, 0},
		{"no bearer", "GET", "/metrics", "Basic cmVhZGVyOg==", 401, 0},
		{"empty token", "GET", "/metrics", "Bearer ", 401, 0},
		{"unknown token", "GET", "/metrics", "Bearer unknown", 401, 1},
		{"unknown token again", "GET", "/metrics", "Bearer unknown", 401, 1},
		{"forbidden user", "GET", "/metrics", "Bearer unprivileged", 403, 2},
		{"authorized user", "GET", "/metrics", "Bearer reader", 200, 2},
		{"authorized user again", "GET", "/metrics", "Bearer reader", 200, 2},
		{"other path", "GET", "/debug", "Bearer reader", 403, 2},
		{"other method", "POST", "/metrics", "Bearer reader", 403, 2},
	} {
		requests.Store(0)
		if got := get(tc.method, tc.path, tc.authorization); got != tc.status || int(requests.Load()) != tc.reviews {
			t.Errorf("%s: got status %d after %d reviews, want %d after %d", tc.name, got, requests.Load(), tc.status, tc.reviews)
		}
	}

	failing.Store(true)
	if got := get("GET", "/metrics", "Bearer uncached"); got != http.StatusInternalServerError {
		t.Errorf("failing API server: got status %d, want %d", got, http.StatusInternalServerError)
	}
	failing.Store(false)
	if got := get("GET", "/metrics", "Bearer uncached"); got != http.StatusUnauthorized {
		t.Errorf("repeated request after a failure: got status %d, want %d", got, http.StatusUnauthorized)
	}
}

// Requests above the limit of concurrent reviews get status 429, and their connection is closed.
func TestConcurrentReviewsAreLimited(t *testing.T) {
	s := metricsAuth{slots: make(chan struct{}, 1)}
	s.slots <- struct{}{}
	handler, err := s.filter(logr.Discard(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	request, recorder := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
	request.Header.Set("Authorization", "Bearer made-up")
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusTooManyRequests || recorder.Header().Get("Connection") != "close" {
		t.Errorf("got status %d and headers %v, want 429 and Connection: close", recorder.Code, recorder.Header())
	}
}
