package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewer is an API server that knows the tokens "reader" and "stranger".
func reviewer(t *testing.T, asked *atomic.Int32, broken *atomic.Bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if broken.Load() {
			http.Error(w, "broken", http.StatusBadGateway)
			return
		}
		var answer any
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			review := &authenticationv1.TokenReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			review.Status.Authenticated = review.Spec.Token == "reader" || review.Spec.Token == "stranger"
			review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"},
				Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			answer = review
		} else {
			review := &authorizationv1.SubjectAccessReview{}
			_ = json.NewDecoder(r.Body).Decode(review)
			path := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "reader" && review.Spec.Groups[0] == "g" && review.Spec.Extra["k"][0] == "v" &&
				path.Path == "/metrics" && path.Verb == "get"
			answer = review
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestScrapers(t *testing.T) {
	var asked atomic.Int32
	var broken atomic.Bool
	server := reviewer(t, &asked, &broken)
	filter, err := scraperFilter(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
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
			t.Errorf("status %d with body %q", recorder.Code, recorder.Body)
		}
		return recorder.Code
	}
	for _, tc := range []struct {
		name, method, path, authorization string
		status, questions                 int
	}{
		{"no token", "GET", "/metrics", "", 401, 0},
		{"no bearer", "GET", "/metrics", "Basic cmVhZGVyOg==", 401, 0},
		{"empty token", "GET", "/metrics", "Bearer ", 401, 0},
		{"unknown token", "GET", "/metrics", "Bearer unknown", 401, 1},
		{"unknown token again", "GET", "/metrics", "Bearer unknown", 401, 0},
		{"may not", "GET", "/metrics", "Bearer stranger", 403, 2},
		{"may", "GET", "/metrics", "Bearer reader", 200, 2},
		{"may, from memory", "GET", "/metrics", "Bearer reader", 200, 0},
		{"other path", "GET", "/debug", "Bearer reader", 403, 2},
		{"other method", "POST", "/metrics", "Bearer reader", 403, 2},
	} {
		asked.Store(0)
		if got := get(tc.method, tc.path, tc.authorization); got != tc.status || int(asked.Load()) != tc.questions {
			t.Errorf("%s: status %d after %d questions, want %d after %d", tc.name, got, asked.Load(), tc.status, tc.questions)
		}
	}

	broken.Store(true)
	if got := get("GET", "/metrics", "Bearer late"); got != http.StatusInternalServerError {
		t.Errorf("an API server that fails: status %d", got)
	}
	broken.Store(false)
	if got := get("GET", "/metrics", "Bearer late"); got != http.StatusUnauthorized {
		t.Errorf("a failure must not be remembered: status %d", got)
	}
}

// pointer is a clock that the test sets.
type pointer struct{ time.Time }

func (p *pointer) Now() time.Time { return p.Time }

// A new right counts soon, a permission is believed for longer.
func TestScrapersForget(t *testing.T) {
	var asked atomic.Int32
	server := reviewer(t, &asked, &atomic.Bool{})
	config := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	clock := &pointer{time.Unix(0, 0)}
	s := &scrapers{
		tokens: config.AuthenticationV1().TokenReviews(), access: config.AuthorizationV1().SubjectAccessReviews(),
		verdicts: cache.NewLRUExpireCacheWithClock(verdicts, clock),
	}
	questions := func(token string, after time.Duration) int32 {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		clock.Time = clock.Add(after)
		asked.Store(0)
		if _, err := s.judge(request); err != nil {
			t.Error(err)
		}
		return asked.Load()
	}
	questions("reader", 0)
	questions("stranger", 0)
	if questions("reader", refusedFor+1) != 0 || questions("stranger", 0) != 2 {
		t.Error("a refusal is to be forgotten before a permission")
	}
	if questions("reader", allowedFor) != 2 {
		t.Error("a permission is to be forgotten too")
	}
}
