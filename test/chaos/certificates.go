package main

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certificates returns faults of webhooks and of their certificates and CA bundles.
func certificates() []scenario {
	secret := func(name, fault string, restart bool, damage func(*corev1.Secret)) scenario {
		return scenario{name: name, run: func(c *campaign, ctx context.Context) error {
			return c.disturbAdmission(ctx, disturbance{name: name, fault: fault, injections: []string{"SecretDeletion", "ConfigDrift"}, bound: restarted, keepChildren: true,
				begin: func(ctx context.Context) (func(context.Context) error, error) {
					return nil, c.damageSecret(ctx, restart, damage)
				}})
		}}
	}
	overwrite := func(keys ...string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			for _, key := range keys {
				s.Data[key] = []byte("broken")
			}
		}
	}
	return []scenario{
		{name: "wrong-ca", run: (*campaign).setWrongCA},
		secret("certificate-deleted", "the Secret of the webhooks' certificate is deleted", false, nil),
		secret("certificate-deleted-restart", "the Secret is deleted while the manager is down", true, nil),
		secret("ca-key-broken", "the key of the CA is broken", false, overwrite("ca.key")),
		secret("certificate-broken-restart", "certificate and key are broken while the manager is down", true, overwrite("tls.crt", "tls.key")),
		{name: "slow-webhook", run: (*campaign).addSlowWebhook},
	}
}

// disturbAdmission runs a disturbance whose recovery time ends when all webhooks respond.
func (c *campaign) disturbAdmission(ctx context.Context, d disturbance) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	begin := d.begin
	var duration time.Duration
	d.begin = func(ctx context.Context) (func(context.Context) error, error) {
		if _, err := begin(ctx); err != nil {
			return nil, err
		}
		waitStart := c.clock.Now()
		err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return "", c.callWebhooks(ctx) })
		duration = c.clock.Since(waitStart)
		return nil, err
	}
	rows := len(c.report.Rows)
	if err := c.disturb(ctx, d); err != nil || len(c.report.Rows) == rows {
		return err
	}
	r := &c.report.Rows[rows]
	r.Recovery, r.Remark, r.Verdict = duration, "the time until all webhooks answered", ""
	*r = r.setVerdict()
	return nil
}

// callWebhooks calls the webhooks of each custom resource with a dry-run creation. Admission precedes the check whether the object exists.
func (c *campaign) callWebhooks(ctx context.Context) error {
	var errs []error
	for _, f := range c.fixtures {
		errs = append(errs, client.IgnoreAlreadyExists(c.admin.Create(ctx, f.resource().DeepCopy(), client.DryRunAll)))
	}
	return errors.Join(errs...)
}

func (c *campaign) setWrongCA(ctx context.Context) error {
	return c.disturbAdmission(ctx, disturbance{name: "wrong-ca", fault: "all webhook configurations have a wrong CA", injections: []string{"WebhookDisrupt"}, bound: restarted, keepChildren: true,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			foreign := httptest.NewTLSServer(http.NotFoundHandler())
			defer foreign.Close()
			wrong := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: foreign.Certificate().Raw})
			patched := 0
			for _, o := range c.installed.Objects {
				if o.GetKind() != "MutatingWebhookConfiguration" && o.GetKind() != "ValidatingWebhookConfiguration" {
					continue
				}
				live := o.DeepCopy()
				if err := c.admin.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
					return nil, fmt.Errorf("reading a webhook configuration: %w", err)
				}
				hooks, _ := live.Object["webhooks"].([]any)
				for _, hook := range hooks {
					hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = base64.StdEncoding.EncodeToString(wrong)
				}
				if err := c.admin.Update(ctx, live); err != nil {
					return nil, fmt.Errorf("breaking a webhook configuration: %w", err)
				}
				patched++
			}
			if patched == 0 {
				return nil, errors.New("there is no webhook configuration")
			}
			return nil, nil
		}})
}

// damageSecret changes the Secret of the webhook certificate by damage, or deletes it if damage is nil. If restart is true, the manager is
// down during the change.
func (c *campaign) damageSecret(ctx context.Context, restart bool, damage func(*corev1.Secret)) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator-webhook-cert"}}
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	if restart { // a running manager repairs the Secret
		if err := c.manager.Kill(ctx); err != nil {
			return err
		}
	}
	var err error
	if damage == nil {
		err = c.admin.Delete(ctx, secret)
	} else {
		damage(secret)
		err = c.admin.Update(ctx, secret)
	}
	if err == nil && restart {
		err = c.manager.Restart(ctx)
	}
	return err
}

// hookDelay is the delay of the slow webhook, shorter than its timeout.
const hookDelay = 3 * time.Second

// addSlowWebhook adds a webhook that delays writes, like a webhook of another operator.
func (c *campaign) addSlowWebhook(ctx context.Context) error {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-c.clock.After(hookDelay):
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler) // failurePolicy Ignore admits the write
	}))
	defer hook.Close()
	_, port, err := net.SplitHostPort(hook.Listener.Addr().String())
	if err != nil {
		return err
	}
	anything := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"", "apps", "networking.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"services", "deployments", "configmaps", "networkpolicies"}},
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "chaos"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "slow.chaos.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Ignore), TimeoutSeconds: new(int32(10)), Rules: []admissionregistrationv1.RuleWithOperations{anything},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:" + port), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}}}},
		}},
	}
	return c.disturb(ctx, disturbance{name: "slow-webhook", fault: "a webhook of another operator takes 3 s for each write", injections: []string{"WebhookLatency"}, duration: 2 * stormTime, bound: prompt,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			if err := c.admin.Create(ctx, configuration); err != nil {
				return nil, fmt.Errorf("adding a webhook: %w", err)
			}
			return func(ctx context.Context) error { return c.admin.Delete(ctx, configuration) }, nil
		}})
}
