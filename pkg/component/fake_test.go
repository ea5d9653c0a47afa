package component

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeManager runs its runnables in goroutines of the test.
type fakeManager struct {
	ctrl.Manager
	t       *testing.T
	elected chan struct{}
	cache   cache.Cache

	mu       sync.Mutex
	added    []manager.Runnable
	run      func(manager.Runnable)
	stopErr  error
	messages []string
}

func newManager(t *testing.T) *fakeManager {
	return &fakeManager{t: t, elected: make(chan struct{}), cache: &informertest.FakeInformers{Scheme: clientgoscheme.Scheme}}
}

func (m *fakeManager) Elected() <-chan struct{}   { return m.elected }
func (m *fakeManager) GetScheme() *runtime.Scheme { return clientgoscheme.Scheme }

func (m *fakeManager) GetCache() cache.Cache { return m.cache }

func (m *fakeManager) GetLogger() logr.Logger {
	return funcr.New(func(_, args string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.messages = append(m.messages, args)
	}, funcr.Options{})
}

// Add implements manager.Manager. A runnable that is added after start runs immediately, or after the election.
func (m *fakeManager) Add(r manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added = append(m.added, r)
	if m.run != nil {
		m.run(r)
	}
	return nil
}

// start runs the runnables in the synctest bubble. As in controller-runtime, the first error of a runnable stops the manager.
func (m *fakeManager) start() (stop func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.t.Context())
	var running sync.WaitGroup
	m.run = func(r manager.Runnable) {
		running.Go(func() {
			if le, ok := r.(manager.LeaderElectionRunnable); !ok || le.NeedLeaderElection() {
				select {
				case <-m.elected:
				case <-ctx.Done():
					return
				}
			}
			if err := r.Start(ctx); err != nil && ctx.Err() == nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.stopErr = err
				cancel()
			}
		})
	}
	m.mu.Lock()
	for _, r := range m.added {
		m.run(r)
	}
	m.mu.Unlock()
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// stopError returns the error that stopped the manager, if any.
func (m *fakeManager) stopError() error {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopErr
}

// fakeCapabilities is a CapabilitySource that the test controls.
type fakeCapabilities struct {
	singleton.Listeners[capability.Set]
	mu      sync.Mutex
	current capability.Set
}

func (c *fakeCapabilities) Current() capability.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *fakeCapabilities) OnChange(ctx context.Context, notify func(capability.Set)) {
	c.Subscribe(ctx, notify)
	notify(c.Current())
}

func (c *fakeCapabilities) set(kinds ...schema.GroupVersionKind) {
	c.mu.Lock()
	c.current = capability.NewSet(kinds...)
	set := c.current
	c.mu.Unlock()
	c.Notify(set)
}

// worker is a runnable that counts its runs.
type worker struct {
	mu             sync.Mutex
	running, total int
	maxRunning     int
}

func (w *worker) Start(ctx context.Context) error {
	w.mu.Lock()
	w.running++
	w.total++
	w.maxRunning = max(w.maxRunning, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
	}()
	<-ctx.Done()
	return ctx.Err()
}

func (w *worker) expectRuns(t *testing.T, running, total int) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running != running || w.total != total || w.maxRunning > 1 {
		t.Errorf("got %d running of %d started workers, at most %d concurrently; want %d of %d", w.running, w.total, w.maxRunning, running, total)
	}
}

// standby is a worker without leader election.
type standby struct{ worker }

func (s *standby) NeedLeaderElection() bool { return false }

// advance advances the virtual time and waits until all goroutines block.
func advance(d time.Duration) {
	<-time.After(d) // virtual time of the synctest bubble
	synctest.Wait()
}

func enableAll(string) bool { return true }
