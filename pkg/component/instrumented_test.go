package component

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// failingCache is a cache that returns no informer while err is set.
type failingCache struct {
	cache.Cache
	err error
}

func (s *failingCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Cache.GetInformer(ctx, obj, opts...)
}

type cacheManager struct {
	ctrl.Manager
	cache    cache.Cache
	recorder recorder.EventRecorder
}

func (m *cacheManager) GetCache() cache.Cache                          { return m.cache }
func (m *cacheManager) GetEventRecorder(string) recorder.EventRecorder { return m.recorder }

// A component whose caches do not sync does not count as running.
func TestUnsyncedCacheIsNotRunning(t *testing.T) {
	c := &failingCache{Cache: &informertest.FakeInformers{}, err: errors.New("pods is forbidden")}
	mgr := instrument(&cacheManager{cache: c}, "waiting", true)
	mgr.setReady(controllers, true)
	expect := func(when string, want float64) {
		t.Helper()
		if got := valueOf(t, runningGauge.WithLabelValues("waiting")); got != want {
			t.Errorf("%s: running is %v, want %v", when, got, want)
		}
	}
	expect("before a request", 1)
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Pod{}); err == nil {
		t.Fatal("want the error of the cache")
	}
	expect("after a failed request", 0)
	c.err = nil
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	expect("after a successful request", 1)
	mgr.setReady(controllers, false)
	expect("after the component stopped", 0)
}

// Event recorders of components redact credentials.
func TestEventsOfComponentsAreRedacted(t *testing.T) {
	fakeRecorder := events.NewFakeRecorder(1)
	mgr := instrument(&cacheManager{recorder: fakeRecorder}, "redacting", true)
	mgr.GetEventRecorder("x").Eventf(&corev1.Pod{}, nil, "Warning", "Failed", "Connect", "%s", "postgresql://a:hunter2@pg/x is unreachable")
	if got, want := <-fakeRecorder.Events, "Warning Failed postgresql://[redacted]@pg/x is unreachable"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}
