package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestFirstSyncServesCertificate(t *testing.T) {
	env := newEnvironment(t)
	a := env.replica(nil)
	if a.Ready(nil) == nil {
		t.Error("Ready returned no error without a certificate")
	}
	pause := env.sync(a)
	env.expectTrusted(a, env.bundle(), "first start")
	if err := a.Ready(nil); err != nil {
		t.Errorf("Ready returned %v after the first sync", err)
	}
	if pause != resyncInterval {
		t.Errorf("got pause %s, want %s", pause, resyncInterval)
	}
	secret := env.secret()
	if secret.Type != corev1.SecretTypeTLS || secret.Labels["a"] != "b" || len(secret.Data) != 4 {
		t.Errorf("unexpected Secret of type %s with labels %v and %d keys", secret.Type, secret.Labels, len(secret.Data))
	}
	for label, want := range map[string]time.Duration{servingCertificateLabel: leafLifetime, caCertificateLabel: caLifetime} {
		if got := metric(t, label); got != float64(env.clock.Now().Add(want).Unix()) {
			t.Errorf("metric of %s: %v, want %v", label, got, float64(env.clock.Now().Add(want).Unix()))
		}
	}
}

func TestSyncWritesNothingWhenUpToDate(t *testing.T) {
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{"service": map[string]any{}})))
	writes := 0
	count := &interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			t.Error("Sync sent a list request")
			return nil
		},
	}
	a := env.replica(count, Target{Kind: Validating, Name: "v"})
	env.sync(a)
	if writes != 2 {
		t.Errorf("got %d writes, want the Secret and one patch", writes)
	}
	env.sync(a)
	env.sync(env.replica(count, Target{Kind: Validating, Name: "v"}))
	if writes != 2 {
		t.Errorf("got %d writes in the steady state and after a restart, want none", writes-2)
	}
}

// The serving certificate is renewed after two thirds of its lifetime.
func TestServingCertificateIsRenewed(t *testing.T) {
	env := newEnvironment(t)
	a := env.replica(nil)
	env.sync(a)
	before := a.current.Load()

	env.clock.Step(before.leaf.Next.Sub(env.clock.Now()) - time.Minute)
	if pause := env.sync(a); pause != time.Minute || !before.matches(a.current.Load().data) {
		t.Errorf("a minute before the renewal: got pause %s, want a minute and the same certificate", pause)
	}
	env.clock.Step(time.Minute)
	env.sync(a)
	after := a.current.Load()
	if bytes.Equal(after.data[dataKeyCert], before.data[dataKeyCert]) || !bytes.Equal(after.data[dataKeyCACert], before.data[dataKeyCACert]) {
		t.Error("want a new serving certificate and the same CA")
	}
	env.expectTrusted(a, before.data[dataKeyCACert], "with the previous bundle")
}

// A new CA is published before it signs, so every server is trusted at all times.
func TestRotationOfCAKeepsTrust(t *testing.T) {
	env := newEnvironment(t)
	a, delayed := env.replica(nil), env.replica(nil)
	env.sync(a)
	env.sync(delayed)
	old := env.bundle()
	advanceUntil := func(due time.Time) {
		for env.clock.Now().Before(due) {
			env.clock.Step(24 * time.Hour)
			env.sync(a)
			env.sync(delayed)
		}
	}
	advanceUntil(a.current.Load().root.Next)
	both := env.bundle()
	if bytes.Equal(both, old) || !bytes.Contains(both, old) {
		t.Fatal("want the bundle to contain the new and the old CA")
	}
	env.expectTrusted(a, both, "the new CA was published")
	env.expectTrusted(a, old, "an API server that does not know the new CA yet")

	advanceUntil(a.current.Load().root.Next.Add(-24 * time.Hour))
	env.clock.Step(24 * time.Hour)
	if pause := env.sync(a); pause != resyncInterval {
		t.Errorf("pause %s, want %s", pause, resyncInterval)
	}
	env.expectTrusted(a, both, "the new CA signs")
	env.expectTrusted(delayed, env.bundle(), "a replica that has not synced yet")
	if err := env.handshake(a, old); err == nil {
		t.Error("the serving certificate is still signed by the old CA")
	}
}

// For three years, with a sync every 73 hours, no handshake fails and the bundle stays small.
func TestRotationForYears(t *testing.T) {
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	a := env.replica(nil, Target{Kind: Validating, Name: "v"})
	start := env.clock.Now()
	for env.clock.Since(start) < 3*365*24*time.Hour {
		known := []byte(nil)
		if a.current.Load() != nil {
			known = env.bundle()
		}
		env.sync(a)
		if known != nil {
			env.expectTrusted(a, known, env.clock.Now().String())
		}
		if n := len(a.current.Load().root.bundle); n > 3 {
			t.Fatalf("got %d CAs in the bundle, want at most 3", n)
		}
		env.clock.Step(73 * time.Hour)
	}
}

// After a long pause, all certificates are expired and are replaced.
func TestSyncAfterExpiry(t *testing.T) {
	env := newEnvironment(t)
	env.sync(env.replica(nil))
	env.clock.Step(10 * caLifetime)
	a := env.replica(nil)
	env.sync(a)
	env.expectTrusted(a, env.bundle(), "all certificates were expired")
	if n := len(a.current.Load().root.bundle); n != 1 {
		t.Errorf("got %d CAs, want no expired CA", n)
	}
}

func TestReplicasServeSameCertificate(t *testing.T) {
	for range 20 {
		env := newEnvironment(t)
		a, b := env.replica(nil), env.replica(nil)
		var both sync.WaitGroup
		for _, r := range []*Authority{a, b} {
			both.Go(func() {
				if _, err := r.Sync(t.Context()); err != nil {
					t.Errorf("unexpected error: %v", err)
				}
			})
		}
		both.Wait()
		env.expectTrusted(a, env.bundle(), "one replica")
		env.expectTrusted(b, env.bundle(), "the other replica")
		if !a.current.Load().matches(b.current.Load().data) {
			t.Fatal("the replicas serve different certificates")
		}
	}
}

// Another replica writes the Secret between the read and the write.
func TestSyncReadsSecretAfterConflict(t *testing.T) {
	for name, created := range map[string]bool{"creating": false, "renewing": true} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t)
			fast := env.replica(nil)
			if created {
				env.sync(fast)
				env.clock.Step(leafLifetime * 3 / 4)
			}
			synced := false
			slow := env.replica(&interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if !synced {
						synced = true
						env.sync(fast)
					}
					return err
				},
			})
			env.sync(slow)
			if !fast.current.Load().matches(slow.current.Load().data) {
				t.Error("the replicas serve different certificates")
			}
		})
	}
}

func TestSyncFailsAfterRepeatedConflicts(t *testing.T) {
	env := newEnvironment(t)
	env.sync(env.replica(nil))
	env.clock.Step(leafLifetime * 3 / 4)
	attempts := 0
	a := env.replica(&interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
		attempts++
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "x", errors.New("again"))
	}})
	if _, err := a.Sync(t.Context()); err == nil || attempts != maxSyncAttempts {
		t.Errorf("got error %v after %d attempts, want an error after maxSyncAttempts", err, attempts)
	}
}

// isUpToDate reports whether a Secret needs no change.
func isUpToDate(t *testing.T, data map[string][]byte, names []string, now time.Time) bool {
	t.Helper()
	p, err := ensurePair(data, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return p.matches(data)
}

func TestDamagedSecretIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(map[string][]byte){
		"empty":          func(d map[string][]byte) { clear(d) },
		"no CA key":      func(d map[string][]byte) { delete(d, dataKeyCAPrivateKey) },
		"invalid CA key": func(d map[string][]byte) { d[dataKeyCAPrivateKey] = []byte("noise") },
		"invalid CA":     func(d map[string][]byte) { d[dataKeyCACert] = []byte("noise") },
		"invalid CA DER": func(d map[string][]byte) {
			d[dataKeyCACert] = []byte("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n")
		},
		"keys swapped": func(d map[string][]byte) {
			d[dataKeyCAPrivateKey], d[dataKeyPrivateKey] = d[dataKeyPrivateKey], d[dataKeyCAPrivateKey]
		},
		"leaf as CA": func(d map[string][]byte) {
			d[dataKeyCACert], d[dataKeyCAPrivateKey] = d[dataKeyCert], d[dataKeyPrivateKey]
		},
		"no serving key":                func(d map[string][]byte) { delete(d, dataKeyPrivateKey) },
		"wrong serving key":             func(d map[string][]byte) { d[dataKeyPrivateKey] = d[dataKeyCAPrivateKey] },
		"truncated serving certificate": func(d map[string][]byte) { d[dataKeyCert] = d[dataKeyCert][:40] },
		"CA as serving certificate": func(d map[string][]byte) {
			d[dataKeyCert], d[dataKeyPrivateKey] = d[dataKeyCACert], d[dataKeyCAPrivateKey]
		},
	} {
		for _, restarted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restarted=%t", name, restarted), func(t *testing.T) {
				env := newEnvironment(t)
				a := env.replica(nil)
				env.sync(a)
				known := env.bundle()
				secret := env.secret()
				damage(secret.Data)
				if err := env.client.Update(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				if restarted {
					a = env.replica(nil) // without state
				}
				env.sync(a)
				env.expectTrusted(a, env.bundle(), "repaired")
				if !restarted {
					env.expectTrusted(a, known, "the served CA was kept")
				}
				if data := env.secret().Data; !isUpToDate(t, data, a.DNSNames, env.clock.Now()) {
					t.Errorf("the Secret was not repaired")
				}
			})
		}
	}
}

func TestDeletedSecretIsRecreated(t *testing.T) {
	env := newEnvironment(t)
	a := env.replica(nil)
	env.sync(a)
	before := env.secret()
	if err := env.client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	env.sync(a)
	if !bytes.Equal(env.bundle(), before.Data[dataKeyCACert]) {
		t.Error("the injected CA was replaced")
	}
}

func TestChangedNamesReplaceCertificate(t *testing.T) {
	env := newEnvironment(t)
	env.sync(env.replica(nil))
	known := env.bundle()
	renamed := env.replica(nil)
	renamed.DNSNames = []string{serviceName, "renamed.operator.svc"}
	env.sync(renamed)
	if err := renamed.current.Load().tlsCertificate.Leaf.VerifyHostname("renamed.operator.svc"); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(known, env.bundle()) {
		t.Error("the CA was replaced")
	}
}

func TestSyncErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		funcs interceptor.Funcs
		want  string
	}{
		"reading": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("boom")
		}}, "syncing Secret operator/hooks-cert: reading: boom"},
		"writing": {interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("boom")
		}}, "syncing Secret operator/hooks-cert: writing: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newEnvironment(t).replica(&tc.funcs).Sync(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Start retries with back-off, recovers, and syncs again after resyncInterval.
func TestStartRetriesAndResyncs(t *testing.T) {
	env := newEnvironment(t)
	var mu sync.Mutex
	failing, reads := true, 0
	a := env.replica(&interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		mu.Lock()
		defer mu.Unlock()
		if reads++; failing {
			return errors.New("unreachable")
		}
		return c.Get(ctx, key, o, opts...)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()

	step := func(n int, d time.Duration) {
		t.Helper()
		waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return reads == n && env.clock.HasWaiters() })
		env.clock.Step(d)
	}
	step(1, time.Second)
	waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return reads == 2 })
	mu.Lock()
	failing = false
	mu.Unlock()
	step(2, 2*time.Second)
	step(3, resyncInterval)
	step(4, 0)
	env.expectTrusted(a, env.bundle(), "recovered")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Start returned error %v", err)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("the condition was not met in time")
		case <-tick.C:
		}
	}
}
