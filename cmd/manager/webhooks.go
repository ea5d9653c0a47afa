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
	// webhookService is the Service of the webhook server; the certificate is issued for its names.
	webhookService = names.OperatorName + "-webhook"
	// webhookSecret stores the self-signed certificate in the operator namespace.
	webhookSecret = names.OperatorName + "-webhook-cert"
	// metricsService is the Service of the metrics server.
	metricsService = names.OperatorName + "-metrics"
)

// webhooks is the admission and conversion server with its certificate. Both are nil if no component has webhooks.
type webhooks struct {
	server      webhook.Server
	limited     *limitedServer
	certificate certificateSource
}

// certificateSource provides the certificate of the webhook server.
type certificateSource interface {
	manager.Runnable
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// needsWebhooks reports whether a component has webhooks, even a disabled one: the webhook configurations in the cluster are static, so
// their paths must respond.
func needsWebhooks(specs []componentSpec) bool {
	return slices.ContainsFunc(specs, func(spec componentSpec) bool { return spec.Webhooks != nil })
}

func newWebhooks(env *Env, specs []componentSpec, restConfig *rest.Config, scheme *runtime.Scheme, listener *tlsprofile.Listener) (webhooks, error) {
	if !needsWebhooks(specs) {
		return webhooks{limited: &limitedServer{}}, nil
	}
	source, err := newCertificateSource(env, specs, restConfig, scheme)
	if err != nil {
		return webhooks{}, err
	}
	server := newLimitedServer(env.Config.Webhook, func(c *tls.Config) { c.GetCertificate = source.GetCertificate }, listener.Configure)
	return webhooks{server: instrumentedServer{budgetedServer{&drainingServer{Server: server, clock: env.Clock}, admission.NewBudget()}}, limited: server, certificate: source}, nil
}

func newCertificateSource(env *Env, specs []componentSpec, restConfig *rest.Config, scheme *runtime.Scheme) (certificateSource, error) {
	w := env.Config.Webhook
	if w.Mode == config.WebhookMounted || w.Mode == config.WebhookAuto && certs.IsMounted(w.CertDir) {
		mounted, err := certs.NewMounted(w.CertDir)
		if err != nil {
			return nil, fmt.Errorf("%w: mount one, or let the program issue its own with --webhook-cert-mode=self", err)
		}
		return mounted, nil
	}
	// The manager's client does not exist yet.
	uncached, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client of the certificate authority: %w", err)
	}
	options := authorityOptions(env, specs, uncached)
	if options.Dynamic, err = dynamic.NewForConfig(restConfig); err != nil {
		return nil, fmt.Errorf("building the client that watches webhook configurations: %w", err)
	}
	return certs.NewAuthority(options), nil
}

func authorityOptions(env *Env, specs []componentSpec, uncached client.Client) certs.Options {
	options := certs.Options{
		Client:   uncached,
		Secret:   types.NamespacedName{Namespace: env.Config.OperatorNamespace, Name: webhookSecret},
		Labels:   map[string]string{names.OperatorLabel: names.OperatorName},
		DNSNames: serviceNames(env.Config),
		Clock:    env.Clock,
		Log:      ctrl.Log.WithName("certs"),
	}
	for _, spec := range specs {
		for _, target := range spec.CABundleTargets {
			target.Optional, target.Service = !env.Config.Enabled(spec.Name), webhookService
			options.Targets = append(options.Targets, target)
		}
	}
	return options
}

// serviceNames returns the DNS names of the webhook and metrics Services. ServiceMonitors use the metrics name without a namespace, because
// manifests do not know the namespace. This is safe, because the CA signs only this certificate.
func serviceNames(cfg config.Config) []string {
	base, metrics := webhookService+"."+cfg.OperatorNamespace, metricsService+"."+cfg.OperatorNamespace
	return []string{base + ".svc", base + ".svc.cluster.local", base, metrics + ".svc", metrics, metricsService}
}

// setMetricsCertificate makes a secure metrics server without a configured certificate use the self-signed one, whose CA scrapers can read.
func (w webhooks) setMetricsCertificate(options *metricsserver.Options) {
	self, ok := w.certificate.(*certs.Authority)
	if !ok || !options.SecureServing || options.CertDir != "" {
		return
	}
	options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = self.GetCertificate })
}

// addToManager adds the certificate, and the readiness checks of the server and of a self-signed certificate.
func (w webhooks) addToManager(mgr ctrl.Manager) error {
	if w.server == nil {
		return nil
	}
	// The check of the server succeeds only with a certificate, so that ready endpoints accept connections.
	errs := []error{mgr.Add(w.certificate), mgr.AddReadyzCheck("webhook-server", w.server.StartedChecker())}
	if self, ok := w.certificate.(*certs.Authority); ok {
		errs = append(errs, mgr.AddReadyzCheck("webhook-certificate", self.Ready))
	}
	return errors.Join(errs...)
}
