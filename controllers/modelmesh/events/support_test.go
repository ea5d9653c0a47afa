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

// store behaves like etcd: every write has a revision, watches receive later writes, and compacted revisions are lost.
type store struct {
	mu        sync.Mutex
	cluster   uint64
	revision  int64
	compacted int64
	entries   map[string]meshetcd.Entry
	history   []meshetcd.Entry
	down      error
	cut       chan struct{} // closed to end all watches
	moved     chan struct{} // closed when something was written
	lists     int
	watching  map[string]int
}

func newStore() *store {
	return &store{
		cluster: 1, entries: map[string]meshetcd.Entry{}, cut: make(chan struct{}), moved: make(chan struct{}), watching: map[string]int{},
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
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *store) put(key, value string) { s.write(meshetcd.Entry{Key: key, Value: []byte(value)}) }
func (s *store) remove(key string)     { s.write(meshetcd.Entry{Key: key, Deleted: true}) }

// fail ends all watches and fails all calls with the error, until it is nil.
func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
	close(s.cut)
	s.cut = make(chan struct{})
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
	if err := errors.Join(ctx.Err(), s.down); err != nil {
		return meshetcd.Listing{}, err
	}
	s.lists++
	out := meshetcd.Listing{Revision: s.revision, ClusterID: s.cluster}
	for key, entry := range s.entries {
		if strings.HasPrefix(key, prefix) {
			if keysOnly {
				entry.Value = nil
			}
			out.Entries = append(out.Entries, entry)
		}
	}
	return out, nil
}

func (s *store) Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error {
	s.mu.Lock()
	s.watching[prefix]++
	defer func() {
		s.mu.Lock()
		s.watching[prefix]--
		s.mu.Unlock()
	}()
	for {
		down, cut, moved := s.down, s.cut, s.moved
		var entries []meshetcd.Entry
		for _, entry := range s.history {
			if entry.Revision > after && strings.HasPrefix(entry.Key, prefix) {
				entries = append(entries, entry)
			}
		}
		if after < s.compacted && len(entries) > 0 {
			down = rpctypes.ErrCompacted
		}
		after = s.revision
		s.mu.Unlock()
		if down != nil {
			return down
		}
		if len(entries) > 0 {
			handle(entries)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-cut:
			return errors.New("the connection broke")
		case <-moved:
		}
		s.mu.Lock()
	}
}

// counts returns the number of lists and of running watches of a prefix.
func (s *store) counts(prefix string) (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watching[prefix]
}

// session is a client of a store.
type session struct {
	*store
	root   string
	closed *[]string
	name   string
}

func (s session) RootPrefix() string { return s.root }

func (s session) Ensure(context.Context, meshetcd.Account) error { return nil }
func (s session) Close() error {
	*s.closed = append(*s.closed, s.name)
	return nil
}

// fixture is a Watcher on the stores that the Secret names under "store".
type fixture struct {
	*Watcher
	clock  *clocktesting.FakeClock
	stores map[string]*store
	closed []string // clients, guarded by the stream

	mu      sync.Mutex
	emitted []Event
	logs    []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), stores: map[string]*store{"a": newStore(), "b": newStore()}}
	f.stores["b"].cluster = 2
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
		return session{store: f.stores[name], root: string(data["root"]), closed: &f.closed, name: name}, nil
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
			t.Errorf("the stream returned error %v", err)
		}
		for name, s := range f.stores {
			for prefix, n := range s.watching {
				if n != 0 {
					t.Errorf("%d watches of %s in store %s are left", n, prefix, name)
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

// expect waits until exactly these events were emitted since the last call, in any order, each at least once.
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
			t.Errorf("emitted %v, which was not expected", e)
		}
	}
	f.emitted = nil
}

// watched waits until one watch runs on each of the prefixes of a base.
func (f *fixture) watched(t *testing.T, name string, bases ...string) {
	t.Helper()
	for _, base := range bases {
		for _, prefix := range []string{base + "/vmodels/", base + "/registry/"} {
			poll.Until(t, 30*time.Second, prefix+" is watched", func() bool { _, n := f.stores[name].counts(prefix); return n == 1 })
		}
	}
}

// unwatched waits until no watch runs on a base.
func (f *fixture) unwatched(t *testing.T, name, base string) {
	t.Helper()
	for _, prefix := range []string{base + "/vmodels/", base + "/registry/"} {
		poll.Until(t, 30*time.Second, prefix+" is no longer watched", func() bool { _, n := f.stores[name].counts(prefix); return n == 0 })
	}
}

func (f *fixture) logged(text string) int {
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

// pauses is a clock that does not advance and records the requested pauses.
type pauses struct {
	*clocktesting.FakeClock
	requests []time.Duration
	after    func(n int)
}

func (p *pauses) After(d time.Duration) <-chan time.Time {
	p.requests = append(p.requests, d)
	p.after(len(p.requests))
	now := make(chan time.Time, 1)
	now <- p.Now()
	return now
}

// held is a store whose watches run for a minute.
type held struct {
	*store
	clock *clocktesting.FakeClock
}

func (h held) Watch(context.Context, string, int64, func([]meshetcd.Entry)) error {
	h.clock.Step(time.Minute)
	return errors.New("broken after a minute")
}
