package framework

import (
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
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
