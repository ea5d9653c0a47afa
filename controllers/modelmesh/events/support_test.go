package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a fake etcd: every write gets a revision, watches receive later writes, and compacted revisions are lost.
type store struct {
	mu        sync.Mutex
	clusterID uint64
	revision  int64
	compacted int64 // the revision up to which the history was dropped
	entries   map[string]meshetcd.Entry
	history   []meshetcd.Entry
	err       error         // returned by all calls, unless nil
	stopped   chan struct{} // closed to end all watches
	written   chan struct{} // closed by each write
	lists     int
	watches   map[string]int // by prefix
}

func newStore() *store {
	return &store{
		clusterID: 1, entries: map[string]meshetcd.Entry{}, stopped: make(chan struct{}), written: make(chan struct{}), watches: map[string]int{},
	}
}

func (s *store) write(entry meshetcd.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	entry.Revision = s.revision
	if entry.Deleted {
		delete(s.entries, entry.Key)
	} else {
		s.entries[entry.Key] = entry
	}
	s.history = append(s.history, entry)
	close(s.written)
	s.written = make(chan struct{})
}

func (s *store) put(key, value string) { s.write(meshetcd.Entry{Key: key, Value: []byte(value)}) }
func (s *store) remove(key string)     { s.write(meshetcd.Entry{Key: key, Deleted: true}) }

// fail ends all watches and sets the error of all later calls; nil means none.
func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	close(s.stopped)
	s.stopped = make(chan struct{})
}

// compact drops the history of all writes so far.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
}

func (s *store) List(ctx context.Context, prefix string, keysOnly bool) (meshetcd.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return meshetcd.Listing{}, err
	}
	s.lists++
	listing := meshetcd.Listing{Revision: s.revision, ClusterID: s.clusterID}
	for key, entry := range s.entries {
		if strings.HasPrefix(key, prefix) {
			if keysOnly {
				entry.Value = nil
			}
			listing.Entries = append(listing.Entries, entry)
		}
	}
	return listing, nil
}

func (s *store) Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error {
	s.mu.Lock()
	s.watches[prefix]++
	defer func() {
		s.mu.Lock()
		s.watches[prefix]--
		s.mu.Unlock()
	}()
	for {
		err, stopped, written := s.err, s.stopped, s.written
		var entries []meshetcd.Entry
		for _, entry := range s.history {
			if entry.Revision > after && strings.HasPrefix(entry.Key, prefix) {
				entries = append(entries, entry)
			}
		}
		if after < s.compacted && len(entries) > 0 {
			err = rpctypes.ErrCompacted
		}
		after = s.revision
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			handle(entries)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopped:
			return errors.New("the connection is closed")
		case <-written:
		}
		s.mu.Lock()
	}
}

// counts returns the number of all lists, and of the running watches of a prefix.
func (s *store) counts(prefix string) (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watches[prefix]
}

// storeClient is an etcdClient of a store.
type storeClient struct {
	*store
	rootPrefix string
	closed     *[]string
	name       string
}

func (s storeClient) RootPrefix() string { return s.rootPrefix }

func (s storeClient) Ensure(context.Context, meshetcd.Account) error { return nil }
func (s storeClient) Close() error {
	*s.closed = append(*s.closed, s.name)
	return nil
}

// fixture is a Watcher of fake stores. The key "store" of a Secret selects one.
type fixture struct {
	*Watcher
	clock  *clocktesting.FakeClock
	stores map[string]*store
	closed []string // the stores whose clients are closed; guarded by Watcher.mu

	mu      sync.Mutex
	emitted []Event
	logs    []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), stores: map[string]*store{"a": newStore(), "b": newStore()}}
	f.stores["b"].clusterID = 2
	f.Watcher = NewWatcher(Options{OperatorNamespace: "home", Clock: f.clock, Log: funcr.New(func(_, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logs = append(f.logs, line)
	}, funcr.Options{})})
	f.dial = func(data map[string][]byte) (etcdClient, error) {
		name := string(data["store"])
		if f.stores[name] == nil {
			return nil, fmt.Errorf("no store %s", name)
		}
		return storeClient{store: f.stores[name], rootPrefix: string(data["root"]), closed: &f.closed, name: name}, nil
	}
	f.Subscribe(t.Context(), func(e Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.emitted = append(f.emitted, e)
	})
	return f
}

// start runs the Watcher until the test ends.
func (f *fixture) start(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned error %v", err)
		}
		for name, s := range f.stores {
			for prefix, n := range s.watches {
				if n != 0 {
					t.Errorf("%d watches of %s in store %s did not end", n, prefix, name)
				}
			}
		}
	})
	return f
}

func (f *fixture) connect(t *testing.T, store, root string) {
	t.Helper()
	if err := f.Connect(map[string][]byte{"store": []byte(store), "root": []byte(root)}); err != nil {
		t.Fatal(err)
	}
}

// expect waits until each of these events has been emitted since the last call, in any order. Any other event fails the test.
func (f *fixture) expect(t *testing.T, want ...Event) {
	t.Helper()
	poll.Until(t, 30*time.Second, fmt.Sprintf("%v were emitted", want), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.ContainsFunc(want, func(e Event) bool { return !slices.Contains(f.emitted, e) })
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.emitted {
		if !slices.Contains(want, e) {
			t.Errorf("unexpected event %v", e)
		}
	}
	f.emitted = nil
}

// waitWatched waits until each prefix below the given bases has one watch.
func (f *fixture) waitWatched(t *testing.T, store string, bases ...string) {
	t.Helper()
	for _, base := range bases {
		for _, prefix := range []string{base + "/vmodels/", base + "/registry/"} {
			poll.Until(t, 30*time.Second, prefix+" is watched", func() bool { _, n := f.stores[store].counts(prefix); return n == 1 })
		}
	}
}

// waitUnwatched waits until no prefix below a base has a watch.
func (f *fixture) waitUnwatched(t *testing.T, store, base string) {
	t.Helper()
	for _, prefix := range []string{base + "/vmodels/", base + "/registry/"} {
		poll.Until(t, 30*time.Second, prefix+" is no longer watched", func() bool { _, n := f.stores[store].counts(prefix); return n == 0 })
	}
}

// logCount returns the number of log lines that contain a text.
func (f *fixture) logCount(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, line := range f.logs {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// recordingClock is a clock whose timers fire immediately. It records their durations.
type recordingClock struct {
	*clocktesting.FakeClock
	delays  []time.Duration
	onAfter func(calls int)
}

func (c *recordingClock) After(d time.Duration) <-chan time.Time {
	c.delays = append(c.delays, d)
	c.onAfter(len(c.delays))
	timer := make(chan time.Time, 1)
	timer <- c.Now()
	return timer
}

// minuteWatches is a store whose watches fail after a minute.
type minuteWatches struct {
	*store
	clock *clocktesting.FakeClock
}

func (m minuteWatches) Watch(context.Context, string, int64, func([]meshetcd.Entry)) error {
	m.clock.Step(time.Minute)
	return errors.New("the connection is closed")
}
