package aihub

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func processSettings() config.ModelRegistry {
	return config.ModelRegistry{
		DefaultDomain: "apps.example.org",
		Images:        config.RegistryImages{REST: "rest:v1", KubeRBACProxy: "proxy:v1", Postgres: "postgres:v1", CatalogData: "data:v1", BenchmarkData: "benchmark:v1"},
		Gateway:       config.RegistryGateway{Domain: "set.example.org", Name: "gw", Namespace: "ingress", RouteNamespace: "set-apps"},
	}
}

func newSpec(domain string) *platformv1alpha1.AIHubSpec {
	s := &platformv1alpha1.AIHubSpec{ApplicationNamespace: "apps", InstancesNamespace: "registries"}
	if domain != "" {
		s.Gateway = &platformv1alpha1.AIHubGateway{Domain: domain}
	}
	return s
}

// The settings that the legacy operator wrote into variables of its child programs are read from the AIHub. All other settings
// stay unchanged, including images and empty values. [modelregistry-104] [modelregistry-105] [modelregistry-106] [modelregistry-112]
func TestMergeOverridesOnlySettingsOfAIHub(t *testing.T) {
	for name, test := range map[string]struct {
		spec   *platformv1alpha1.AIHubSpec
		change func(*config.ModelRegistry)
		want   func(*config.ModelRegistry)
	}{
		"no AIHub": {nil, nil, func(*config.ModelRegistry) {}},
		"with a domain": {newSpec("hub.example.org"), nil, func(m *config.ModelRegistry) {
			m.Namespace, m.Gateway.RouteNamespace, m.Gateway.Domain = "registries", "apps", "hub.example.org"
		}},
		"without a domain": {newSpec(""), nil, func(m *config.ModelRegistry) {
			m.Namespace, m.Gateway.RouteNamespace = "registries", "apps"
		}},
		"namespace of the settings has precedence": {newSpec(" "), func(m *config.ModelRegistry) { m.Namespace = "other" }, func(m *config.ModelRegistry) {
			m.Namespace, m.Gateway.RouteNamespace = "other", "apps"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			base, want := processSettings(), processSettings()
			if test.change != nil {
				test.change(&base)
			}
			test.want(&want)
			if diff := cmp.Diff(want, Merge(base, test.spec)); diff != "" {
				t.Errorf("settings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func newAIHub(s *platformv1alpha1.AIHubSpec) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&platformv1alpha1.AIHub{
		TypeMeta:   metav1.TypeMeta{APIVersion: platformv1alpha1.GroupVersion.String(), Kind: "AIHub"},
		ObjectMeta: metav1.ObjectMeta{Name: platformv1alpha1.AIHubName}, Spec: *s,
	})
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// hasSynced reports whether WaitForSpec returns no error.
func (w *Watcher) hasSynced() bool { return w.WaitForSpec() == nil }

func newWatcher(objects ...runtime.Object) (*Watcher, *fake.FakeDynamicClient) {
	c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "AIHubList"}, objects...)
	return NewWatcher(c, clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard()), c
}

// A change or the deletion of the AIHub changes the settings without a restart.
func TestSettingsChangeWithAIHub(t *testing.T) {
	w, c := newWatcher(newAIHub(newSpec("one.example.org")))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.value.Start(ctx) }()
	if !w.hasSynced() || w.Merge(processSettings()).Namespace != "" {
		t.Error("want the watcher synced without an AIHub while the API is not served")
	}
	w.SetServed(true)
	domain := func() string { return w.Merge(processSettings()).Gateway.Domain }
	poll.Until(t, 10*time.Second, "the settings contain the domain of the AIHub", func() bool { return domain() == "one.example.org" })
	poll.Until(t, 10*time.Second, "the watch has started", func() bool { return len(c.Actions()) >= 2 })
	hubs := c.Resource(resource)
	if _, err := hubs.Update(t.Context(), newAIHub(newSpec("two.example.org")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "the settings contain the changed domain", func() bool { return domain() == "two.example.org" })
	if err := hubs.Delete(t.Context(), platformv1alpha1.AIHubName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "the settings contain the domain of the process", func() bool { return domain() == "set.example.org" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestHasSynced(t *testing.T) {
	for name, respond := range map[string]func(*Watcher){
		"AIHub":             func(w *Watcher) { w.value.OnUpdate(newAIHub(newSpec(""))) },
		"no AIHub":          func(w *Watcher) { w.value.OnUpdate(nil) },
		"unexpected object": func(w *Watcher) { w.value.OnUpdate(&unstructured.Unstructured{Object: map[string]any{"spec": "text"}}) },
		"API not served":    func(w *Watcher) { w.SetServed(false) },
	} {
		w, _ := newWatcher()
		w.SetServed(true)
		if _, err := w.MergeOrError(processSettings()); w.hasSynced() || err == nil || !strings.Contains(err.Error(), "default-aihub") {
			t.Errorf("%s: synced before the cluster answered, or unexpected error %v", name, err)
		}
		respond(w)
		if _, err := w.MergeOrError(processSettings()); !w.hasSynced() || err != nil {
			t.Errorf("%s: not synced, error %v", name, err)
		}
	}
}

// Without permission to list AIHubs, the watcher uses the settings of the process, and does not wait.
func TestForbiddenListCountsAsNoAIHub(t *testing.T) {
	w, c := newWatcher()
	c.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(resource.GroupResource(), "", nil)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.value.Start(ctx) }()
	w.SetServed(true)
	poll.Until(t, 10*time.Second, "the watcher has synced", w.hasSynced)
	if diff := cmp.Diff(processSettings(), w.Merge(processSettings())); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	cancel()
	<-done
}

// When the API is removed, the watcher returns to the settings of the process, and ignores later events.
func TestRemovedAPIResetsSettings(t *testing.T) {
	w, _ := newWatcher()
	w.SetServed(true)
	w.value.OnUpdate(newAIHub(newSpec("one.example.org")))
	w.SetServed(false)
	w.value.OnUpdate(newAIHub(newSpec("one.example.org")))
	if diff := cmp.Diff(processSettings(), w.Merge(processSettings())); diff != "" || !w.hasSynced() {
		t.Errorf("synced %t, settings (-want +got):\n%s", w.hasSynced(), diff)
	}
}

func TestChangesTriggerController(t *testing.T) {
	w, _ := newWatcher()
	w.SetServed(true)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	if err := w.EventSource(object, &handler.EnqueueRequestForObject{}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	w.value.OnUpdate(newAIHub(newSpec("one.example.org")))
	poll.Until(t, 10*time.Second, "a request is enqueued", func() bool { return queue.Len() == 1 })
	got, _ := queue.Get()
	if got.Name != "b" || got.Namespace != "a" {
		t.Errorf("request %v", got)
	}
	queue.Done(got)
	w.value.OnUpdate(newAIHub(newSpec("one.example.org"))) // an unchanged AIHub enqueues nothing
	w.value.OnUpdate(nil)
	poll.Until(t, 10*time.Second, "a second request is enqueued", func() bool { return queue.Len() == 1 })
}

// The watcher is nil when the platform component is off.
func TestNilWatcherKeepsSettings(t *testing.T) {
	var w *Watcher
	w.SetServed(true)
	settings, err := w.MergeOrError(processSettings())
	if diff := cmp.Diff(processSettings(), settings); diff != "" || err != nil || !w.hasSynced() || w.AddTo(nil) != nil {
		t.Errorf("settings differ without an AIHub, or an error occurred: %v\n%s", err, diff)
	}
	if w.EventSource(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}) == nil {
		t.Error("EventSource returned no source")
	}
}
