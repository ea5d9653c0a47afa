package servingcert

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// testIssuer is an Issuer with a fake API server and clock. It counts requests.
type testIssuer struct {
	*testing.T
	*Issuer
	server        client.Client
	clock         *clocktesting.FakeClock
	owner         *mlflowv1.MLflow
	spec          Spec
	reads, writes int
	readErr       error
}

func newTestIssuer(t *testing.T, existing ...client.Object) *testIssuer {
	t.Helper()
	b := &testIssuer{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		owner: &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "owner-uid"}},
		spec:  Spec{Namespace: "ns", Name: "serving", CACommonName: "a-ca", Service: "server", Labels: map[string]string{"app": "server"}}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, mlflowv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(existing...).WithObjects(b.owner.DeepCopy()).
		WithIndex(&mlflowv1.MLflow{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	b.server = server
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isSecret := o.(*corev1.Secret); isSecret {
				b.reads++
			}
			if b.readErr != nil {
				return b.readErr
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	writing := interceptor.NewClient(server, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			b.writes++
			return c.Apply(ctx, o, opts...)
		},
	})
	b.Issuer = &Issuer{Cached: server, Live: live, Clock: b.clock,
		Applier: apply.New(apply.Options{Client: writing, Live: live, FieldOwner: "test", Component: "test"})}
	return b
}

// ensure calls Ensure and returns the time until the next renewal, or 0 without one.
func (b *testIssuer) ensure() time.Duration {
	b.Helper()
	if err := b.Ensure(b.Context(), b.owner, b.spec); err != nil {
		b.Fatal(err)
	}
	err := b.AwaitRenewal(b.owner.UID)
	if err == nil {
		return 0
	}
	wait, ok := reconciler.AsWait(err)
	if !ok {
		b.Fatal(err)
	}
	return wait.Retry
}

func (b *testIssuer) secret() *corev1.Secret {
	b.Helper()
	s := &corev1.Secret{}
	if err := b.server.Get(b.Context(), client.ObjectKey{Namespace: "ns", Name: "serving"}, s); err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *testIssuer) update(s *corev1.Secret) {
	b.Helper()
	if err := b.server.Update(b.Context(), s, client.FieldOwner("user")); err != nil {
		b.Fatal(err)
	}
}

func (b *testIssuer) remove(s *corev1.Secret) {
	b.Helper()
	if err := b.server.Delete(b.Context(), s); err != nil {
		b.Fatal(err)
	}
}

func TestEnsureIssuesOnce(t *testing.T) {
	b := newTestIssuer(t)
	b.ensure()
	s := b.secret()
	if s.Type != corev1.SecretTypeTLS || !metav1.IsControlledBy(s, b.owner) || s.Labels["app"] != "server" || len(s.Data) != 3 {
		t.Errorf("got type %s, owners %v, labels %v, %d keys", s.Type, s.OwnerReferences, s.Labels, len(s.Data))
	}
	b.ensure() // reads the written Secret once
	reads, writes := b.reads, b.writes
	if remaining := b.ensure(); remaining < Lifetime/2 || b.reads != reads || b.writes != writes || writes != 1 {
		t.Errorf("steady state: renewal in %s, %d reads, %d writes", remaining, b.reads-reads, b.writes-writes)
	}
	b.Forget(b.owner.UID)
	if err := b.AwaitRenewal(b.owner.UID); err != nil {
		t.Errorf("a renewal is pending after Forget: %v", err)
	}
	if b.ensure(); b.writes != writes {
		t.Error("a valid certificate was replaced after Forget")
	}
}

func TestEnsureRenewsInTime(t *testing.T) {
	b := newTestIssuer(t)
	b.ensure()
	before := b.secret().Data
	remaining := b.ensure()
	b.clock.Step(remaining - time.Minute)
	if remainingAgain := b.ensure(); remainingAgain != time.Minute || !bytes.Equal(b.secret().Data["tls.crt"], before["tls.crt"]) {
		t.Errorf("a minute before the renewal: renewal in %s, want 1m0s and the same certificate", remainingAgain)
	}
	b.clock.Step(time.Minute)
	b.ensure()
	after := b.secret().Data
	if bytes.Equal(after["tls.crt"], before["tls.crt"]) || !bytes.Contains(after["ca.crt"], before["ca.crt"]) {
		t.Error("want the certificate renewed, and its previous CA kept in the bundle")
	}
}

// The CA of the certificate that pods still serve stays in the bundle for a limited time, even if the Secret was deleted.
func TestCABundleKeepsCAOfDeletedSecret(t *testing.T) {
	for name, change := range map[string]func(*testIssuer, *corev1.Secret){
		"deleted": func(b *testIssuer, s *corev1.Secret) { b.remove(s) },
		"emptied": func(b *testIssuer, s *corev1.Secret) { s.Data = nil; b.update(s) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestIssuer(t)
			b.ensure()
			before := b.secret()
			change(b, before.DeepCopy())
			b.ensure()
			after := b.secret().Data["ca.crt"]
			if got := b.CABundle(b.owner.UID, "serving"); bytes.Contains(after, before.Data["ca.crt"]) || !bytes.Equal(got, slices.Concat(after, before.Data["ca.crt"])) {
				t.Errorf("unexpected CA bundle:\n%s", got)
			}
			remaining := b.ensure()
			if remaining > time.Hour {
				t.Errorf("next check in %s, want at most 1h", remaining)
			}
			b.clock.Step(remaining)
			if b.ensure(); !bytes.Equal(b.CABundle(b.owner.UID, "serving"), after) {
				t.Error("the previous CA is still in the bundle")
			}
		})
	}
}

func TestEnsureRepairsSecret(t *testing.T) {
	for name, change := range map[string]func(*testIssuer, *corev1.Secret){
		"invalid key":        func(b *testIssuer, s *corev1.Secret) { s.Data["tls.key"] = []byte("x"); b.update(s) },
		"owner removed":      func(b *testIssuer, s *corev1.Secret) { s.OwnerReferences = nil; b.update(s) },
		"other Service":      func(b *testIssuer, _ *corev1.Secret) { b.spec.Service = "other"; b.Forget(b.owner.UID) },
		"Secret deleted":     func(b *testIssuer, s *corev1.Secret) { b.remove(s) },
		"all labels removed": func(b *testIssuer, s *corev1.Secret) { s.Labels = nil; b.update(s) },
		"label removed":      func(b *testIssuer, s *corev1.Secret) { delete(s.Labels, "app"); b.update(s) },
		"label changed":      func(b *testIssuer, s *corev1.Secret) { s.Labels["app"] = "other"; b.update(s) },
		"labels and owner removed": func(b *testIssuer, s *corev1.Secret) {
			s.Labels, s.OwnerReferences = nil, nil
			b.update(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestIssuer(t)
			b.ensure()
			b.ensure()
			change(b, b.secret())
			b.ensure()
			if s := b.secret(); b.writes != 2 || !metav1.IsControlledBy(s, b.owner) || !apply.HasComponentLabels(s, "test") || s.Labels["app"] != "server" || bytes.Equal(s.Data["tls.key"], []byte("x")) {
				t.Errorf("got %d writes, owners %v, labels %v", b.writes, s.OwnerReferences, s.Labels)
			}
			if b.ensure(); b.writes != 2 {
				t.Errorf("%d writes, want none in the steady state", b.writes)
			}
		})
	}
}

func TestEnsureKeepsForeignSecret(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "serving"}, Data: map[string][]byte{"tls.crt": []byte("x")}}
	another := foreign.DeepCopy()
	another.Labels = names.Labels("mlflow")
	for name, existing := range map[string]*corev1.Secret{"without a label": foreign, "of another component": another} {
		b := newTestIssuer(t, existing.DeepCopy())
		b.ensure()
		if remaining := b.ensure(); remaining != 0 || b.reads != 1 || b.writes != 0 {
			t.Errorf("%s: renewal in %s, %d reads, %d writes", name, remaining, b.reads, b.writes)
		}
	}
	t.Run("not in the cache yet", func(t *testing.T) {
		b := newTestIssuer(t, foreign.DeepCopy())
		b.Cached = newTestIssuer(t).server
		if b.ensure(); b.writes != 0 {
			t.Error("the foreign Secret was written")
		}
	})
}

func TestEnsureReturnsErrors(t *testing.T) {
	b := newTestIssuer(t)
	b.readErr = errors.New("connection refused")
	if err := b.Ensure(t.Context(), b.owner, b.spec); !errors.Is(err, b.readErr) {
		t.Errorf("got error %v", err)
	}
	if err := b.AwaitRenewal(b.owner.UID); err != nil {
		t.Errorf("a renewal is pending without a certificate: %v", err)
	}
}

// foreignCertificate returns a certificate for the same name that another CA issued.
func (b *testIssuer) foreignCertificate(authority string, lifetime time.Duration) map[string][]byte {
	b.Helper()
	serving, err := certs.EnsureServing(nil, certs.ServingOptions{CACommonName: authority, DNSNames: []string{"server.ns.svc"}, Lifetime: lifetime}, b.clock.Now())
	if err != nil {
		b.Fatal(err)
	}
	return serving.Data
}

// A foreign certificate is not renewed, even in a managed Secret. After its expiry is reported, no reconcile is scheduled.
func TestEnsureReportsExpiringForeignCertificate(t *testing.T) {
	const lifetime = 90 * 24 * time.Hour
	for name, labelled := range map[string]bool{"managed Secret": true, "Secret without labels": false} {
		t.Run(name, func(t *testing.T) {
			b := newTestIssuer(t)
			b.ensure()
			foreign := b.secret()
			foreign.Data = b.foreignCertificate("team", lifetime)
			if !labelled {
				foreign.Labels = nil
			}
			b.update(foreign)
			remaining := b.ensure()
			if b.writes != 1 || !bytes.Equal(b.secret().Data["tls.crt"], foreign.Data["tls.crt"]) {
				t.Error("the foreign certificate was replaced")
			}
			if remaining < lifetime-expiryWarning || remaining > lifetime || len(b.owner.Status.Conditions) != 0 {
				t.Errorf("next check in %s, conditions %v", remaining, b.owner.Status.Conditions)
			}
			b.clock.Step(remaining)
			if remaining := b.ensure(); remaining != 0 {
				t.Errorf("requeue after %s, want none once the expiry is reported", remaining)
			}
			if c, _ := conditions.Get(b.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || !strings.Contains(c.Message, "delete the Secret") {
				t.Errorf("got condition %+v", c)
			}
			renewed := b.secret()
			renewed.Data = b.foreignCertificate("team", lifetime)
			b.update(renewed)
			if b.ensure(); len(b.owner.Status.Conditions) != 0 {
				t.Errorf("got conditions %v", b.owner.Status.Conditions)
			}
		})
	}
}

// A restored certificate with another field manager is renewed.
func TestEnsureRenewsRestoredCertificate(t *testing.T) {
	b := newTestIssuer(t)
	b.ensure()
	before := b.secret()
	b.remove(before)
	restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "serving", Labels: before.Labels}, Type: before.Type, Data: before.Data}
	if err := b.server.Create(t.Context(), restored, client.FieldOwner("backup")); err != nil {
		t.Fatal(err)
	}
	b.ensure()
	if s := b.secret(); b.writes != 2 || !metav1.IsControlledBy(s, b.owner) || !bytes.Equal(s.Data["tls.crt"], before.Data["tls.crt"]) {
		t.Errorf("got %d writes, owners %v", b.writes, s.OwnerReferences)
	}
	b.clock.Step(b.ensure())
	if b.ensure(); b.writes != 3 {
		t.Error("the restored certificate was not renewed")
	}
}

// The certificates of an owner are renewed independently. Each reports in its own condition.
func TestTwoCertificatesOfOneOwner(t *testing.T) {
	b := newTestIssuer(t)
	database := Spec{Namespace: "ns", Name: "database", CACommonName: "a-ca", Service: "database", Condition: DatabaseCondition}
	ensure := func(specs ...Spec) {
		t.Helper()
		if err := b.Ensure(b.Context(), b.owner, specs...); err != nil {
			t.Fatal(err)
		}
	}
	ensure(b.spec, database)
	foreign := b.secret()
	foreign.Data = b.foreignCertificate("team", 90*24*time.Hour)
	b.update(foreign)
	b.clock.Step(85 * 24 * time.Hour)
	ensure(database, b.spec)
	if c, _ := conditions.Get(b.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || len(b.owner.Status.Conditions) != 1 {
		t.Errorf("got conditions %v", b.owner.Status.Conditions)
	}
	if b.CABundle(b.owner.UID, "serving") != nil || b.CABundle(b.owner.UID, "database") == nil {
		t.Error("want a CA bundle for the issued certificate only")
	}
	b.spec.Condition = DatabaseCondition
	if ensure(database, b.spec); len(b.owner.Status.Conditions) != 1 || b.owner.Status.Conditions[0].Type != DatabaseCondition {
		t.Errorf("got conditions %v", b.owner.Status.Conditions)
	}
	reads := b.reads
	if ensure(database); len(b.owner.Status.Conditions) != 0 || b.reads != reads || b.AwaitRenewal(b.owner.UID) == nil {
		t.Errorf("got %d reads, conditions %v", b.reads-reads, b.owner.Status.Conditions)
	}
	b.readErr = errors.New("connection refused")
	b.clock.Step(2 * Lifetime)
	if err := b.Ensure(b.Context(), b.owner, b.spec, database); !errors.Is(err, b.readErr) || b.CABundle(b.owner.UID, "database") == nil {
		t.Errorf("got error %v", err)
	}
}

// An external Secret is not created. An issued certificate is kept until the external one replaces it or External is reset.
func TestEnsureDoesNotWriteExternalSecret(t *testing.T) {
	b := newTestIssuer(t)
	b.spec.External = true
	if remaining := b.ensure(); remaining != 0 || b.reads != 0 || b.writes != 0 {
		t.Errorf("got renewal in %s, %d reads, %d writes", remaining, b.reads, b.writes)
	}
	b.spec.External = false
	b.ensure()
	b.spec.External = true
	b.clock.Step(2 * Lifetime)
	if remaining := b.ensure(); remaining != 0 || b.writes != 1 {
		t.Errorf("got renewal in %s, %d writes", remaining, b.writes)
	}
	if c, _ := conditions.Get(b.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || strings.Contains(c.Message, "delete the Secret") {
		t.Errorf("got condition %+v", c)
	}
	b.spec.External = false
	if b.ensure(); b.writes != 2 || len(b.owner.Status.Conditions) != 0 {
		t.Errorf("got %d writes, conditions %v", b.writes, b.owner.Status.Conditions)
	}
	b.spec.External = true
	b.clock.Step(2 * Lifetime)
	b.ensure()
	if err := b.Ensure(b.Context(), b.owner); err != nil || len(b.owner.Status.Conditions) != 0 || b.AwaitRenewal(b.owner.UID) != nil {
		t.Errorf("unexpected conditions %v without a certificate", b.owner.Status.Conditions)
	}
}
