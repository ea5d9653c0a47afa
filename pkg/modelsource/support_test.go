package modelsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func inFraud(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "fraud", Name: name}
}

func entry(name string, version int, path string) *Entry {
	return &Entry{
		Model:   modelmesh.Model{Source: "plugin", Namespace: "fraud", Name: name, Spec: v1alpha1.PredictorSpec{Path: path}},
		Version: strconv.Itoa(version),
	}
}

// backend is a store with versions, as an API server is one. It serves both kinds of sources.
type backend struct {
	mu        sync.Mutex
	revision  int
	oldest    int // what happened up to here is forgotten
	entries   map[string]*Entry
	history   []Change
	moved     chan struct{}
	cut       chan struct{}
	down      error
	lists     int
	watches   int
	refuse    bool // status updates are outdated
	broken    error
	unordered bool // says what happened twice, and once more afterwards
}

func newBackend() *backend {
	return &backend{entries: map[string]*Entry{}, moved: make(chan struct{}), cut: make(chan struct{})}
}

func (b *backend) write(name, path string, deleted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeLocked(name, path, deleted, v1alpha1.PredictorStatus{})
}

func (b *backend) writeLocked(name, path string, deleted bool, status v1alpha1.PredictorStatus) *Entry {
	b.revision++
	e := entry(name, b.revision, path)
	e.Status = status
	if deleted {
		delete(b.entries, name)
	} else {
		b.entries[name] = e
	}
	b.history = append(b.history, Change{Entry: e, Deleted: deleted})
	close(b.moved)
	b.moved = make(chan struct{})
	return e
}

func (b *backend) put(name, path string) { b.write(name, path, false) }
func (b *backend) remove(name string)    { b.write(name, "", true) }

// disconnect ends all watches and refuses everything until reconnect.
func (b *backend) disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = errors.New("disconnected")
	close(b.cut)
	b.cut = make(chan struct{})
}

func (b *backend) reconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = nil
}

// forget loses the history.
func (b *backend) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.oldest = b.revision
}

func (b *backend) List(ctx context.Context) ([]*Entry, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists++
	if err := errors.Join(ctx.Err(), b.down); err != nil {
		return nil, "", err
	}
	var out []*Entry
	for _, e := range b.entries {
		out = append(out, e)
	}
	return out, strconv.Itoa(b.revision), nil
}

func (b *backend) Watch(ctx context.Context, after string, handle func(Change)) error {
	from, err := strconv.Atoi(after)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.watches++
	for {
		if from < b.oldest {
			b.mu.Unlock()
			return fmt.Errorf("watching: %w", ErrTooOld)
		}
		down, cut, moved := b.down, b.cut, b.moved
		var news []Change
		for _, c := range b.history {
			if n, _ := strconv.Atoi(c.Entry.Version); n > from {
				news = append(news, c)
			}
		}
		from = b.revision
		again := b.unordered
		b.mu.Unlock()
		if down != nil {
			return down
		}
		for i, c := range news {
			handle(c)
			if again {
				handle(news[0])
				handle(news[i])
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-cut:
			return errors.New("cut")
		case <-moved:
		}
		b.mu.Lock()
	}
}

// mute ends watches and streams at once, and breaks its word in that it says no reason.
type mute struct{ *backend }

func (mute) Watch(context.Context, string, func(Change)) error { return nil }
func (mute) Stream(context.Context, func(Change)) error        { return nil }

// Stream implements Feed: everything, and then what changes.
func (b *backend) Stream(ctx context.Context, handle func(Change)) error {
	entries, version, err := b.List(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		handle(Change{Entry: e})
	}
	return b.Watch(ctx, version, handle)
}

func (b *backend) UpdateStatus(_ context.Context, e *Entry, status v1alpha1.PredictorStatus) (*Entry, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse || b.broken != nil {
		return nil, false, b.broken
	}
	return b.writeLocked(e.Model.Name, e.Model.Spec.Path, false, status), true, nil
}

func (b *backend) counts() (lists, watches int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists, b.watches
}

// fixture is a source and what it told.
type fixture struct {
	*backend
	clock *clocktesting.FakeClock

	mu   sync.Mutex
	told map[string]int
	logs []string
}

func newFixture() *fixture {
	return &fixture{backend: newBackend(), clock: clocktesting.NewFakeClock(time.Unix(0, 0)), told: map[string]int{}}
}

func (f *fixture) options() Options {
	return Options{Name: "plugin", Title: "models of a plugin", Clock: f.clock, Log: funcr.New(func(_, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logs = append(f.logs, line)
	}, funcr.Options{})}
}

// start subscribes, starts and waits until the source knows what there is.
func (f *fixture) start(t *testing.T, s Source) {
	t.Helper()
	s.Subscribe(t.Context(), func(name types.NamespacedName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.told[name.Name]++
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	started := make(chan error, 1)
	go func() { started <- s.Start(ctx) }()
	for {
		select {
		case err := <-started:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-time.After(time.Millisecond):
			if f.clock.HasWaiters() {
				f.clock.Step(silence)
			}
		}
	}
}

// expect waits until each of the names was told exactly once since the last call, and nothing else.
func (f *fixture) expect(t *testing.T, names ...string) {
	t.Helper()
	f.heard(t, names...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if f.told[name] != 1 {
			t.Errorf("%s was told %d times", name, f.told[name])
		}
		delete(f.told, name)
	}
	if len(f.told) != 0 {
		t.Errorf("told besides: %v", f.told)
	}
	f.told = map[string]int{}
}

// heard waits until all the names were told.
func (f *fixture) heard(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v were told", names), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.ContainsFunc(names, func(name string) bool { return f.told[name] == 0 })
	})
}

// forgive takes back one word about a name, if there was one: a status that is written may be heard of as well.
func (f *fixture) forgive(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told[name] == 1 {
		delete(f.told, name)
	}
}

// watched waits until so many watches were opened.
func (f *fixture) watched(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the watch runs", func() bool { _, watches := f.counts(); return watches == n })
}

// resume ends the pause after trouble.
func (f *fixture) resume(t *testing.T) {
	t.Helper()
	eventually(t, "the source pauses", f.clock.HasWaiters)
	f.clock.Step(retryPause)
}

func (f *fixture) logged(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(strings.Join(f.logs, "\n"), text)
}

// eventually polls a condition; nothing here has an event to wait for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s", what)
		case <-tick.C:
		}
	}
}
