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

// testIssuer is an Issuer with a fake API server and clock. It counts live reads and applies of Secrets.
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
	env := &testIssuer{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		owner: &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "owner-uid"}},
		spec:  Spec{Namespace: "ns", Name: "serving", CACommonName: "a-ca", Service: "server", Labels: map[string]string{"app": "server"}}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, mlflowv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(existing...).WithObjects(env.owner.DeepCopy()).
		WithIndex(&mlflowv1.MLflow{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	env.server = server
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isSecret := o.(*corev1.Secret); isSecret {
				env.reads++
			}
			if env.readErr != nil {
				return env.readErr
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	writing := interceptor.NewClient(server, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			env.writes++
			return c.Apply(ctx, o, opts...)
		},
	})
	env.Issuer = &Issuer{Cached: server, Live: live, Clock: env.clock,
		Applier: apply.New(apply.Options{Client: writing, Live: live, FieldOwner: "test", Component: "test"})}
	return env
}

// ensure calls Ensure and returns the time until the next renewal, or 0 without one.
func (env *testIssuer) ensure() time.Duration {
	env.Helper()
	if err := env.Ensure(env.Context(), env.owner, env.spec); err != nil {
		env.Fatal(err)
	}
	err := env.AwaitRenewal(env.owner.UID)
	if err == nil {
		return 0
	}
	wait, ok := reconciler.AsWait(err)
	if !ok {
		env.Fatal(err)
	}
	return wait.Retry
}

func (env *testIssuer) secret() *corev1.Secret {
	env.Helper()
	s := &corev1.Secret{}
	if err := env.server.Get(env.Context(), client.ObjectKey{Namespace: "ns", Name: "serving"}, s); err != nil {
		env.Fatal(err)
	}
	return s
}

func (env *testIssuer) update(s *corev1.Secret) {
	env.Helper()
	if err := env.server.Update(env.Context(), s, client.FieldOwner("user")); err != nil {
		env.Fatal(err)
	}
}

func (env *testIssuer) remove(s *corev1.Secret) {
	env.Helper()
	if err := env.server.Delete(env.Context(), s); err != nil {
		env.Fatal(err)
	}
}

func TestEnsureIssuesOnce(t *testing.T) {
	env := newTestIssuer(t)
	env.ensure()
	s := env.secret()
	if s.Type != corev1.SecretTypeTLS || !metav1.IsControlledBy(s, env.owner) || s.Labels["app"] != "server" || len(s.Data) != 3 {
		t.Errorf("got type %s, owners %v, labels %v, %d keys", s.Type, s.OwnerReferences, s.Labels, len(s.Data))
	}
	env.ensure() // reads the written Secret once
	reads, writes := env.reads, env.writes
	if remaining := env.ensure(); remaining < Lifetime/2 || env.reads != reads || env.writes != writes || writes != 1 {
		t.Errorf("steady state: renewal in %s, %d reads, %d writes", remaining, env.reads-reads, env.writes-writes)
	}
	env.Forget(env.owner.UID)
	if err := env.AwaitRenewal(env.owner.UID); err != nil {
		t.Errorf("a renewal is pending after Forget: %v", err)
	}
	if env.ensure(); env.writes != writes {
		t.Error("a valid certificate was replaced after Forget")
	}
}

func TestEnsureRenewsInTime(t *testing.T) {
	env := newTestIssuer(t)
	env.ensure()
	before := env.secret().Data
	remaining := env.ensure()
	env.clock.Step(remaining - time.Minute)
	if remainingAgain := env.ensure(); remainingAgain != time.Minute || !bytes.Equal(env.secret().Data["tls.crt"], before["tls.crt"]) {
		t.Errorf("a minute before the renewal: renewal in %s, want 1m0s and the same certificate", remainingAgain)
	}
	env.clock.Step(time.Minute)
	env.ensure()
	after := env.secret().Data
	if bytes.Equal(after["tls.crt"], before["tls.crt"]) || !bytes.Contains(after["ca.crt"], before["ca.crt"]) {
		t.Error("want the certificate renewed, and its previous CA kept in the bundle")
	}
}

// The CA of the certificate that pods still serve stays in the bundle for a limited time, even if the Secret was deleted or emptied.
func TestCABundleKeepsCAOfDeletedSecret(t *testing.T) {
	for name, change := range map[string]func(*testIssuer, *corev1.Secret){
		"deleted": func(env *testIssuer, s *corev1.Secret) { env.remove(s) },
		"emptied": func(env *testIssuer, s *corev1.Secret) { s.Data = nil; env.update(s) },
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestIssuer(t)
			env.ensure()
			before := env.secret()
			change(env, before.DeepCopy())
			env.ensure()
			after := env.secret().Data["ca.crt"]
			if got := env.CABundle(env.owner.UID, "serving"); bytes.Contains(after, before.Data["ca.crt"]) || !bytes.Equal(got, slices.Concat(after, before.Data["ca.crt"])) {
				t.Errorf("unexpected CA bundle:\n%s", got)
			}
			remaining := env.ensure()
			if remaining > time.Hour {
				t.Errorf("next check in %s, want at most 1h", remaining)
			}
			env.clock.Step(remaining)
			if env.ensure(); !bytes.Equal(env.CABundle(env.owner.UID, "serving"), after) {
				t.Error("the previous CA is still in the bundle")
			}
		})
	}
}

func TestEnsureRepairsSecret(t *testing.T) {
	for name, change := range map[string]func(*testIssuer, *corev1.Secret){
		"invalid key":        func(env *testIssuer, s *corev1.Secret) { s.Data["tls.key"] = []byte("x"); env.update(s) },
		"owner removed":      func(env *testIssuer, s *corev1.Secret) { s.OwnerReferences = nil; env.update(s) },
		"other Service":      func(env *testIssuer, _ *corev1.Secret) { env.spec.Service = "other"; env.Forget(env.owner.UID) },
		"Secret deleted":     func(env *testIssuer, s *corev1.Secret) { env.remove(s) },
		"all labels removed": func(env *testIssuer, s *corev1.Secret) { s.Labels = nil; env.update(s) },
		"label removed":      func(env *testIssuer, s *corev1.Secret) { delete(s.Labels, "app"); env.update(s) },
		"label changed":      func(env *testIssuer, s *corev1.Secret) { s.Labels["app"] = "other"; env.update(s) },
		"labels and owner removed": func(env *testIssuer, s *corev1.Secret) {
			s.Labels, s.OwnerReferences = nil, nil
			env.update(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestIssuer(t)
			env.ensure()
			env.ensure()
			change(env, env.secret())
			env.ensure()
			if s := env.secret(); env.writes != 2 || !metav1.IsControlledBy(s, env.owner) || !apply.HasComponentLabels(s, "test") || s.Labels["app"] != "server" || bytes.Equal(s.Data["tls.key"], []byte("x")) {
				t.Errorf("got %d writes, owners %v, labels %v", env.writes, s.OwnerReferences, s.Labels)
			}
			if env.ensure(); env.writes != 2 {
				t.Errorf("got %d writes, want no further write in the steady state", env.writes)
			}
		})
	}
}

func TestEnsureKeepsForeignSecret(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "serving"}, Data: map[string][]byte{"tls.crt": []byte("x")}}
	another := foreign.DeepCopy()
	another.Labels = names.Labels("mlflow")
	for name, existing := range map[string]*corev1.Secret{"without a label": foreign, "of another component": another} {
		env := newTestIssuer(t, existing.DeepCopy())
		env.ensure()
		if remaining := env.ensure(); remaining != 0 || env.reads != 1 || env.writes != 0 {
			t.Errorf("%s: renewal in %s, %d reads, %d writes", name, remaining, env.reads, env.writes)
		}
	}
	t.Run("not in the cache yet", func(t *testing.T) {
		env := newTestIssuer(t, foreign.DeepCopy())
		env.Cached = newTestIssuer(t).server
		if env.ensure(); env.writes != 0 {
			t.Error("the foreign Secret was written")
		}
	})
}

func TestEnsureReturnsErrors(t *testing.T) {
	env := newTestIssuer(t)
	env.readErr = errors.New("connection refused")
	if err := env.Ensure(t.Context(), env.owner, env.spec); !errors.Is(err, env.readErr) {
		t.Errorf("got error %v, want %v", err, env.readErr)
	}
	if err := env.AwaitRenewal(env.owner.UID); err != nil {
		t.Errorf("a renewal is pending without a certificate: %v", err)
	}
}

// foreignCertificate returns the data of a Secret with a certificate for the same Service that another CA issued.
func (env *testIssuer) foreignCertificate(authority string, lifetime time.Duration) map[string][]byte {
	env.Helper()
	serving, err := certs.EnsureServing(nil, certs.ServingOptions{CACommonName: authority, DNSNames: []string{"server.ns.svc"}, Lifetime: lifetime}, env.clock.Now())
	if err != nil {
		env.Fatal(err)
	}
	return serving.Data
}

// A foreign certificate is not renewed, even in a managed Secret. After its expiry is reported, no reconcile is scheduled.
func TestEnsureReportsExpiringForeignCertificate(t *testing.T) {
	const lifetime = 90 * 24 * time.Hour
	for name, labelled := range map[string]bool{"managed Secret": true, "Secret without labels": false} {
		t.Run(name, func(t *testing.T) {
			env := newTestIssuer(t)
			env.ensure()
			foreign := env.secret()
			foreign.Data = env.foreignCertificate("team", lifetime)
			if !labelled {
				foreign.Labels = nil
			}
			env.update(foreign)
			remaining := env.ensure()
			if env.writes != 1 || !bytes.Equal(env.secret().Data["tls.crt"], foreign.Data["tls.crt"]) {
				t.Error("the foreign certificate was replaced")
			}
			if remaining < lifetime-expiryWarning || remaining > lifetime || len(env.owner.Status.Conditions) != 0 {
				t.Errorf("next check in %s, conditions %v", remaining, env.owner.Status.Conditions)
			}
			env.clock.Step(remaining)
			if remaining := env.ensure(); remaining != 0 {
				t.Errorf("requeue after %s, want none once the expiry is reported", remaining)
			}
			if c, _ := conditions.Get(env.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || !strings.Contains(c.Message, "delete the Secret") {
				t.Errorf("got condition %+v", c)
			}
			renewed := env.secret()
			renewed.Data = env.foreignCertificate("team", lifetime)
			env.update(renewed)
			if env.ensure(); len(env.owner.Status.Conditions) != 0 {
				t.Errorf("got conditions %v", env.owner.Status.Conditions)
			}
		})
	}
}

// A restored certificate with another field manager is renewed.
func TestEnsureRenewsRestoredCertificate(t *testing.T) {
	env := newTestIssuer(t)
	env.ensure()
	before := env.secret()
	env.remove(before)
	restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "serving", Labels: before.Labels}, Type: before.Type, Data: before.Data}
	if err := env.server.Create(t.Context(), restored, client.FieldOwner("backup")); err != nil {
		t.Fatal(err)
	}
	env.ensure()
	if s := env.secret(); env.writes != 2 || !metav1.IsControlledBy(s, env.owner) || !bytes.Equal(s.Data["tls.crt"], before.Data["tls.crt"]) {
		t.Errorf("got %d writes, owners %v", env.writes, s.OwnerReferences)
	}
	env.clock.Step(env.ensure())
	if env.ensure(); env.writes != 3 {
		t.Error("the restored certificate was not renewed")
	}
}

// Each certificate of an owner has its own condition and CA bundle. The condition of a certificate that is no longer desired is removed.
func TestTwoCertificatesOfOneOwner(t *testing.T) {
	env := newTestIssuer(t)
	database := Spec{Namespace: "ns", Name: "database", CACommonName: "a-ca", Service: "database", Condition: DatabaseCondition}
	ensure := func(specs ...Spec) {
		t.Helper()
		if err := env.Ensure(env.Context(), env.owner, specs...); err != nil {
			t.Fatal(err)
		}
	}
	ensure(env.spec, database)
	foreign := env.secret()
	foreign.Data = env.foreignCertificate("team", 90*24*time.Hour)
	env.update(foreign)
	env.clock.Step(85 * 24 * time.Hour)
	ensure(database, env.spec)
	if c, _ := conditions.Get(env.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || len(env.owner.Status.Conditions) != 1 {
		t.Errorf("got conditions %v", env.owner.Status.Conditions)
	}
	if env.CABundle(env.owner.UID, "serving") != nil || env.CABundle(env.owner.UID, "database") == nil {
		t.Error("want a CA bundle for the issued certificate only")
	}
	env.spec.Condition = DatabaseCondition
	if ensure(database, env.spec); len(env.owner.Status.Conditions) != 1 || env.owner.Status.Conditions[0].Type != DatabaseCondition {
		t.Errorf("got conditions %v", env.owner.Status.Conditions)
	}
	reads := env.reads
	if ensure(database); len(env.owner.Status.Conditions) != 0 || env.reads != reads || env.AwaitRenewal(env.owner.UID) == nil {
		t.Errorf("got %d reads, conditions %v", env.reads-reads, env.owner.Status.Conditions)
	}
	env.readErr = errors.New("connection refused")
	env.clock.Step(2 * Lifetime)
	err := env.Ensure(env.Context(), env.owner, env.spec, database)
	if !errors.Is(err, env.readErr) || env.CABundle(env.owner.UID, "database") == nil {
		t.Errorf("got error %v", err)
	}
}

// An external Secret is not created. An issued certificate is kept until the external one replaces it or External is reset.
func TestEnsureDoesNotWriteExternalSecret(t *testing.T) {
	env := newTestIssuer(t)
	env.spec.External = true
	if remaining := env.ensure(); remaining != 0 || env.reads != 0 || env.writes != 0 {
		t.Errorf("got renewal in %s, %d reads, %d writes", remaining, env.reads, env.writes)
	}
	env.spec.External = false
	env.ensure()
	env.spec.External = true
	env.clock.Step(2 * Lifetime)
	if remaining := env.ensure(); remaining != 0 || env.writes != 1 {
		t.Errorf("got renewal in %s, %d writes", remaining, env.writes)
	}
	if c, _ := conditions.Get(env.owner.Status.Conditions, Condition); c.Reason != ReasonExpires || strings.Contains(c.Message, "delete the Secret") {
		t.Errorf("got condition %+v", c)
	}
	env.spec.External = false
	if env.ensure(); env.writes != 2 || len(env.owner.Status.Conditions) != 0 {
		t.Errorf("got %d writes, conditions %v", env.writes, env.owner.Status.Conditions)
	}
	env.spec.External = true
	env.clock.Step(2 * Lifetime)
	env.ensure()
	err := env.Ensure(env.Context(), env.owner)
	if err != nil || len(env.owner.Status.Conditions) != 0 || env.AwaitRenewal(env.owner.UID) != nil {
		t.Errorf("unexpected conditions %v without a certificate", env.owner.Status.Conditions)
	}
}
