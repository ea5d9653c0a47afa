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

// stuck is a cache that returns no informer while err is set.
type stuck struct {
	cache.Cache
	err error
}

func (s *stuck) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Cache.GetInformer(ctx, obj, opts...)
}

type stuckManager struct {
	ctrl.Manager
	cache    cache.Cache
	recorder recorder.EventRecorder
}

func (m *stuckManager) GetCache() cache.Cache                          { return m.cache }
func (m *stuckManager) GetEventRecorder(string) recorder.EventRecorder { return m.recorder }

// A component whose caches do not sync does not count as running.
func TestUnsyncedCacheIsNotRunning(t *testing.T) {
	c := &stuck{Cache: &informertest.FakeInformers{}, err: errors.New("pods is forbidden")}
	mgr := instrument(&stuckManager{cache: c}, "hungry", true)
	mgr.setReady(controllers, true)
	expect := func(when string, want float64) {
		t.Helper()
		if got := valueOf(t, runningGauge.WithLabelValues("hungry")); got != want {
			t.Errorf("%s: running is %v, want %v", when, got, want)
		}
	}
	expect("before it asks", 1)
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Pod{}); err == nil {
		t.Fatal("want an error for an informer of a kind that is not cached")
	}
	expect("while a cache is empty", 0)
	c.err = nil
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	expect("when it has filled", 1)
	mgr.setReady(controllers, false)
	expect("when it does not run", 0)
}

// Event recorders of components redact credentials.
func TestEventsOfComponentsAreRedacted(t *testing.T) {
	recorded := events.NewFakeRecorder(1)
	mgr := instrument(&stuckManager{recorder: recorded}, "quiet", true)
	mgr.GetEventRecorder("x").Eventf(&corev1.Pod{}, nil, "Warning", "Why", "Act", "%s", "postgresql://a:hunter2@pg/x is away")
	if got, want := <-recorded.Events, "Warning Why postgresql://[redacted]@pg/x is away"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}
