package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// series returns the samples of a metric of the operator, by the value of one label.
func series(t *testing.T, name, label string) map[string]*dto.Metric {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.Metric{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			at := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label })
			out[m.GetLabel()[at].GetValue()] = m
		}
	}
	return out
}

func TestBuildInfo(t *testing.T) {
	recordBuildInfo()
	info := series(t, "odh_platform_build_info", "version")[programVersion()]
	if info.GetGauge().GetValue() != 1 {
		t.Fatalf("no build info of %s", programVersion())
	}
	if goVersion := series(t, "odh_platform_build_info", "goversion"); goVersion[runtime.Version()] == nil {
		t.Errorf("got Go versions %v, want %s", goVersion, runtime.Version())
	}
}

// The metrics of controller-runtime count every response as 200, even a rejection.
func TestDecisionsAreCounted(t *testing.T) {
	responses := map[string]admission.Response{
		decisionAllowed: admission.Allowed(""),
		decisionRefused: admission.Denied("no"),
		decisionFailed:  admission.Errored(http.StatusInternalServerError, errors.New("the API server is unreachable")),
	}
	for decision, response := range responses {
		path := "/counted-" + decision
		hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return response })}
		server := instrumentedServer{webhook.NewServer(webhook.Options{})}
		decisionsCounter.DeletePartialMatch(prometheus.Labels{"webhook": path}) // of a previous run
		server.Register(path, hook)
		for range 2 {
			if got := hook.Handler.Handle(t.Context(), admission.Request{}); got.Allowed != response.Allowed {
				t.Errorf("%s: the response was changed: %+v", decision, got)
			}
		}
		counts := map[string]float64{}
		for _, other := range []string{decisionAllowed, decisionRefused, decisionFailed} {
			var m dto.Metric
			if err := decisionsCounter.WithLabelValues(path, other).Write(&m); err != nil {
				t.Fatal(err)
			}
			counts[other] = m.GetCounter().GetValue()
		}
		for other, count := range counts {
			if want := map[bool]float64{true: 2}[other == decision]; count != want {
				t.Errorf("%s: counted %v as %s, want %v", decision, count, other, want)
			}
		}
	}
	if got := decisionOf(admission.Errored(http.StatusBadRequest, errors.New("not JSON"))); got != decisionRefused {
		t.Errorf("malformed request: got %s, want %s", got, decisionRefused)
	}
}

// A panic is counted as failed.
func TestPanicsOfWebhooksAreFailures(t *testing.T) {
	const path = "/counted-panic"
	decisionsCounter.DeletePartialMatch(prometheus.Labels{"webhook": path}) // of a previous run
	hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("oh") })}
	instrumentedServer{webhook.NewServer(webhook.Options{})}.Register(path, hook)
	if response := hook.Handle(t.Context(), admission.Request{}); response.Allowed {
		t.Errorf("a handler that panics returned %+v, want a rejection", response)
	}
	var m dto.Metric
	if err := decisionsCounter.WithLabelValues(path, decisionFailed).Write(&m); err != nil {
		t.Fatal(err)
	}
	if got := m.GetCounter().GetValue(); got != 1 {
		t.Errorf("got %v failures, want 1", got)
	}
}

// A handler that is not an admission webhook, such as the conversion, is registered unchanged.
func TestOtherHooksAreNotWrapped(t *testing.T) {
	server := instrumentedServer{webhook.NewServer(webhook.Options{})}
	server.Register("/convert-counted", http.NotFoundHandler())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/convert-counted", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, pattern := server.WebhookMux().Handler(request); pattern != "/convert-counted" {
		t.Errorf("pattern of the handler %q, want %q", pattern, "/convert-counted")
	}
	if series(t, "odh_platform_webhook_decisions_total", "webhook")["/convert-counted"] != nil {
		t.Error("the conversion webhook has a decision metric")
	}
}

// The metrics server uses the self-signed certificate, unless another one is configured or TLS is disabled.
func TestMetricsServerUsesSelfSignedCertificate(t *testing.T) {
	env := &Env{Config: load(t, "--namespace=here", "--webhook-cert-mode=self"), Clock: clock.RealClock{}}
	hooks, err := newWebhooks(env, specsWithWebhooks(env), &rest.Config{Host: "http://127.0.0.1:1"}, apiruntime.NewScheme(), tlsprofile.NewListener())
	if err != nil {
		t.Fatal(err)
	}
	authority, ok := hooks.certificate.(*certs.Authority)
	if !ok {
		t.Fatalf("got a certificate of type %T, want *certs.Authority", hooks.certificate)
	}
	for _, name := range []string{"odh-platform-operator-metrics", "odh-platform-operator-metrics.here", "odh-platform-operator-metrics.here.svc"} {
		if !slices.Contains(authority.DNSNames, name) {
			t.Errorf("the certificate is not issued for %s: %v", name, authority.DNSNames)
		}
	}
	for name, tc := range map[string]struct {
		hooks   webhooks
		options metricsserver.Options
		want    bool
	}{
		"self-signed":         {hooks, metricsserver.Options{SecureServing: true}, true},
		"another certificate": {hooks, metricsserver.Options{SecureServing: true, CertDir: "/etc/metrics-certs"}, false},
		"without TLS":         {hooks, metricsserver.Options{}, false},
		"mounted":             {webhooks{certificate: &certwatcher.CertWatcher{}}, metricsserver.Options{SecureServing: true}, false},
		"no webhooks":         {webhooks{}, metricsserver.Options{SecureServing: true}, false},
	} {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		tc.hooks.setMetricsCertificate(&tc.options)
		for _, apply := range tc.options.TLSOpts {
			apply(config)
		}
		if got := config.GetCertificate != nil; got != tc.want {
			t.Errorf("%s: uses the self-signed certificate: %v, want %v", name, got, tc.want)
		}
	}
}
