package takeover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func clientConfig(service string) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "old", Name: service}}
}

// configurations returns the configurations after an apply by this operator, which keeps the webhooks of other field managers.
func configurations() []client.Object {
	return []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingConfiguration}, Webhooks: []admissionv1.MutatingWebhook{
			{Name: "mraycluster.ray.openshift.ai", ClientConfig: clientConfig("odh-platform-operator-webhook")},
			{Name: "mappwrapper.kb.io", ClientConfig: clientConfig(webhookService)},
			{Name: "by-url", ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://x")}},
		}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingConfiguration}, Webhooks: []admissionv1.ValidatingWebhook{
			{Name: "vappwrapper.kb.io", ClientConfig: clientConfig(webhookService)},
			{Name: "vraycluster.ray.openshift.ai", ClientConfig: clientConfig("odh-platform-operator-webhook")},
		}},
	}
}

func webhookNames(t *testing.T, reader client.Reader) []string {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(reader.Get(t.Context(), client.ObjectKey{Name: mutatingConfiguration}, mutating), reader.Get(t.Context(), client.ObjectKey{Name: validatingConfiguration}, validating)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, w := range mutating.Webhooks {
		out = append(out, w.Name)
	}
	for _, w := range validating.Webhooks {
		out = append(out, w.Name)
	}
	return out
}

var remainingWebhooks = []string{"mraycluster.ray.openshift.ai", "by-url", "vraycluster.ray.openshift.ai"}

// Only webhooks of the CodeFlare operator are removed, after its Service is deleted.
func TestWebhookCleanerRemovesWebhooksWithoutService(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configurations()...).Build()
	cleaner := &webhookCleaner{apiReader: c, writer: c, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), log: logr.Discard()}
	if err := cleaner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := webhookNames(t, c); !slices.Equal(got, remainingWebhooks) {
		t.Errorf("remaining webhooks %q, want %q", got, remainingWebhooks)
	}
}

func TestWebhookCleanerReturnsWithoutWebhooks(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	cleaner := &webhookCleaner{apiReader: c, writer: c, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), log: logr.Discard()}
	if remaining, err := cleaner.clean(t.Context()); remaining != 0 || err != nil {
		t.Errorf("%d webhooks remain, error %v", remaining, err)
	}
}

// While the Service exists, the webhooks are retained and checked periodically.
func TestWebhookCleanerKeepsWebhooksWithService(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "old", Name: webhookService}}
	c := fake.NewClientBuilder().WithObjects(append(configurations(), service)...).Build()
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	cleaner := &webhookCleaner{apiReader: c, writer: c, clock: clk, log: logr.Discard()}
	done := make(chan error, 1)
	go func() { done <- cleaner.Start(t.Context()) }()
	waitForTimer(t, clk)
	if got := webhookNames(t, c); len(got) != 5 {
		t.Errorf("got webhooks %q, want all 5", got)
	}
	if err := c.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	clk.Step(webhookInterval)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := webhookNames(t, c); !slices.Equal(got, remainingWebhooks) {
		t.Errorf("remaining webhooks %q, want %q", got, remainingWebhooks)
	}
}

func TestWebhookCleanerRetries(t *testing.T) {
	requestErr := errors.New("refused")
	c := fake.NewClientBuilder().WithObjects(configurations()...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if requestErr != nil {
				return requestErr
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	cleaner := &webhookCleaner{apiReader: c, writer: c, clock: clk, log: logr.Discard()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cleaner.Start(ctx) }()
	waitForTimer(t, clk)
	requestErr = nil
	clk.Step(webhookInterval)
	if err := <-done; err != nil {
		t.Error(err)
	}
	cancel()
	if got := webhookNames(t, c); !slices.Equal(got, remainingWebhooks) {
		t.Errorf("remaining webhooks %q, want %q", got, remainingWebhooks)
	}
}

func waitForTimer(t *testing.T, clk *clocktesting.FakeClock) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !clk.HasWaiters() {
		select {
		case <-deadline:
			t.Fatal("timed out waiting for a timer of the clock")
		case <-tick.C:
		}
	}
}
