package settings

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

const home = "serving"

// settingsConfigMap returns a ConfigMap with settings. In the namespace of the operator, they are those of administrators.
func settingsConfigMap(namespace, text string) *corev1.ConfigMap {
	return configMap(namespace, ConfigMapName, map[string]string{ConfigMapKey: text})
}

func defaults(text string) *corev1.ConfigMap {
	return configMap(home, DefaultsName, map[string]string{DefaultsKey: text})
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}, Data: data,
	}
}

// toUnstructured converts an object to the form of the dynamic client.
func toUnstructured(t rapid.TB, m *corev1.ConfigMap) *unstructured.Unstructured {
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
	listErr  atomic.Pointer[error] // error of list requests
}

func newFixture(t rapid.TB, cfg config.ModelMesh, maps ...*corev1.ConfigMap) *fixture {
	t.Helper()
	if cfg.Namespace == "" {
		cfg.Namespace = home
	}
	f := &fixture{recorder: events.NewFakeRecorder(20), dynamic: dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme)}
	f.dynamic.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.lists.Add(1)
		if err := f.listErr.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	for _, m := range maps {
		if err := f.dynamic.Tracker().Add(toUnstructured(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	f.Source = NewSource(Options{
		Config: cfg, Dynamic: f.dynamic, Recorder: redact.Recorder(f.recorder),
		Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Log: funcr.New(func(_, _ string) {}, funcr.Options{}),
	})
	return f
}

// start runs the source until the test ends, and waits for its watches.
func (f *fixture) start(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	poll.Until(t, 10*time.Second, "both watches are started", func() bool {
		n := 0
		for _, action := range f.dynamic.Actions() {
			if action.GetVerb() == "watch" {
				n++
			}
		}
		return n == 2
	})
	return f
}

func (f *fixture) apply(t *testing.T, m *corev1.ConfigMap) {
	t.Helper()
	tracker := f.dynamic.Tracker()
	if _, err := tracker.Get(configMaps, m.Namespace, m.Name); err != nil {
		if err := tracker.Create(configMaps, toUnstructured(t, m), m.Namespace); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := tracker.Update(configMaps, toUnstructured(t, m), m.Namespace); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) remove(t *testing.T, m *corev1.ConfigMap) {
	t.Helper()
	if err := f.dynamic.Tracker().Delete(configMaps, m.Namespace, m.Name); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) settingsFor(t *testing.T, namespace string) Settings {
	t.Helper()
	got, err := f.For(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// expectPods waits until the settings of a namespace have the given podsPerRuntime.
func (f *fixture) expectPods(t *testing.T, namespace string, want int32) {
	t.Helper()
	poll.Until(t, 10*time.Second, "the settings of "+namespace+" have changed", func() bool { return f.settingsFor(t, namespace).PodsPerRuntime == want })
}

// nextEvent waits for the next Event and returns it.
func (f *fixture) nextEvent(t *testing.T) string {
	t.Helper()
	select {
	case event := <-f.recorder.Events:
		return event
	case <-time.After(10 * time.Second):
		t.Fatal("timed out waiting for an event")
		return ""
	}
}

func (f *fixture) expectNoEvents(t rapid.TB) {
	t.Helper()
	select {
	case event := <-f.recorder.Events:
		t.Errorf("got event %q, want none", event)
	default:
	}
}
