package clusterdomain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func ingress(spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion("config.openshift.io/v1")
	u.SetKind("Ingress")
	u.SetName("cluster")
	return u
}

// [R27] spec.appsDomain overrides spec.domain, because Routes without a host use it.
func TestFromIngress(t *testing.T) {
	for name, test := range map[string]struct {
		config *unstructured.Unstructured
		want   string
	}{
		"no object":                 {nil, ""},
		"no spec":                   {&unstructured.Unstructured{Object: map[string]any{}}, ""},
		"domain":                    {ingress(map[string]any{"domain": "apps.example.org"}), "apps.example.org"},
		"appsDomain":                {ingress(map[string]any{"domain": "apps.example.org", "appsDomain": "own.example.org"}), "own.example.org"},
		"appsDomain is empty":       {ingress(map[string]any{"domain": "apps.example.org", "appsDomain": ""}), "apps.example.org"},
		"leading and trailing dots": {ingress(map[string]any{"domain": " .apps.example.org. "}), "apps.example.org"},
		"unexpected schema":         {ingress(map[string]any{"appsDomain": int64(1), "domain": "apps.example.org"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FromIngress(test.config); got != test.want {
				t.Errorf("got domain %q, want %q", got, test.want)
			}
		})
	}
}

func TestPrefer(t *testing.T) {
	for name, test := range map[string]struct{ configured, discovered, want string }{
		"configured": {"mine.example.org", "apps.example.org", "mine.example.org"},
		"no setting": {" ", "apps.example.org", "apps.example.org"},
		"no domain":  {"", "", ""},
		"dots":       {".mine.example.org.", "", "mine.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Prefer(test.configured, test.discovered); got != test.want {
				t.Errorf("got domain %q, want %q", got, test.want)
			}
		})
	}
}

func newWatcher(objects ...runtime.Object) (*Watcher, *fake.FakeDynamicClient) {
	c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "IngressList"}, objects...)
	return NewWatcher(c, clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard()), c
}

func TestWatcherReportsChanges(t *testing.T) {
	w, c := newWatcher(ingress(map[string]any{"domain": "apps.example.org"}))
	reported := make(chan string, 10)
	w.Subscribe(t.Context(), func(domain string) { reported <- domain })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	if got := w.Domain(); got != "" {
		t.Errorf("got domain %q before the first read, want none", got)
	}
	w.SetServed(true)
	if notified, got := <-reported, w.Domain(); got != "apps.example.org" || notified != got {
		t.Errorf("got domain %q, and the listener %q, want apps.example.org", got, notified)
	}
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(c.Actions()) >= 2 })
	if _, err := c.Resource(resource).Update(t.Context(), ingress(map[string]any{"domain": "apps.example.org", "appsDomain": "new.example.org"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if notified, got := <-reported, w.Domain(); got != "new.example.org" || notified != got {
		t.Errorf("got domain %q, and the listener %q, want new.example.org", got, notified)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// HasSynced reports false until the API server has responded.
func TestHasSynced(t *testing.T) {
	for name, respond := range map[string]func(*Watcher){
		"a domain":      func(w *Watcher) { w.OnUpdate(ingress(map[string]any{"domain": "one.example.org"})) },
		"no object":     func(w *Watcher) { w.OnUpdate(nil) },
		"no permission": func(w *Watcher) { w.OnUnavailable() },
	} {
		w, _ := newWatcher()
		w.SetServed(true)
		if w.HasSynced() {
			t.Errorf("%s: HasSynced reports true before a response", name)
		}
		if respond(w); !w.HasSynced() {
			t.Errorf("%s: HasSynced reports false after a response", name)
		}
	}
}

func TestChangesTriggerController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWatcher()
		w.SetServed(true)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
		if err := w.EventSource(object, &handler.EnqueueRequestForObject{}).Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		update := func(domain string, requests int) {
			w.OnUpdate(ingress(map[string]any{"domain": domain}))
			if synctest.Wait(); queue.Len() != requests {
				t.Fatalf("got %d requests after the update to %s, want %d", queue.Len(), domain, requests)
			}
		}
		update("one.example.org", 1)
		got, _ := queue.Get()
		if got.Name != "b" || got.Namespace != "a" {
			t.Errorf("got request %v, want a/b", got)
		}
		queue.Done(got)
		update("one.example.org", 0)
		update("two.example.org", 1)
	})
}
