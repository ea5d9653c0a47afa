package raysettings

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func configMapOf(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: ConfigMapName}, Data: map[string]string{"config.yaml": text},
	}
}

// toUnstructured converts a ConfigMap for the dynamic client.
func toUnstructured(t *testing.T, m *corev1.ConfigMap) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

type fixture struct {
	*Source
	recorder *events.FakeRecorder
	dynamic  *dynamicfake.FakeDynamicClient
	lists    atomic.Int32
	warnings atomic.Int32
	listErr  error
}

func newFixture(t *testing.T, maps ...*corev1.ConfigMap) *fixture {
	t.Helper()
	cfg, err := config.Load(config.Program{Components: []string{"raycluster"}}, nil, func(string) (string, bool) { return "", false },
		func(string) ([]byte, error) { return nil, errors.New("no file") })
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recorder: events.NewFakeRecorder(10)}
	f.dynamic = dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme)
	f.dynamic.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.lists.Add(1)
		return f.listErr != nil, nil, f.listErr
	})
	for _, m := range maps {
		if err := f.dynamic.Tracker().Add(toUnstructured(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	f.Source = New(Options{
		Config: cfg, Dynamic: f.dynamic, Recorder: f.recorder, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
		Log: funcr.New(func(_, line string) {
			if strings.Contains(line, "has no effect") {
				f.warnings.Add(1)
			}
		}, funcr.Options{}),
	})
	return f
}

func TestGetReadsConfigMapOnce(t *testing.T) {
	f := newFixture(t, configMapOf("kuberay: {mTLSEnabled: false, odd: 1}"))
	for range 3 {
		got, err := f.Get(t.Context())
		if err != nil || got.MTLS || !got.OAuth {
			t.Fatalf("got %+v, error %v, want the settings of the ConfigMap", got, err)
		}
	}
	if f.lists.Load() != 1 || f.warnings.Load() != 1 {
		t.Errorf("%d lists and %d warnings, want 1 of each", f.lists.Load(), f.warnings.Load())
	}
}

func TestGetWithoutConfigMapReturnsDefaults(t *testing.T) {
	got, err := newFixture(t).Get(t.Context())
	if err != nil || !got.MTLS || !got.OAuth || got.IngressDomain != "" {
		t.Errorf("got %+v, error %v, want the defaults", got, err)
	}
}

func TestGetFailsIfConfigMapIsUnreadableOrInvalid(t *testing.T) {
	f := newFixture(t, configMapOf("kuberay: {mTLSEnabled: perhaps}"))
	f.listErr = errors.New("refused")
	if _, err := f.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "reading ConfigMap opendatahub/codeflare-operator-config: listing configmaps: refused") {
		t.Errorf("unexpected error %v", err)
	}
	f.listErr = nil
	if _, err := f.Get(t.Context()); err == nil || !strings.Contains(err.Error(), `ConfigMap opendatahub/codeflare-operator-config: kuberay.mTLSEnabled "perhaps"`) {
		t.Errorf("got error %v, want one for kuberay.mTLSEnabled", err)
	}
	if f.lists.Load() != 2 {
		t.Errorf("%d lists, want a failed one and a successful one", f.lists.Load())
	}
}

// [R24] A change takes effect without a restart. An invalid change is reported, and the last valid settings remain in effect.
func TestUpdateAppliesChanges(t *testing.T) {
	f := newFixture(t, configMapOf("kuberay: {ingressDomain: one.example.org}"))
	if _, err := f.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := f.EventSource(configMapOf(""), &handler.EnqueueRequestForObject{}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	poll.Until(t, 10*time.Second, "the watch is started", f.isWatching)
	put := func(text string) {
		t.Helper()
		if err := f.dynamic.Tracker().Update(configMaps, toUnstructured(t, configMapOf(text)), "opendatahub"); err != nil {
			t.Fatal(err)
		}
	}
	domain := func() string {
		got, err := f.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got.IngressDomain
	}

	put("kuberay: {ingressDomain: two.example.org}")
	poll.Until(t, 10*time.Second, "the new domain is in effect and the controllers are notified", func() bool { return domain() == "two.example.org" && queue.Len() == 1 })

	put("kuberay: {ingressDomain: 3}")
	if got := <-f.recorder.Events; !strings.Contains(got, "Warning "+ReasonRefused) || !strings.Contains(got, "kuberay.ingressDomain 3: must be a string") {
		t.Errorf("unexpected Event %q", got)
	}
	if got := domain(); got != "two.example.org" {
		t.Errorf("got domain %q, want the last valid one", got)
	}

	if err := f.dynamic.Tracker().Delete(configMaps, "opendatahub", ConfigMapName); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "the defaults are in effect", func() bool { return domain() == "" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if f.lists.Load() != 2 {
		t.Errorf("%d lists, want one by Get and one by Start", f.lists.Load())
	}
}
