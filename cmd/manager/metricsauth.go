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

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

const (
	// reviewTimeout limits the reviews of a request. sendTimeout limits the transfer of request and response.
	reviewTimeout = 10 * time.Second
	sendTimeout   = 30 * time.Second
	// profileTimeout limits recording and sending a profile.
	profileTimeout = 5 * time.Minute
	// maxConcurrentReviews limits the requests under review, because every pod can send tokens. Other requests wait up to reviewSlotTimeout.
	maxConcurrentReviews = 4
	reviewSlotTimeout    = time.Second
)

// metricsAuth authenticates and authorizes requests for metrics like the filter of controller-runtime, whose imports would add 7.5 MB to the
// binary and disable dead code elimination of methods. Results are not cached: a scrape every 30 s costs two reviews, and a revoked token is
// rejected immediately.
type metricsAuth struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	// slots holds an element for each request under review.
	slots chan struct{}
}

// metricsAuthFilter is the FilterProvider of the metrics server. The operator needs create on tokenreviews and subjectaccessreviews, callers
// need get on the nonResourceURL /metrics.
func metricsAuthFilter(restConfig *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("building the authentication client: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("building the authorization client: %w", err)
	}
	return metricsAuth{authentication.TokenReviews(), authorization.SubjectAccessReviews(), make(chan struct{}, maxConcurrentReviews)}.filter, nil
}

// pprofHandlers returns the pprof handlers by path, for ExtraHandlers. The metrics server applies the filter to them, so callers need get on
// the nonResourceURLs. The caller chooses the duration of a profile, so the write deadline is longer.
func pprofHandlers() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace} {
		handlers["/debug/pprof/"+path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(clock.RealClock{}.Now().Add(profileTimeout))
			profile(w, r)
		})
	}
	return handlers
}

func (s metricsAuth) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, deadline := http.NewResponseController(w), clock.RealClock{}.Now().Add(sendTimeout)
		_, _ = connection.SetReadDeadline(deadline), connection.SetWriteDeadline(deadline) // controller-runtime sets neither
		status, err := s.authorize(r)
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

// authorize returns 200 if the caller has permission, otherwise the status of the rejection, or an error if a review request fails.
func (s metricsAuth) authorize(r *http.Request) (int, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	slotCtx, cancelSlot := context.WithTimeout(ctx, reviewSlotTimeout)
	defer cancelSlot()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-slotCtx.Done():
		return http.StatusTooManyRequests, nil
	}
	tokenReview, err := s.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !tokenReview.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	accessReview := admission.NewReview(tokenReview.Status.User)
	accessReview.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	if accessReview, err = s.access.Create(ctx, accessReview, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("reviewing the access of %s: %w", tokenReview.Status.User.Username, err)
	}
	if !accessReview.Status.Allowed || accessReview.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
