package certs

import (
	"bytes"
	"context"
	"encoding/base64"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func injectedMetric(t *testing.T, target Target) float64 {
	t.Helper()
	var m dto.Metric
	gauge, err := injectedGauge.GetMetricWith(prometheus.Labels{"kind": target.Kind.Kind, "name": target.Name})
	if err != nil || gauge.Write(&m) != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// The watch restores a CA that another client overwrites, without waiting for the next resync.
func TestWatchRestoresCABundle(t *testing.T) {
	target := Target{Kind: Validating, Name: "v"}
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	resource := Validating.GroupVersion().WithResource("validatingwebhookconfigurations")
	watched := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "ValidatingWebhookConfigurationList", secretResource: "SecretList"})
	a := env.replica(nil, target)
	a.Dynamic = watched
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	bundle := func() string {
		hooks, _, _ := unstructured.NestedSlice(env.get(target).Object, "webhooks")
		config, _, _ := unstructured.NestedMap(hooks[0].(map[string]any), "clientConfig")
		text, _ := config["caBundle"].(string)
		return text
	}
	waitFor(t, func() bool { return a.current.Load() != nil && bundle() != "" && env.clock.HasWaiters() })
	if injectedMetric(t, target) != 1 {
		t.Error("want the metric of CA injection to be 1")
	}
	expected := bundle()

	overwritten := webhooks("v", hook("h", map[string]any{"caBundle": base64.StdEncoding.EncodeToString([]byte("other"))}))
	stored := env.get(target)
	stored.Object["webhooks"] = overwritten.Object["webhooks"]
	if err := env.client.Update(ctx, stored); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // until the watch is established
		_ = watched.Tracker().Delete(resource, "", "v")
		_ = watched.Tracker().Create(resource, overwritten.DeepCopy(), "")
		return injectedMetric(t, target) == 0
	})
	start := env.clock.Now()
	waitFor(t, func() bool { // in small steps, because other timers use the same clock
		if env.clock.HasWaiters() && env.clock.Since(start) < resyncInterval/2 {
			env.clock.Step(time.Second)
		}
		return bundle() == expected && injectedMetric(t, target) == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Start returned error %v", err)
	}
}

// The watch restores a Secret that another client deletes or damages, with the trusted CA.
func TestWatchRestoresSecret(t *testing.T) {
	for name, damage := range map[string]func(*environment){
		"deleted": func(env *environment) {
			if err := env.client.Delete(t.Context(), env.secret()); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": func(env *environment) {
			damaged := env.secret()
			damaged.Data[dataKeyPrivateKey] = []byte("noise")
			if err := env.client.Update(t.Context(), damaged); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t)
			watched := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{secretResource: "SecretList"})
			a := env.replica(nil)
			a.Dynamic = watched
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- a.Start(ctx) }()
			waitFor(t, func() bool { return a.current.Load() != nil && env.clock.HasWaiters() })
			before := env.bundle()
			damage(env)
			start := env.clock.Now()
			waitFor(t, func() bool {
				// An event of the Secret, since the fakes of the two clients are not connected.
				empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
				empty.SetNamespace(secretKey.Namespace)
				empty.SetName(secretKey.Name)
				_ = watched.Tracker().Create(secretResource, empty, secretKey.Namespace)
				_ = watched.Tracker().Delete(secretResource, secretKey.Namespace, secretKey.Name)
				if env.clock.HasWaiters() && env.clock.Since(start) < resyncInterval/2 {
					env.clock.Step(time.Second)
				}
				live := &corev1.Secret{}
				return env.client.Get(t.Context(), secretKey, live) == nil && bytes.Equal(live.Data[dataKeyCACert], before) && isUpToDate(t, live.Data, a.DNSNames, env.clock.Now())
			})
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Start returned error %v", err)
			}
		})
	}
}

// An event of an up-to-date Secret triggers no sync.
func TestWatchIgnoresUpToDateSecret(t *testing.T) {
	env := newEnvironment(t)
	a := env.replica(nil)
	a.onSecretUpdate(nil) // before the first sync
	env.sync(a)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(env.secret())
	if err != nil {
		t.Fatal(err)
	}
	a.onSecretUpdate(&unstructured.Unstructured{Object: object})
	if len(a.changed) != 0 {
		t.Error("an unchanged Secret triggered another sync")
	}
	if a.onSecretUpdate(nil); len(a.changed) != 1 {
		t.Error("the deletion of the Secret triggered no sync")
	}
}
