package raysettings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// isWatching reports whether the source has started its watch.
func (f *fixture) isWatching() bool {
	return slices.ContainsFunc(f.dynamic.Actions(), func(action clienttesting.Action) bool { return action.GetVerb() == "watch" })
}

// start runs the source and returns a function that stops it.
func (f *fixture) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	poll.Until(t, 10*time.Second, "the watch is started", f.isWatching)
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// updateConfigMap replaces the data of the ConfigMap.
func (f *fixture) updateConfigMap(t *testing.T, data map[string]string) {
	t.Helper()
	m := configMapOf("")
	m.Data = data
	if err := f.dynamic.Tracker().Update(configMaps, toUnstructured(t, m), "opendatahub"); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) domain(t *testing.T) string {
	t.Helper()
	got, err := f.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got.IngressDomain
}

func queueOf(t *testing.T, f *fixture) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := f.EventSource(configMapOf(""), &handler.EnqueueRequestForObject{}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

// [R24] An Event on the ConfigMap reports why it is invalid, and the previous settings remain in effect. The next valid ConfigMap takes effect
// without a restart.
func TestUpdateReportsInvalidConfigMap(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want string
	}{
		"invalid YAML":  {map[string]string{"config.yaml": "{"}, "not valid YAML"},
		"list":          {map[string]string{"config.yaml": "[1]"}, "must hold one YAML object"},
		"two keys":      {map[string]string{"a": "", "b": ""}, "it has 2 keys [a b]: leave exactly one"},
		"no key":        {nil, "it has 0 keys []: leave exactly one"},
		"wrong type":    {map[string]string{"x": "kuberay: {rayDashboardOAuthEnabled: 'yes'}"}, `kuberay.rayDashboardOAuthEnabled "yes": must be true or false`},
		"wrong section": {map[string]string{"x": "kuberay: [a]"}, "must be an object"},
		"wrong domain":  {map[string]string{"x": "kuberay: {ingressDomain: 'a b'}"}, `kuberay.ingressDomain "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, configMapOf("kuberay: {ingressDomain: good.example.org, mTLSEnabled: false}"))
			if f.domain(t) != "good.example.org" {
				t.Fatal("want the domain of the initial ConfigMap")
			}
			stop := f.start(t)
			defer stop()
			f.updateConfigMap(t, tc.data)
			message := <-f.recorder.Events
			for _, part := range []string{"Warning " + ReasonRefused, "the last valid settings stay in effect", "ConfigMap opendatahub/" + ConfigMapName, tc.want} {
				if !strings.Contains(message, part) {
					t.Errorf("Event %q does not contain %q", message, part)
				}
			}
			if got, err := f.Get(t.Context()); err != nil || got.IngressDomain != "good.example.org" || got.MTLS {
				t.Errorf("got %+v, error %v, want the last valid settings", got, err)
			}
			f.updateConfigMap(t, map[string]string{"any-name": "kuberay: {ingressDomain: better.example.org}"})
			poll.Until(t, 10*time.Second, "the valid ConfigMap is in effect", func() bool { return f.domain(t) == "better.example.org" })
			if got, _ := f.Get(t.Context()); !got.MTLS {
				t.Error("a removed key did not return to its default")
			}
			if f.lists.Load() != 2 {
				t.Errorf("%d lists, want one by Get and one by Start", f.lists.Load())
			}
		})
	}
}

// Each change notifies all listeners. Keys of other components, and equal settings, notify none.
func TestNotifiesOnlyChanges(t *testing.T) {
	f := newFixture(t, configMapOf("kuberay: {ingressDomain: one.example.org}"))
	f.domain(t)
	var notifications atomic.Int32
	f.Subscribe(t.Context(), func(config.RayCluster) { notifications.Add(1) })
	queues := []workqueue.TypedRateLimitingInterface[reconcile.Request]{queueOf(t, f), queueOf(t, f)}
	stop := f.start(t)
	defer stop()
	// Only the last update changes the settings. Updates are processed in order, so all others are processed before it.
	for _, text := range []string{
		"kuberay: {ingressDomain: one.example.org, mTLSEnabled: true}", "appwrapper: {enabled: true}\nkuberay: {ingressDomain: .one.example.org.}",
		"kuberay: {ingressDomain: one.example.org}\nmcad: {}", "kuberay: {ingressDomain: two.example.org}",
	} {
		f.updateConfigMap(t, map[string]string{"config.yaml": text})
	}
	poll.Until(t, 10*time.Second, "the change is in effect and all listeners are notified", func() bool {
		return f.domain(t) == "two.example.org" && queues[0].Len() == 1 && queues[1].Len() == 1
	})
	if n := notifications.Load(); n != 1 {
		t.Errorf("got %d notifications, want one for the last update", n)
	}
	request, _ := queues[0].Get()
	if request.Name != ConfigMapName {
		t.Errorf("unexpected request %v", request)
	}
}

// A key without effect is logged once, and again only if the set of such keys changes.
func TestKeysWithoutEffectAreLoggedOnce(t *testing.T) {
	f := newFixture(t)
	for _, tc := range []struct {
		text   string
		logged int32
	}{
		{"odd: 1", 1}, {"odd: 2", 1}, {"odd: 1\nkuberay: {mTLSEnabled: false}", 1}, {"odd: 1\nstrange: 1", 3}, {"kuberay: {}", 3}, {"odd: 1", 4},
	} {
		if err := f.load(configMapOf(tc.text)); err != nil {
			t.Fatal(err)
		}
		if got := f.warnings.Load(); got != tc.logged {
			t.Errorf("after %q: %d warnings, want %d", tc.text, got, tc.logged)
		}
	}
}

// Concurrent calls of Get during changes return consistent settings.
func TestConcurrentGet(t *testing.T) {
	texts := []string{"kuberay: {ingressDomain: one.example.org, mTLSEnabled: true}", "kuberay: {ingressDomain: two.example.org, mTLSEnabled: false}"}
	f := newFixture(t, configMapOf(texts[0]))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 200 {
				got, err := f.Get(t.Context())
				if err != nil || got.MTLS != (got.IngressDomain == "one.example.org") {
					t.Errorf("got mTLS %t with domain %s, error %v", got.MTLS, got.IngressDomain, err)
				}
			}
		})
	}
	for i := range 200 {
		if err := f.load(configMapOf(texts[i%2])); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
}

// A failed first read is retried by the next Get, and does not return defaults.
func TestGetFailsWithoutAPIServer(t *testing.T) {
	f := newFixture(t, configMapOf("kuberay: {mTLSEnabled: false}"))
	f.listErr = errors.New("no connection")
	for range 2 {
		if got, err := f.Get(t.Context()); err == nil || got.OAuth {
			t.Errorf("got %+v, error %v, want an error and no defaults", got, err)
		}
	}
	f.listErr = nil
	if got, err := f.Get(t.Context()); err != nil || got.MTLS || !got.OAuth {
		t.Errorf("got %+v, error %v, want the settings of the ConfigMap", got, err)
	}
	var none *corev1.ConfigMap
	if err := f.load(none); err != nil {
		t.Error(err)
	}
	if got, err := f.Get(t.Context()); err != nil || !got.MTLS {
		t.Errorf("got %+v, error %v after the ConfigMap was deleted, want the defaults", got, err)
	}
}

// recorder is an events.EventRecorder that calls a function with the object of each Event.
type recorder func(runtime.Object)

func (r recorder) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) { r(regarding) }

// Each Event refers to one version of the ConfigMap: clients aggregate Events with the same object and reason, and keep only the first note.
// An error is reported once until the ConfigMap has another error or becomes valid.
func TestUpdateReportsEachErrorOnce(t *testing.T) {
	f := newFixture(t)
	var versions []string
	f.options.Recorder = recorder(func(o runtime.Object) {
		regarding, err := reference.GetReference(clientgoscheme.Scheme, o)
		if err != nil {
			t.Fatal(err)
		}
		if regarding.Kind != "ConfigMap" || regarding.Namespace != "opendatahub" || regarding.Name != ConfigMapName || regarding.UID != "uid" {
			t.Errorf("unexpected object of the Event: %+v", regarding)
		}
		versions = append(versions, regarding.ResourceVersion)
	})
	for _, step := range []struct{ version, text string }{
		{"1", "kuberay: [a]"}, {"1", "kuberay: [a]"}, {"2", "kuberay: [a]"}, {"3", "{"}, {"4", ""}, {"5", "{"}, {"6", "kuberay: [a]"},
	} {
		m := configMapOf(step.text)
		m.UID, m.ResourceVersion = "uid", step.version
		f.update(toUnstructured(t, m))
	}
	f.update(nil)
	m := configMapOf("kuberay: [a]")
	m.UID, m.ResourceVersion = "uid", "7"
	f.update(toUnstructured(t, m))
	if got := strings.Join(versions, " "); got != "1 3 5 6 7" {
		t.Errorf("reported the versions %s, want %s", got, "1 3 5 6 7")
	}
}
