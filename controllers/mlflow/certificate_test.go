package mlflow

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// authority is the part of the reconciler that keeps the certificate, on a fake API server and clock.
type authority struct {
	*objects
	t             *testing.T
	clock         *clienttesting.FakeClock
	in            Inputs
	reads, writes int
	fail          error
}

func newAuthority(t *testing.T, existing ...client.Object) *authority {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, mlflowv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &authority{t: t, clock: clienttesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), in: platformInputs["plain"]}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithReturnManagedFields().Build()
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isSecret := o.(*corev1.Secret); isSecret {
				a.reads++
			}
			if a.fail != nil {
				return a.fail
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	writer := interceptor.NewClient(server, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			a.writes++
			return c.Apply(ctx, o, opts...)
		},
	})
	a.objects = &objects{
		cached: server, live: live, clock: a.clock, inputs: func() Inputs { return a.in }, references: reference.NewTracker(server, live),
		applier: apply.New(apply.Options{Client: writer, Live: live, FieldOwner: FieldOwner, Component: ComponentName}),
	}
	return a
}

// pass runs the two phases and returns for how long nothing is due, 0 when for ever.
func (a *authority) pass(m *mlflowv1.MLflow) time.Duration {
	a.t.Helper()
	if err := a.keepCertificate(a.t.Context(), m); err != nil {
		a.t.Fatalf("unexpected error: %v", err)
	}
	err := a.awaitRenewal(a.t.Context(), m)
	if err == nil {
		return 0
	}
	wait, ok := errors.AsType[*reconciler.Wait](err)
	if !ok {
		a.t.Fatalf("unexpected error: %v", err)
	}
	return wait.Retry
}

func (a *authority) secret() *corev1.Secret {
	a.t.Helper()
	s := &corev1.Secret{}
	if err := a.cached.Get(a.t.Context(), client.ObjectKey{Namespace: a.in.Namespace, Name: tlsSecretName}, s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

func (a *authority) absent() bool {
	return a.cached.Get(a.t.Context(), client.ObjectKey{Namespace: a.in.Namespace, Name: tlsSecretName}, &corev1.Secret{}) != nil
}

func withMode(mode mlflowv1.TLSMode) func(*mlflowv1.MLflowSpec) {
	return func(s *mlflowv1.MLflowSpec) { s.TLS = &mlflowv1.TLSConfig{Mode: mode} }
}

func TestCertificateIsIssued(t *testing.T) {
	for name, m := range map[string]*mlflowv1.MLflow{
		"no word about TLS": server(), "an empty block": server(withMode("")), "automatic": server(withMode(mlflowv1.TLSAutomatic)),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.pass(m)
			s := a.secret()
			if s.Type != corev1.SecretTypeTLS || !metav1.IsControlledBy(s, m) || s.Labels[labelApp] != "mlflow" || len(s.Data) != 3 {
				t.Errorf("type %s, owners %v, labels %v, %d keys", s.Type, s.OwnerReferences, s.Labels, len(s.Data))
			}
			a.pass(m) // reads what was written, once
			reads, writes := a.reads, a.writes
			if pause := a.pass(m); pause < certificateLifetime/2 || a.reads != reads || a.writes != writes || writes != 1 {
				t.Errorf("at rest: pause %s, %d reads, %d writes", pause, a.reads-reads, a.writes-writes)
			}
		})
	}
}

func TestCertificateIsRenewedInTime(t *testing.T) {
	a, m := newAuthority(t), server()
	a.pass(m)
	before := a.secret().Data
	pause := a.pass(m)
	a.clock.Step(pause - time.Minute)
	if rest := a.pass(m); rest != time.Minute || !bytes.Equal(a.secret().Data["tls.crt"], before["tls.crt"]) {
		t.Errorf("a minute early: pause %s", rest)
	}
	a.clock.Step(time.Minute)
	a.pass(m)
	after := a.secret().Data
	if bytes.Equal(after["tls.crt"], before["tls.crt"]) || !bytes.Contains(after["ca.crt"], before["ca.crt"]) {
		t.Error("not renewed, or clients with the new bundle do not trust the old certificate")
	}
	if a.pass(m) < certificateLifetime/2 || a.writes != 2 {
		t.Errorf("%d writes", a.writes)
	}
}

func TestCertificateIsMadeAgain(t *testing.T) {
	a, m := newAuthority(t), server()
	a.pass(m)
	first := a.secret()
	damaged := first.DeepCopy()
	damaged.Data["tls.key"] = []byte("x")
	if err := a.cached.Update(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	a.pass(m)
	if bytes.Equal(a.secret().Data["tls.key"], []byte("x")) {
		t.Error("the damage stays")
	}
	if err := a.cached.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	a.pass(m)
	if a.absent() {
		t.Error("it is not made again")
	}
	a.forget(m.UID)
	if _, known := a.certificateOf(m); known {
		t.Error("something is remembered of an MLflow that is gone")
	}
}

func TestCertificateOfOthersIsLeftAlone(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: tlsSecretName}, Data: map[string][]byte{"tls.crt": []byte("x")}}
	another := theirs.DeepCopy()
	another.Labels = names.Labels("somebody")
	for name, existing := range map[string]*corev1.Secret{"without a label": theirs, "of another component": another} {
		a := newAuthority(t, existing.DeepCopy())
		a.pass(server())
		if pause := a.pass(server()); pause != 0 || a.reads != 1 || a.writes != 0 {
			t.Errorf("%s: pause %s, %d reads, %d writes", name, pause, a.reads, a.writes)
		}
	}
	t.Run("nor is one that the cache does not show yet", func(t *testing.T) {
		a := newAuthority(t, theirs.DeepCopy())
		a.cached = newAuthority(t).cached
		if a.pass(server()); a.writes != 0 {
			t.Error("it was written")
		}
	})
}

// issuedBy is a certificate of somebody else, for a name that ours would have too, and a lifetime.
func issuedBy(t *testing.T, lifetime time.Duration, now time.Time) map[string][]byte {
	t.Helper()
	serving, err := certs.KeepServing(nil, certs.ServingOptions{Authority: "team", DNSNames: []string{"mlflow.opendatahub.svc"}, Lifetime: lifetime}, now)
	if err != nil {
		t.Fatal(err)
	}
	return serving.Data
}

// Somebody else's certificate is theirs to renew, whoever made the Secret first. Nobody need wait for the end to learn of it.
func TestCertificateOfOthersRunsOut(t *testing.T) {
	const lifetime = 90 * 24 * time.Hour
	a := newAuthority(t)
	m := server()
	a.pass(m)
	theirs := a.secret()
	theirs.Data = issuedBy(t, lifetime, a.clock.Now())
	if err := a.cached.Update(t.Context(), theirs, client.FieldOwner("cert-manager")); err != nil {
		t.Fatal(err)
	}
	writes := a.writes
	pause := a.pass(m)
	if a.writes != writes || !bytes.Equal(a.secret().Data["tls.crt"], theirs.Data["tls.crt"]) {
		t.Error("it was replaced by one of ours")
	}
	if pause < lifetime-expiryWarning || pause > lifetime {
		t.Errorf("it is looked at after %s", pause)
	}
	if err := a.reportCertificate(m, nil); err != nil || len(m.Status.Conditions) != 0 {
		t.Errorf("error %v, conditions %v", err, stateOf(m))
	}
	a.clock.Step(pause)
	if pause := a.pass(m); pause != 0 {
		t.Errorf("it is looked at again after %s, although nothing is to be said", pause)
	}
	if err := a.reportCertificate(m, nil); err != nil || len(m.Status.Conditions) != 1 || m.Status.Conditions[0].Reason != ReasonCertificateExpires {
		t.Errorf("error %v, conditions %v", err, stateOf(m))
	}
	renewed := a.secret()
	renewed.Data = issuedBy(t, lifetime, a.clock.Now())
	if err := a.cached.Update(t.Context(), renewed, client.FieldOwner("cert-manager")); err != nil {
		t.Fatal(err)
	}
	a.pass(m)
	if err := a.reportCertificate(m, nil); err != nil || len(m.Status.Conditions) != 0 {
		t.Errorf("error %v, conditions %v", err, stateOf(m))
	}
}

func TestCertificateIsNotIssued(t *testing.T) {
	for name, c := range map[string]struct {
		m         *mlflowv1.MLflow
		openshift bool
	}{
		"provided":               {server(withMode(mlflowv1.TLSProvided)), false},
		"on OpenShift":           {server(), true},
		"on OpenShift, provided": {server(withMode(mlflowv1.TLSProvided)), true},
	} {
		a := newAuthority(t)
		a.in.OpenShift = c.openshift
		if pause := a.pass(c.m); pause != 0 || !a.absent() || a.reads != 0 {
			t.Errorf("%s: pause %s, issued %t, %d reads", name, pause, !a.absent(), a.reads)
		}
	}
	t.Run("one that was issued before stays, and is not renewed", func(t *testing.T) {
		a, m := newAuthority(t), server()
		a.pass(m)
		before := a.secret()
		m = server(withMode(mlflowv1.TLSProvided))
		a.clock.Step(2 * certificateLifetime)
		if pause := a.pass(m); pause != 0 || a.secret().ResourceVersion != before.ResourceVersion {
			t.Errorf("pause %s, version %s", pause, a.secret().ResourceVersion)
		}
	})
}

func TestCertificateErrors(t *testing.T) {
	a := newAuthority(t)
	a.fail = errors.New("no answer")
	if err := a.keepCertificate(t.Context(), server()); !errors.Is(err, a.fail) {
		t.Errorf("error %v", err)
	}
}
