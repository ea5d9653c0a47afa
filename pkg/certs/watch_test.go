package certs

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func isInjected(t *testing.T, target Target) float64 {
	t.Helper()
	var m dto.Metric
	gauge, err := injected.GetMetricWith(prometheus.Labels{"kind": target.Kind.Kind, "name": target.Name})
	if err != nil || gauge.Write(&m) != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// A CA that another client overwrites is put right by the watch, within seconds, and not by the look every few minutes.
func TestAnOverwrittenCAIsPutRight(t *testing.T) {
	target := Target{Kind: Validating, Name: "v"}
	w := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	resource := Validating.GroupVersion().WithResource("validatingwebhookconfigurations")
	watched := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "ValidatingWebhookConfigurationList"})
	a := w.replica(nil, target)
	a.Dynamic = watched
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	bundle := func() string {
		hooks, _, _ := unstructured.NestedSlice(w.get(target).Object, "webhooks")
		config, _, _ := unstructured.NestedMap(hooks[0].(map[string]any), "clientConfig")
		text, _ := config["caBundle"].(string)
		return text
	}
	waitFor(t, func() bool { return a.current.Load() != nil && bundle() != "" && w.clock.HasWaiters() })
	if isInjected(t, target) != 1 {
		t.Error("the metric does not say that the CA is there")
	}
	right := bundle()

	wrong := webhooks("v", hook("h", map[string]any{"caBundle": base64.StdEncoding.EncodeToString([]byte("other"))}))
	stored := w.get(target)
	stored.Object["webhooks"] = wrong.Object["webhooks"]
	if err := w.client.Update(ctx, stored); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // until the watch is there and has been heard
		_ = watched.Tracker().Delete(resource, "", "v")
		_ = watched.Tracker().Create(resource, wrong.DeepCopy(), "")
		return isInjected(t, target) == 0
	})
	begun := w.clock.Now()
	waitFor(t, func() bool { // second by second, since others may wait for the clock as well
		if w.clock.HasWaiters() && w.clock.Since(begun) < recheck/2 {
			w.clock.Step(time.Second)
		}
		return bundle() == right && isInjected(t, target) == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Start must not fail: %v", err)
	}
}
