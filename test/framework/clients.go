package framework

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Impersonate returns a client with the permissions of a user.
func (e *Env) Impersonate(user rest.ImpersonationConfig) client.Client {
	ginkgo.GinkgoHelper()
	config := rest.CopyConfig(e.Config)
	config.Impersonate = user
	return e.newClient(config)
}

// WaitAllowed waits until the API server allows a request of a user, because its authorizer reads roles and bindings from a cache.
func (e *Env) WaitAllowed(ctx context.Context, user string, request authorizationv1.ResourceAttributes) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &request}}
		err := e.Admin.Create(ctx, review)
		return review.Status.Allowed, err
	}).WithContext(ctx).Should(gomega.BeTrue(), "%s %s in %s", request.Verb, request.Resource, request.Namespace)
}

// Warnings collects the warnings of the API server.
type Warnings struct{ Texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(_ int, _, text string) { w.Texts = append(w.Texts, text) }

// WithWarnings returns an administrator's client and the warnings that it receives.
func (e *Env) WithWarnings() (client.Client, *Warnings) {
	ginkgo.GinkgoHelper()
	warnings := &Warnings{}
	config := rest.CopyConfig(e.Config)
	config.WarningHandler = warnings
	return e.newClient(config), warnings
}

func (e *Env) newClient(config *rest.Config) client.Client {
	ginkgo.GinkgoHelper()
	c, err := client.New(config, client.Options{Scheme: e.Scheme, Mapper: e.Admin.RESTMapper()})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return c
}
