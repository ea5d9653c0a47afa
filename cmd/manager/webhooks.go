package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

const (
	// webhookService is the Service in front of the webhook server; the certificate is issued for its names.
	webhookService = names.OperatorName + "-webhook"
	// webhookSecret holds the self-issued certificate, in the manager's own namespace.
	webhookSecret = names.OperatorName + "-webhook-cert"
	// metricsService is the Service in front of the metrics listener, which serves the same certificate.
	metricsService = names.OperatorName + "-metrics"
)

// webhooks is the admission and conversion server with its certificate; the zero value means that no component needs it.
type webhooks struct {
	server      webhook.Server
	certificate certificate
}

// certificate is where the webhook server's certificate comes from.
type certificate interface {
	manager.Runnable
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// needsWebhooks tells whether a component of this build has webhooks. Disabled ones count: the lists of webhooks in
// the cluster are static, so their paths must be answered.
func needsWebhooks(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.Webhooks != nil })
}

func newWebhooks(env *Env, rows []row, restConfig *rest.Config, scheme *runtime.Scheme, listener *tlsprofile.Listener) (webhooks, error) {
	if !needsWebhooks(rows) {
		return webhooks{}, nil
	}
	source, err := newCertificate(env, rows, restConfig, scheme)
	if err != nil {
		return webhooks{}, err
	}
	server := newBounded(env.Config.Webhook.Port, func(c *tls.Config) { c.GetCertificate = source.GetCertificate }, listener.Configure)
	return webhooks{server: judged{guarded{&parting{Server: server, clock: env.Clock}, admission.NewBudget()}}, certificate: source}, nil
}

func newCertificate(env *Env, rows []row, restConfig *rest.Config, scheme *runtime.Scheme) (certificate, error) {
	w := env.Config.Webhook
	if w.Mode == config.WebhookMounted || w.Mode == config.WebhookAuto && certs.IsMounted(w.CertDir) {
		mounted, err := certs.NewMounted(w.CertDir)
		if err != nil {
			return nil, fmt.Errorf("%w: mount one, or let the program issue its own with --webhook-cert-mode=self", err)
		}
		return mounted, nil
	}
	// Its own client without a cache: the manager's does not exist yet, and Secrets are never cached.
	direct, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client of the certificate authority: %w", err)
	}
	options := authorityOptions(env, rows, direct)
	if options.Dynamic, err = dynamic.NewForConfig(restConfig); err != nil {
		return nil, fmt.Errorf("building the client that watches webhook configurations: %w", err)
	}
	return certs.NewAuthority(options), nil
}

func authorityOptions(env *Env, rows []row, direct client.Client) certs.Options {
	options := certs.Options{
		Client:   direct,
		Secret:   types.NamespacedName{Namespace: env.Config.OperatorNamespace, Name: webhookSecret},
		Labels:   map[string]string{names.OperatorLabel: names.OperatorName},
		DNSNames: serviceNames(env.Config),
		Clock:    env.Clock,
		Log:      ctrl.Log.WithName("certs"),
	}
	for _, r := range rows {
		for _, target := range r.Trusts {
			target.Optional, target.Service = !env.Config.Enabled(r.Name), webhookService
			options.Targets = append(options.Targets, target)
		}
	}
	return options
}

// serviceNames are the names by which the API server calls the webhook Service, and scrapers that of metrics. The one without a
// namespace is for manifests, which cannot know it; the CA signs for no other server.
func serviceNames(cfg config.Config) []string {
	base, metrics := webhookService+"."+cfg.OperatorNamespace, metricsService+"."+cfg.OperatorNamespace
	return []string{base + ".svc", base + ".svc.cluster.local", base, metrics + ".svc", metrics, metricsService}
}

// secureMetrics lets the metrics listener serve our own certificate, whose CA scrapers can read, where no other is given.
func (w webhooks) secureMetrics(options *metricsserver.Options) {
	self, ok := w.certificate.(*certs.Authority)
	if !ok || !options.SecureServing || options.CertDir != "" {
		return
	}
	options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = self.GetCertificate })
}

// addTo registers the certificate's upkeep and the readiness of the server and, where it can be missing, of the certificate.
func (w webhooks) addTo(mgr ctrl.Manager) error {
	if w.server == nil {
		return nil
	}
	// The server answers the checker only when it has a certificate, so that an endpoint that is ready is one that answers.
	errs := []error{mgr.Add(w.certificate), mgr.AddReadyzCheck("webhook-server", w.server.StartedChecker())}
	if self, ok := w.certificate.(*certs.Authority); ok {
		errs = append(errs, mgr.AddReadyzCheck("webhook-certificate", self.Ready))
	}
	return errors.Join(errs...)
}
