package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout bounds the reviews of one request, and sendTimeout the sending of it and the reading of the answer.
	reviewTimeout, sendTimeout = 10 * time.Second, 30 * time.Second
	// profileTimeout bounds the taking and sending of a profile.
	profileTimeout = 5 * time.Minute
	// maxReviews are reviewed at the same time, and one more waits for reviewTurn: every pod reaches the port, with tokens made up.
	maxReviews = 4
	reviewTurn = time.Second
)

// scrapers lets callers read metrics whom the API server knows and allows to get the path. It does what the filter of
// controller-runtime does, whose imports (the API server's library, with it text/template) would add 7.5 MB to the
// program and switch off the linker's removal of unused methods. It remembers no answer: a scrape in half a minute costs two questions,
// and a token that was revoked reads nothing more.
type scrapers struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	// turns has an element for each review in progress.
	turns chan struct{}
}

// scraperFilter fits FilterProvider of the metrics server. The account of the program needs create on tokenreviews and
// subjectaccessreviews, callers need get on the nonResourceURL /metrics.
func scraperFilter(restConfig *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("building the authentication client: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("building the authorization client: %w", err)
	}
	return scrapers{authentication.TokenReviews(), authorization.SubjectAccessReviews(), make(chan struct{}, maxReviews)}.filter, nil
}

// profiles are the handlers of profiles by path, for ExtraHandlers of the metrics server, which filters them too: callers need get on
// their nonResourceURLs. A profile takes as long as the caller wants, so the limit for sending it is another.
func profiles() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace} {
		handlers["/debug/pprof/"+path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(clock.RealClock{}.Now().Add(profileTimeout))
			profile(w, r)
		})
	}
	return handlers
}

func (s scrapers) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, limit := http.NewResponseController(w), clock.RealClock{}.Now().Add(sendTimeout)
		_, _ = connection.SetReadDeadline(limit), connection.SetWriteDeadline(limit) // the library's server has no limit for them
		status, err := s.judge(r)
		if err != nil {
			status = http.StatusInternalServerError
			log.Error(err, "The caller of a metrics request could not be checked")
		}
		if status != http.StatusOK {
			w.Header().Set("Connection", "close")
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// judge returns 200 for a caller who may read, else the status of the refusal. It asks the API server who the caller is and what they
// may do.
func (s scrapers) judge(r *http.Request) (int, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	turn, last := context.WithTimeout(ctx, reviewTurn)
	defer last()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-turn.Done():
		return http.StatusTooManyRequests, nil
	}
	who, err := s.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := s.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
