package events

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

const (
	fraud = "root/mm_ns/fraud/mm/mesh"
	home  = "root/mm/mesh"
)

func ksp(namespace, name string) Event { return Event{Source: "ksp", Namespace: namespace, Name: name} }
func isvc(namespace, name string) Event {
	return Event{Source: "isvc", Namespace: namespace, Name: name}
}

func TestKeyPrefix(t *testing.T) {
	for want, got := range map[string]string{
		"root/mm/mesh":            KeyPrefix("root", "home", "home", "mesh"),
		"root/mm_ns/fraud/mm/svc": KeyPrefix("root", "home", "fraud", "svc"),
		"/mm/mesh":                KeyPrefix("", "home", "home", "mesh"),
		"/mm_ns/fraud/mm/mesh":    KeyPrefix("", "home", "fraud", "mesh"),
	} {
		if got != want {
			t.Errorf("base %q, want %q", got, want)
		}
	}
}

func TestOwnerOfEtcdValues(t *testing.T) {
	for value, want := range map[string]string{
		`{"o":"isvc","amid":"digits__isvc-6b2eb0b8bf"}`: "isvc",
		`{"o":""}`:          "ksp",
		`{"amid":"digits"}`: "ksp",
		`{}`:                "ksp",
	} {
		if got, _, err := parseVModel("m", []byte(value)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", value, got, err, want)
		}
	}
	for _, value := range []string{"", "no", `{"o":1}`, `[]`} {
		if got, _, err := parseVModel("m", []byte(value)); err == nil {
			t.Errorf("%q: owner %q, want an error", value, got)
		}
	}
}

func TestParseModelID(t *testing.T) {
	for id, want := range map[string][2]string{
		"digits__isvc-6b2eb0b8bf":         {"isvc", "digits"},
		"digits.v2-a__ksp-7702c1b55a":     {"ksp", "digits.v2-a"},
		"digits__my-plugin-7702c1b55a":    {"my-plugin", "digits"},
		"digits__ksp-zzzzzzzzzz":          {"ksp", "digits"},
		"digits__a_b-7702c1b55a":          {"a_b", "digits"},
		"digits__weird__thing-7702c1b55a": {"weird__thing", "digits"},
	} {
		if source, name, err := parseModelID(id, nil); err != nil || source != want[0] || name != want[1] {
			t.Errorf("%s: %q %q, %v, want %v", id, source, name, err, want)
		}
	}
	for _, id := range []string{
		"", "digits", "__ksp-7702c1b55a", "digits__-7702c1b55a", "digits__ksp", "digits__7702c1b55a", "digits__ksp-7702c1b55", "digits__ksp-77-2c1b55a",
		"digits_ksp-7702c1b55a", "digits__ksp_7702c1b55a",
	} {
		if source, name, err := parseModelID(id, nil); err == nil {
			t.Errorf("%q: %q %q, want no answer", id, source, name)
		}
	}
}

func TestNotifiesOfListAndChanges(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.put(fraud+"/vmodels/digits", `{"o":"isvc"}`)
	etcd.put(fraud+"/vmodels/plain", `{}`)
	etcd.put(fraud+"/vmodels/broken", `no JSON`)
	etcd.put(fraud+"/registry/cats__ksp-7702c1b55a", `{}`)
	etcd.put(fraud+"/registry/strange", `{}`)
	etcd.put(fraud+"/instances/abc", `{}`)
	etcd.put(home+"/vmodels/at-home", `{"o":"ksp"}`)
	etcd.put("root/mm_ns/fraud2/mm/mesh/vmodels/foreign", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, isvc("fraud", "digits"), ksp("fraud", "plain"), ksp("fraud", "cats"))
	if f.logged("broken") != 1 || f.logged("strange") != 1 {
		t.Errorf("unknown keys were not logged: %v", f.logs)
	}

	f.Ensure("home", "mesh")
	f.expect(t, ksp("home", "at-home"))
	f.watched(t, "a", fraud, home)

	etcd.put(fraud+"/vmodels/digits", `{"o":"isvc","amid":"x"}`)
	f.expect(t, isvc("fraud", "digits"))
	etcd.put(fraud+"/registry/digits__isvc-6b2eb0b8bf", `{}`)
	f.expect(t, isvc("fraud", "digits"))
	etcd.remove(fraud + "/registry/digits__isvc-6b2eb0b8bf") // no event
	etcd.remove(fraud + "/vmodels/never-there")
	etcd.remove(fraud + "/vmodels/broken")
	etcd.remove(fraud + "/vmodels/plain")
	f.expect(t, ksp("fraud", "plain"))
	etcd.put(fraud+"/vmodels/digits", `{"o":"ksp"}`)
	f.expect(t, isvc("fraud", "digits"), ksp("fraud", "digits"))
	etcd.put(fraud+"/vmodels/digits", `broken`)
	f.expect(t, ksp("fraud", "digits"))
	etcd.remove(fraud + "/vmodels/digits")
	etcd.put(home+"/vmodels/at-home", `{}`)
	f.expect(t, ksp("home", "at-home"))
}

// [M32] The watches of a namespace end when it is forgotten.
func TestEnsureAndForgetWatches(t *testing.T) {
	f := newFixture(t)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.start(t)
	f.watched(t, "a", fraud)
	f.Ensure("fraud", "mesh")
	f.Ensure("fraud", "") // [M32] a Service without a name is not watched
	f.Ensure("sales", "")
	if lists, _ := f.stores["a"].counts(""); lists != 2 {
		t.Errorf("%d lists, want one for each of the two prefixes", lists)
	}

	f.Ensure("fraud", "other")
	f.watched(t, "a", "root/mm_ns/fraud/mm/other")
	f.unwatched(t, "a", fraud)
	f.Forget("fraud")
	f.Forget("fraud")
	f.Forget("sales")
	f.unwatched(t, "a", "root/mm_ns/fraud/mm/other")

	f.Ensure("fraud", "mesh")
	f.watched(t, "a", fraud)
	if err := f.Connect(nil); err != nil {
		t.Fatal(err)
	}
	f.unwatched(t, "a", fraud)
	f.connect(t, "a", "root")
	f.watched(t, "a", fraud)
}

func TestReconnectsOnNewSecret(t *testing.T) {
	f := newFixture(t).start(t)
	a, b := f.stores["a"], f.stores["b"]
	a.put(fraud+"/vmodels/stays", `{}`)
	a.put(fraud+"/vmodels/goes", `{}`)
	b.put("elsewhere/mm_ns/fraud/mm/mesh/vmodels/stays", `{}`)
	b.put("elsewhere/mm_ns/fraud/mm/mesh/vmodels/comes", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "stays"), ksp("fraud", "goes"))
	f.watched(t, "a", fraud)
	f.connect(t, "a", "root")
	if lists, _ := a.counts(""); lists != 2 {
		t.Errorf("%d lists, want 2: the same Secret again is no change", lists)
	}

	if err := f.Connect(map[string][]byte{"store": []byte("missing")}); err == nil {
		t.Fatal("an invalid Secret was not rejected")
	}
	f.watched(t, "a", fraud)
	a.put(fraud+"/vmodels/stays", `{"failed":true}`)
	f.expect(t, ksp("fraud", "stays")) // the previous connection is still used

	f.connect(t, "b", "elsewhere")
	f.expect(t, ksp("fraud", "stays"), ksp("fraud", "comes"), ksp("fraud", "goes"))
	f.unwatched(t, "a", fraud)
	f.watched(t, "b", "elsewhere/mm_ns/fraud/mm/mesh")
	if !slices.Equal(f.closed, []string{"a"}) {
		t.Errorf("closed %v, want the former client", f.closed)
	}
}

// [M32] Keys deleted while no watch ran are emitted, also by the first watch.
func TestWatcherReportsKeysDeletedBeforeWatch(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.put(fraud+"/vmodels/stays", `{}`)
	etcd.put(fraud+"/vmodels/goes", `{"o":"isvc"}`)
	etcd.put(fraud+"/registry/goes__isvc-6b2eb0b8bf", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "stays"), isvc("fraud", "goes"))
	f.watched(t, "a", fraud)

	etcd.fail(errors.New("away"))
	f.unwatched(t, "a", fraud)
	etcd.remove(fraud + "/vmodels/goes")
	etcd.remove(fraud + "/registry/goes__isvc-6b2eb0b8bf")
	etcd.put(fraud+"/vmodels/comes", `{}`)
	etcd.compact()
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, isvc("fraud", "goes"), ksp("fraud", "comes")) // no events for unchanged keys
	f.watched(t, "a", fraud)
	etcd.put(fraud+"/vmodels/stays", `{}`)
	f.expect(t, ksp("fraud", "stays"))
}

// A store that lost its data restarts its revisions: they must not be compared with the previous ones.
func TestStoreWithResetRevisions(t *testing.T) {
	f := newFixture(t).start(t)
	f.stores["a"].put(fraud+"/vmodels/digits", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "digits"))
	f.watched(t, "a", fraud)

	etcd := f.stores["a"]
	etcd.mu.Lock()
	etcd.cluster, etcd.history = 7, nil
	etcd.mu.Unlock()
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, ksp("fraud", "digits"))
}

// [M5] [M32] An outage causes exponential backoff and no panic, and a watch can be stopped during it.
func TestWatcherBacksOffDuringOutage(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.fail(errors.New("connection refused"))
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	for range 10 {
		f.resume(t, 2)
	}
	f.paused(t, 2)
	if got := f.logged("connection refused"); got != 2 {
		t.Errorf("%d log lines, want one for each watch", got)
	}
	etcd.put(fraud+"/vmodels/digits", `{}`)
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, ksp("fraud", "digits"))
	f.watched(t, "a", fraud)
	poll.Until(t, 30*time.Second, "the end of the trouble was logged", func() bool { return f.logged("watched in etcd again") == 2 })

	etcd.fail(errors.New("connection refused"))
	f.unwatched(t, "a", fraud)
	lists, _ := etcd.counts("")
	f.Forget("fraud")
	etcd.fail(nil)
	f.clock.Step(2 * maxBackoff)
	f.expect(t)
	if again, _ := etcd.counts(""); again != lists {
		t.Errorf("%d lists for a namespace that is forgotten", again-lists)
	}
}

// paused waits until the given number of watches pause.
func (f *fixture) paused(t *testing.T, watches int) {
	t.Helper()
	poll.Until(t, 30*time.Second, "the watches pause", func() bool { return f.clock.Waiters() == watches })
}

// resume ends the pauses of the given number of watches.
func (f *fixture) resume(t *testing.T, watches int) {
	t.Helper()
	f.paused(t, watches)
	f.clock.Step(2 * maxBackoff)
}

func TestBackoffGrowsAndResets(t *testing.T) {
	clk := &pauses{FakeClock: newFixture(t).clock}
	down := newStore()
	down.fail(errors.New("no"))
	w := &prefixWatch{client: down, prefix: "p/", gauge: watchingGauge.WithLabelValues("n", "p"), clock: clk, log: newFixture(t).Log, notify: func(Event) {}, parse: parseVModel, namespace: "n"}
	ctx, cancel := withCancel(t)
	clk.after = func(n int) {
		if n == 9 {
			cancel()
		}
	}
	w.run(ctx)
	low := minBackoff
	for i, got := range clk.requests {
		if high := low + low/5; got < low || got > high {
			t.Errorf("pause %d is %v, want between %v and %v", i, got, low, high)
		}
		low = min(2*low, maxBackoff)
	}
	if len(clk.requests) != 9 {
		t.Fatalf("%d pauses", len(clk.requests))
	}

	// A watch that ran for a while restarts with the shortest pause.
	clk.requests = nil
	ctx, cancel = withCancel(t)
	w.client = held{store: newStore(), clock: clk.FakeClock}
	clk.after = func(n int) {
		if n == 3 {
			cancel()
		}
	}
	w.run(ctx)
	for i, got := range clk.requests {
		if got > minBackoff+minBackoff/5 {
			t.Errorf("pause %d is %v, want the shortest", i, got)
		}
	}
}

// [M30] A namespace may use a separate etcd, whose prefix belongs to it alone.
func TestSeparateEtcdOfNamespace(t *testing.T) {
	f := newFixture(t).start(t)
	own := map[string][]byte{"store": []byte("b"), "root": []byte("mine")}
	for _, data := range []map[string][]byte{own, nil} {
		if err := f.ConnectOwn("fraud", data); err != nil {
			t.Fatal(err) // the namespace was not requested yet
		}
	}
	f.connect(t, "a", "root")
	f.stores["a"].put(fraud+"/vmodels/shared", `{}`)
	f.stores["a"].put("root/mm_ns/sales/mm/mesh/vmodels/other", `{}`)
	f.stores["b"].put("mine/mm/mesh/vmodels/digits", `{}`)
	f.Ensure("fraud", "mesh")
	f.Ensure("sales", "mesh")
	f.expect(t, ksp("fraud", "shared"), ksp("sales", "other"))
	f.watched(t, "a", fraud)

	if err := f.ConnectOwn("fraud", own); err != nil {
		t.Fatal(err)
	}
	f.expect(t, ksp("fraud", "digits"), ksp("fraud", "shared"))
	f.watched(t, "b", "mine/mm/mesh")
	f.unwatched(t, "a", fraud)
	lists, _ := f.stores["b"].counts("")
	if err := f.ConnectOwn("fraud", own); err != nil {
		t.Fatal(err)
	}
	if err := f.ConnectOwn("fraud", map[string][]byte{"store": []byte("missing")}); err == nil {
		t.Error("an invalid Secret was not rejected")
	}
	f.connect(t, "a", "moved") // affects only the other namespaces
	f.expect(t, ksp("sales", "other"))
	f.stores["b"].put("mine/mm/mesh/vmodels/digits", `{"failed":true}`)
	f.expect(t, ksp("fraud", "digits"))
	if again, _ := f.stores["b"].counts(""); again != lists {
		t.Errorf("%d more lists of what did not change", again-lists)
	}
	f.Ensure("fraud", "renamed")
	f.watched(t, "b", "mine/mm/renamed")
	f.expect(t, ksp("fraud", "digits"))

	if err := f.ConnectOwn("fraud", nil); err != nil {
		t.Fatal(err)
	}
	f.watched(t, "a", "moved/mm_ns/fraud/mm/renamed")
	f.unwatched(t, "b", "mine/mm/renamed")
	if err := f.ConnectOwn("fraud", own); err != nil {
		t.Fatal(err)
	}
	f.watched(t, "b", "mine/mm/renamed")
	if err := f.Connect(nil); err != nil {
		t.Fatal(err)
	}
	f.unwatched(t, "a", "moved/mm_ns/sales/mm/mesh")
	f.watched(t, "b", "mine/mm/renamed")
	f.Forget("fraud")
	f.unwatched(t, "b", "mine/mm/renamed")
	if want := []string{"b", "a", "b", "a", "b"}; !slices.Equal(f.closed, want) {
		t.Errorf("closed %v, want %v", f.closed, want)
	}
}

func TestConcurrentNamespaces(t *testing.T) {
	f := newFixture(t).start(t)
	f.connect(t, "a", "")
	var want []Event
	for i := range 20 {
		namespace := fmt.Sprintf("n%d", i)
		f.stores["a"].put(KeyPrefix("", "home", namespace, "mesh")+"/vmodels/m", `{}`)
		want = append(want, ksp(namespace, "m"))
		f.Ensure(namespace, "mesh")
	}
	f.expect(t, want...)
	for i := range 20 {
		f.Forget(fmt.Sprintf("n%d", i))
	}
	poll.Until(t, 30*time.Second, "nothing is watched", func() bool {
		f.stores["a"].mu.Lock()
		defer f.stores["a"].mu.Unlock()
		for _, n := range f.stores["a"].watching {
			if n != 0 {
				return false
			}
		}
		return true
	})
}

func TestStoppedWatcherStartsNoWatch(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := withCancel(t)
	cancel()
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	f.connect(t, "a", "root")
	f.Ensure("fraud", "mesh")
	if lists, _ := f.stores["a"].counts(""); lists != 0 {
		t.Errorf("%d lists after the end", lists)
	}
	if err := f.Connect(nil); err != nil || len(f.closed) != 1 {
		t.Errorf("closed %v, error %v", f.closed, err)
	}
}
