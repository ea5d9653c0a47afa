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
	fraudPrefix = "root/mm_ns/fraud/mm/mesh"
	homePrefix  = "root/mm/mesh"
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
			t.Errorf("prefix %q, want %q", got, want)
		}
	}
}

func TestParseVModel(t *testing.T) {
	for value, want := range map[string]string{
		`{"o":"isvc","amid":"digits__isvc-6b2eb0b8bf"}`: "isvc",
		`{"o":""}`:          "ksp",
		`{"amid":"digits"}`: "ksp",
		`{}`:                "ksp",
	} {
		if got, _, err := parseVModel("m", []byte(value)); err != nil || got != want {
			t.Errorf("%s: source %q, error %v, want %q", value, got, err, want)
		}
	}
	for _, value := range []string{"", "invalid", `{"o":1}`, `[]`} {
		if got, _, err := parseVModel("m", []byte(value)); err == nil {
			t.Errorf("%q: source %q, want an error", value, got)
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
			t.Errorf("%s: source %q, name %q, error %v, want %v", id, source, name, err, want)
		}
	}
	for _, id := range []string{
		"", "digits", "__ksp-7702c1b55a", "digits__-7702c1b55a", "digits__ksp", "digits__7702c1b55a", "digits__ksp-7702c1b55", "digits__ksp-77-2c1b55a",
		"digits_ksp-7702c1b55a", "digits__ksp_7702c1b55a",
	} {
		if source, name, err := parseModelID(id, nil); err == nil {
			t.Errorf("%q: source %q, name %q, want an error", id, source, name)
		}
	}
}

func TestWatcherReportsListedAndChangedModels(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.put(fraudPrefix+"/vmodels/digits", `{"o":"isvc"}`)
	etcd.put(fraudPrefix+"/vmodels/plain", `{}`)
	etcd.put(fraudPrefix+"/vmodels/broken", `not JSON`)
	etcd.put(fraudPrefix+"/registry/cats__ksp-7702c1b55a", `{}`)
	etcd.put(fraudPrefix+"/registry/malformed", `{}`)
	etcd.put(fraudPrefix+"/instances/abc", `{}`)
	etcd.put(homePrefix+"/vmodels/local", `{"o":"ksp"}`)
	etcd.put("root/mm_ns/fraud2/mm/mesh/vmodels/foreign", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, isvc("fraud", "digits"), ksp("fraud", "plain"), ksp("fraud", "cats"))
	if f.logCount("broken") != 1 || f.logCount("malformed") != 1 {
		t.Errorf("logs %v, want one line for each invalid entry", f.logs)
	}

	f.Ensure("home", "mesh")
	f.expect(t, ksp("home", "local"))
	f.waitWatched(t, "a", fraudPrefix, homePrefix)

	etcd.put(fraudPrefix+"/vmodels/digits", `{"o":"isvc","amid":"x"}`)
	f.expect(t, isvc("fraud", "digits"))
	etcd.put(fraudPrefix+"/registry/digits__isvc-6b2eb0b8bf", `{}`)
	f.expect(t, isvc("fraud", "digits"))
	etcd.remove(fraudPrefix + "/registry/digits__isvc-6b2eb0b8bf") // no event
	etcd.remove(fraudPrefix + "/vmodels/absent")
	etcd.remove(fraudPrefix + "/vmodels/broken")
	etcd.remove(fraudPrefix + "/vmodels/plain")
	f.expect(t, ksp("fraud", "plain"))
	etcd.put(fraudPrefix+"/vmodels/digits", `{"o":"ksp"}`)
	f.expect(t, isvc("fraud", "digits"), ksp("fraud", "digits"))
	etcd.put(fraudPrefix+"/vmodels/digits", `broken`)
	f.expect(t, ksp("fraud", "digits"))
	etcd.remove(fraudPrefix + "/vmodels/digits")
	etcd.put(homePrefix+"/vmodels/local", `{}`)
	f.expect(t, ksp("home", "local"))
}

// [M32] Forget ends the watches of a namespace.
func TestEnsureAndForget(t *testing.T) {
	f := newFixture(t)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.start(t)
	f.waitWatched(t, "a", fraudPrefix)
	watched := f.namespaces["fraud"].vmodels
	f.Ensure("fraud", "mesh")
	f.Ensure("fraud", "") // [M32] a Service without a name is not watched
	f.Ensure("sales", "")
	if f.namespaces["fraud"].vmodels != watched || f.namespaces["sales"] != nil {
		t.Error("Ensure restarted the watches of the same Service, or watched a Service without a name")
	}

	f.Ensure("fraud", "other")
	f.waitWatched(t, "a", "root/mm_ns/fraud/mm/other")
	f.waitUnwatched(t, "a", fraudPrefix)
	f.Forget("fraud")
	f.Forget("fraud")
	f.Forget("sales")
	f.waitUnwatched(t, "a", "root/mm_ns/fraud/mm/other")

	f.Ensure("fraud", "mesh")
	f.waitWatched(t, "a", fraudPrefix)
	if err := f.Connect(nil); err != nil {
		t.Fatal(err)
	}
	f.waitUnwatched(t, "a", fraudPrefix)
	f.connect(t, "a", "root")
	f.waitWatched(t, "a", fraudPrefix)
}

func TestConnectReplacesConnection(t *testing.T) {
	f := newFixture(t).start(t)
	a, b := f.stores["a"], f.stores["b"]
	a.put(fraudPrefix+"/vmodels/kept", `{}`)
	a.put(fraudPrefix+"/vmodels/deleted", `{}`)
	b.put("elsewhere/mm_ns/fraud/mm/mesh/vmodels/kept", `{}`)
	b.put("elsewhere/mm_ns/fraud/mm/mesh/vmodels/created", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "kept"), ksp("fraud", "deleted"))
	f.waitWatched(t, "a", fraudPrefix)
	watched := f.namespaces["fraud"].vmodels
	if f.connect(t, "a", "root"); f.namespaces["fraud"].vmodels != watched {
		t.Error("Connect restarted the watches, although the Secret did not change")
	}

	if err := f.Connect(map[string][]byte{"store": []byte("missing")}); err == nil {
		t.Fatal("Connect accepted an invalid Secret")
	}
	f.waitWatched(t, "a", fraudPrefix)
	a.put(fraudPrefix+"/vmodels/kept", `{"failed":true}`)
	f.expect(t, ksp("fraud", "kept")) // the previous connection is still used

	f.connect(t, "b", "elsewhere")
	f.expect(t, ksp("fraud", "kept"), ksp("fraud", "created"), ksp("fraud", "deleted"))
	f.waitUnwatched(t, "a", fraudPrefix)
	f.waitWatched(t, "b", "elsewhere/mm_ns/fraud/mm/mesh")
	if !slices.Equal(f.closed, []string{"a"}) {
		t.Errorf("closed %v, want the previous client", f.closed)
	}
}

// [M32] The Watcher reports keys that were deleted while no watch was running.
func TestWatcherReportsKeysDeletedBetweenWatches(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.put(fraudPrefix+"/vmodels/kept", `{}`)
	etcd.put(fraudPrefix+"/vmodels/deleted", `{"o":"isvc"}`)
	etcd.put(fraudPrefix+"/registry/deleted__isvc-6b2eb0b8bf", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "kept"), isvc("fraud", "deleted"))
	f.waitWatched(t, "a", fraudPrefix)

	etcd.fail(errors.New("etcd is down"))
	f.waitUnwatched(t, "a", fraudPrefix)
	etcd.remove(fraudPrefix + "/vmodels/deleted")
	etcd.remove(fraudPrefix + "/registry/deleted__isvc-6b2eb0b8bf")
	etcd.put(fraudPrefix+"/vmodels/created", `{}`)
	etcd.compact()
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, isvc("fraud", "deleted"), ksp("fraud", "created")) // no events for unchanged keys
	f.waitWatched(t, "a", fraudPrefix)
	etcd.put(fraudPrefix+"/vmodels/kept", `{}`)
	f.expect(t, ksp("fraud", "kept"))
}

// Revisions of a new etcd cluster are not compared with those of the previous one.
func TestWatcherReportsAllModelsOfNewCluster(t *testing.T) {
	f := newFixture(t).start(t)
	f.stores["a"].put(fraudPrefix+"/vmodels/digits", `{}`)
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	f.expect(t, ksp("fraud", "digits"))
	f.waitWatched(t, "a", fraudPrefix)

	etcd := f.stores["a"]
	etcd.mu.Lock()
	etcd.clusterID, etcd.history = 7, nil
	etcd.mu.Unlock()
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, ksp("fraud", "digits"))
}

// [M5] [M32] The Watcher retries during an outage, which each watch logs once. Forget stops the retries.
func TestWatcherRetriesDuringOutage(t *testing.T) {
	f := newFixture(t).start(t)
	etcd := f.stores["a"]
	etcd.fail(errors.New("connection refused"))
	f.Ensure("fraud", "mesh")
	f.connect(t, "a", "root")
	for range 10 {
		f.resume(t, 2)
	}
	f.waitPaused(t, 2)
	if got := f.logCount("connection refused"); got != 2 {
		t.Errorf("%d log lines, want one for each of the two watches", got)
	}
	etcd.put(fraudPrefix+"/vmodels/digits", `{}`)
	etcd.fail(nil)
	f.resume(t, 2)
	f.expect(t, ksp("fraud", "digits"))
	f.waitWatched(t, "a", fraudPrefix)
	poll.Until(t, 30*time.Second, "both watches log their recovery", func() bool { return f.logCount("watched in etcd again") == 2 })

	etcd.fail(errors.New("connection refused"))
	f.waitPaused(t, 2)
	watched := f.namespaces["fraud"]
	f.Forget("fraud")
	<-watched.vmodels.done
	<-watched.registry.done
	f.expect(t)
}

// waitPaused waits until the given number of watches wait for a retry.
func (f *fixture) waitPaused(t *testing.T, watches int) {
	t.Helper()
	poll.Until(t, 30*time.Second, "the watches wait for a retry", func() bool { return f.clock.Waiters() == watches })
}

// resume starts the retries of the given number of watches.
func (f *fixture) resume(t *testing.T, watches int) {
	t.Helper()
	f.waitPaused(t, watches)
	f.clock.Step(2 * maxBackoff)
}

func TestBackoffGrowsAndResets(t *testing.T) {
	clk := &recordingClock{FakeClock: newFixture(t).clock}
	failing := newStore()
	failing.fail(errors.New("etcd is down"))
	w := &prefixWatch{client: failing, prefix: "p/", gauge: watchingGauge.WithLabelValues("n", "p"), clock: clk, log: newFixture(t).Log, notify: func(Event) {}, parse: parseVModel, namespace: "n"}
	ctx, cancel := withCancel(t)
	clk.onAfter = func(n int) {
		if n == 9 {
			cancel()
		}
	}
	w.run(ctx)
	low := minBackoff
	for i, got := range clk.delays {
		if high := low + low/5; got < low || got > high {
			t.Errorf("delay %d is %v, want between %v and %v", i, got, low, high)
		}
		low = min(2*low, maxBackoff)
	}
	if len(clk.delays) != 9 {
		t.Fatalf("%d delays, want 9", len(clk.delays))
	}

	// A watch that ran for longer than maxBackoff resets the delay.
	clk.delays = nil
	ctx, cancel = withCancel(t)
	w.client = minuteWatches{store: newStore(), clock: clk.FakeClock}
	clk.onAfter = func(n int) {
		if n == 3 {
			cancel()
		}
	}
	w.run(ctx)
	for i, got := range clk.delays {
		if got > minBackoff+minBackoff/5 {
			t.Errorf("delay %d is %v, want the minimum", i, got)
		}
	}
}

// [M30] A namespace can use a separate etcd, in which its keys do not contain the namespace.
func TestSeparateEtcdOfNamespace(t *testing.T) {
	f := newFixture(t).start(t)
	ownSecret := map[string][]byte{"store": []byte("b"), "root": []byte("own")}
	for _, data := range []map[string][]byte{ownSecret, nil} {
		if err := f.ConnectOwn("fraud", data); err != nil {
			t.Fatal(err) // Ensure was not called yet
		}
	}
	f.connect(t, "a", "root")
	f.stores["a"].put(fraudPrefix+"/vmodels/shared", `{}`)
	f.stores["a"].put("root/mm_ns/sales/mm/mesh/vmodels/other", `{}`)
	f.stores["b"].put("own/mm/mesh/vmodels/digits", `{}`)
	f.Ensure("fraud", "mesh")
	f.Ensure("sales", "mesh")
	f.expect(t, ksp("fraud", "shared"), ksp("sales", "other"))
	f.waitWatched(t, "a", fraudPrefix)

	if err := f.ConnectOwn("fraud", ownSecret); err != nil {
		t.Fatal(err)
	}
	f.expect(t, ksp("fraud", "digits"), ksp("fraud", "shared"))
	f.waitWatched(t, "b", "own/mm/mesh")
	f.waitUnwatched(t, "a", fraudPrefix)
	lists, _ := f.stores["b"].counts("")
	if err := f.ConnectOwn("fraud", ownSecret); err != nil {
		t.Fatal(err)
	}
	if err := f.ConnectOwn("fraud", map[string][]byte{"store": []byte("missing")}); err == nil {
		t.Error("ConnectOwn accepted an invalid Secret")
	}
	f.connect(t, "a", "moved") // affects only the other namespaces
	f.expect(t, ksp("sales", "other"))
	f.stores["b"].put("own/mm/mesh/vmodels/digits", `{"failed":true}`)
	f.expect(t, ksp("fraud", "digits"))
	if listsNow, _ := f.stores["b"].counts(""); listsNow != lists {
		t.Errorf("%d lists although the Secret did not change", listsNow-lists)
	}
	f.Ensure("fraud", "renamed")
	f.waitWatched(t, "b", "own/mm/renamed")
	f.expect(t, ksp("fraud", "digits"))

	if err := f.ConnectOwn("fraud", nil); err != nil {
		t.Fatal(err)
	}
	f.waitWatched(t, "a", "moved/mm_ns/fraud/mm/renamed")
	f.waitUnwatched(t, "b", "own/mm/renamed")
	if err := f.ConnectOwn("fraud", ownSecret); err != nil {
		t.Fatal(err)
	}
	f.waitWatched(t, "b", "own/mm/renamed")
	if err := f.Connect(nil); err != nil {
		t.Fatal(err)
	}
	f.waitUnwatched(t, "a", "moved/mm_ns/sales/mm/mesh")
	f.waitWatched(t, "b", "own/mm/renamed")
	f.Forget("fraud")
	f.waitUnwatched(t, "b", "own/mm/renamed")
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
	poll.Until(t, 30*time.Second, "all watches have ended", func() bool {
		f.stores["a"].mu.Lock()
		defer f.stores["a"].mu.Unlock()
		for _, n := range f.stores["a"].watches {
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
	if f.namespaces["fraud"].cancel != nil {
		t.Error("Ensure started watches after Start has returned")
	}
	if err := f.Connect(nil); err != nil || len(f.closed) != 1 {
		t.Errorf("closed %v, error %v, want one closed client", f.closed, err)
	}
}
