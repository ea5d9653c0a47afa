package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const serviceName = "hooks.operator.svc"

var secretKey = types.NamespacedName{Namespace: "operator", Name: "hooks-cert"}

// environment is the API server and the clock of several replicas.
type environment struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	client client.WithWatch
}

func newEnvironment(t *testing.T, objects ...client.Object) *environment {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &environment{
		t:      t,
		clock:  clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
	}
}

// replica returns the Authority of another process. A nil intercept changes no requests.
func (env *environment) replica(intercept *interceptor.Funcs, targets ...Target) *Authority {
	c := env.client
	if intercept != nil {
		c = interceptor.NewClient(env.client, *intercept)
	}
	return NewAuthority(Options{
		Client: c, Secret: secretKey, Labels: map[string]string{"a": "b"}, DNSNames: []string{serviceName, "hooks.operator.svc.cluster.local"},
		Targets: targets, Clock: env.clock, Log: logr.Discard(),
	})
}

func (env *environment) sync(a *Authority) time.Duration {
	env.t.Helper()
	pause, err := a.Sync(env.t.Context())
	if err != nil {
		env.t.Fatalf("unexpected error: %v", err)
	}
	return pause
}

func (env *environment) secret() *corev1.Secret {
	env.t.Helper()
	s := &corev1.Secret{}
	if err := env.client.Get(env.t.Context(), secretKey, s); err != nil {
		env.t.Fatal(err)
	}
	return s
}

func (env *environment) bundle() []byte { return env.secret().Data[dataKeyCACert] }

func (env *environment) get(target Target) *unstructured.Unstructured {
	env.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(target.Kind)
	if err := env.client.Get(env.t.Context(), types.NamespacedName{Name: target.Name}, obj); err != nil {
		env.t.Fatal(err)
	}
	return obj
}

// handshake performs a TLS handshake like the API server, at the time of the environment.
func (env *environment) handshake(a *Authority, bundle []byte) error {
	env.t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle holds no certificate")
	}
	ctx, cancel := context.WithTimeout(env.t.Context(), 10*time.Second)
	defer cancel()
	plain, err := net.Listen("tcp", "127.0.0.1:0") // not a pipe: a failed handshake would block on it, because it has no buffer
	if err != nil {
		env.t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		if conn, err := plain.Accept(); err == nil {
			defer conn.Close()
			_ = tls.Server(conn, &tls.Config{GetCertificate: a.GetCertificate, Time: env.clock.Now}).HandshakeContext(ctx) //nolint:gosec // a test
		}
	}()
	conn, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		env.t.Fatal(err)
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: serviceName, Time: env.clock.Now}).HandshakeContext(ctx) //nolint:gosec // a test
}

func (env *environment) expectTrusted(a *Authority, bundle []byte, when string) {
	env.t.Helper()
	if err := env.handshake(a, bundle); err != nil {
		env.t.Errorf("%s: unexpected error: %v", when, err)
	}
}

func webhooks(name string, hooks ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "webhooks": hooks}}
	u.SetGroupVersionKind(Validating)
	return u
}

func hook(name string, config map[string]any) any {
	return map[string]any{"name": name, "unknownField": "kept", "clientConfig": config}
}

func crdWithConversion(name string, conversion map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"group": "a.b", "conversion": conversion},
	}}
	u.SetGroupVersionKind(Conversion)
	return u
}

// metric returns the expiry of a certificate in the metrics.
func metric(t *testing.T, label string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "odh_platform_certificate_expiry_timestamp_seconds" && m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}
