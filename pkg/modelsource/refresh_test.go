package modelsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

func loaded() v1alpha1.PredictorStatus {
	return v1alpha1.PredictorStatus{ActiveModelState: v1alpha1.Loaded, Available: true}
}

func refreshing(t *testing.T, names ...string) (*fixture, *RefreshAndWatch) {
	t.Helper()
	f := newFixture()
	for _, name := range names {
		f.put(name, "p")
	}
	s := NewRefreshAndWatch(f.options(), f.backend)
	f.start(t, s)
	f.expect(t, names...)
	f.watched(t, 1)
	return f, s
}

func path(s Source, name string) string {
	if e := s.Get(inFraud(name)); e != nil {
		return e.Model.Spec.Path
	}
	return "gone"
}

// [modelmesh-72]
func TestStartKnowsWhatThereIs(t *testing.T) {
	_, s := refreshing(t, "a", "b", "c")
	if s.ID() != "plugin" || s.DisplayName() != "models of a plugin" {
		t.Errorf("id %q, display name %q", s.ID(), s.DisplayName())
	}
	for _, name := range []string{"a", "b", "c"} {
		if path(s, name) != "p" {
			t.Errorf("%s is not known", name)
		}
	}
	var names []string
	for _, e := range s.List("fraud", func(e *Entry) bool { return e.Model.Name != "b" }) {
		names = append(names, e.Model.Name)
	}
	if !slices.Equal(names, []string{"a", "c"}) || len(s.List("sales", func(*Entry) bool { return true })) != 0 {
		t.Errorf("listed %v", names)
	}
	if s.Get(inFraud("d")) != nil {
		t.Error("d is not there")
	}
}

func TestChangesAfterTheStart(t *testing.T) {
	f, s := refreshing(t, "a", "b")
	f.put("a", "q")
	f.expect(t, "a")
	f.put("c", "p")
	f.expect(t, "c")
	f.remove("b")
	f.expect(t, "b")
	if path(s, "a") != "q" || path(s, "b") != "gone" || path(s, "c") != "p" {
		t.Errorf("a %s, b %s, c %s", path(s, "a"), path(s, "b"), path(s, "c"))
	}
}

// [modelmesh-73]
func TestStatusOfWhatIsNotThere(t *testing.T) {
	f, s := refreshing(t, "a")
	for what, e := range map[string]*Entry{"unknown": entry("d", 1, "p"), "out of date": entry("a", 0, "p")} {
		if stored, err := s.UpdateStatus(t.Context(), e, loaded()); stored || err != nil {
			t.Errorf("%s: %t, %v", what, stored, err)
		}
	}
	f.refuse = true
	if stored, err := s.UpdateStatus(t.Context(), s.Get(inFraud("a")), loaded()); stored || err != nil {
		t.Errorf("refused by the backend: %t, %v", stored, err)
	}
	f.broken = errors.New("broken")
	if stored, err := s.UpdateStatus(t.Context(), s.Get(inFraud("a")), loaded()); stored || err == nil {
		t.Errorf("with a broken backend: %t, %v", stored, err)
	}
}

// [modelmesh-74] [modelmesh-75]
func TestStatusUpdates(t *testing.T) {
	f, s := refreshing(t, "a")
	update := func() {
		t.Helper()
		before := s.Get(inFraud("a"))
		if stored, err := s.UpdateStatus(t.Context(), before, loaded()); !stored || err != nil {
			t.Fatalf("%t, %v", stored, err)
		}
		if after := s.Get(inFraud("a")); !after.Status.Available || after.Version == before.Version || after.Model.Spec.Path != "p" {
			t.Errorf("entry %+v", after)
		}
	}
	update()
	f.put("b", "p")
	f.heard(t, "b")
	f.forgive("a")
	f.expect(t, "b")

	f.disconnect()
	update()
	f.reconnect()
	f.resume(t)
	f.watched(t, 2)
	f.put("c", "p")
	f.heard(t, "c")
	f.forgive("a")
	f.expect(t, "c")
}

// [modelmesh-76]
func TestWhatHappensWhileDisconnected(t *testing.T) {
	f, s := refreshing(t, "a", "b")
	f.disconnect()
	eventually(t, "the break was noticed", f.clock.HasWaiters)
	f.put("c", "p")
	f.put("a", "q")
	f.remove("b")
	f.expect(t)
	if path(s, "c") != "gone" || path(s, "a") != "p" || path(s, "b") != "p" {
		t.Errorf("a %s, b %s, c %s", path(s, "a"), path(s, "b"), path(s, "c"))
	}
	f.reconnect()
	f.resume(t)
	f.expect(t, "a", "b", "c")
	if lists, _ := f.counts(); lists != 1 {
		t.Errorf("%d lists: a watch goes on where it was", lists)
	}
	if !f.logged("not watched for now") {
		t.Error("the break must be logged")
	}
}

// [modelmesh-77]
func TestLossOfHistory(t *testing.T) {
	f, s := refreshing(t, "stays", "changes", "goes")
	f.disconnect()
	eventually(t, "the break was noticed", f.clock.HasWaiters)
	want := []string{"changes", "goes"}
	for i := range 16 {
		name := fmt.Sprintf("new-%d", i)
		f.put(name, "p")
		want = append(want, name)
	}
	f.put("changes", "q")
	f.remove("goes")
	f.forget()
	f.reconnect()
	f.resume(t)
	f.expect(t, want...)
	if lists, _ := f.counts(); lists != 2 {
		t.Errorf("%d lists, want the second one", lists)
	}
	f.watched(t, 3)
	f.put("after", "p")
	f.expect(t, "after")
	if path(s, "stays") != "p" || path(s, "goes") != "gone" {
		t.Errorf("stays %s, goes %s", path(s, "stays"), path(s, "goes"))
	}
}

func TestABackendThatCannotBeListed(t *testing.T) {
	f := newFixture()
	f.disconnect()
	s := NewRefreshAndWatch(f.options(), f.backend)
	started := make(chan error, 1)
	go func() { started <- s.Start(t.Context()) }()
	f.resume(t)
	f.put("a", "p")
	eventually(t, "it was tried twice", func() bool { lists, _ := f.counts(); return lists == 2 })
	f.reconnect()
	f.resume(t)
	if err := <-started; err != nil || path(s, "a") != "p" || !f.logged("cannot be listed for now") {
		t.Errorf("error %v, logs %v", err, f.logs)
	}

	f = newFixture()
	f.disconnect()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewRefreshAndWatch(f.options(), f.backend).Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestARefreshThatFailsIsTriedAgain(t *testing.T) {
	f, s := refreshing(t, "a")
	f.disconnect()
	f.put("b", "p")
	f.forget()
	f.resume(t) // too old, and the listing fails
	eventually(t, "a listing was tried", func() bool { lists, _ := f.counts(); return lists == 2 })
	f.reconnect()
	f.resume(t)
	f.expect(t, "b")
	if path(s, "b") != "p" {
		t.Error("b is not known")
	}
}

func TestOldWordsAreNoNews(t *testing.T) {
	f := newFixture()
	m := newMemory(f.options(), f.backend)
	step := func(what string, c Change, news bool, want string) {
		t.Helper()
		told := false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.Subscribe(ctx, func(types.NamespacedName) { told = true })
		m.take(c)
		got := "gone"
		if e := m.Get(inFraud("a")); e != nil {
			got = e.Version
		}
		if told != news || got != want {
			t.Errorf("%s: told %t, version %s; want %t, %s", what, told, got, news, want)
		}
	}
	step("new", Change{Entry: entry("a", 5, "p")}, true, "5")
	step("the same", Change{Entry: entry("a", 5, "p")}, false, "5")
	step("older", Change{Entry: entry("a", 4, "p")}, false, "5")
	step("as numbers, not as words", Change{Entry: entry("a", 10, "p")}, true, "10")
	step("an older deletion", Change{Entry: entry("a", 9, "p"), Deleted: true}, false, "10")
	step("a deletion", Change{Entry: entry("a", 11, "p"), Deleted: true}, true, "gone")
	step("the same deletion", Change{Entry: entry("a", 11, "p"), Deleted: true}, false, "gone")
	step("an older deletion of what is gone", Change{Entry: entry("a", 7, "p"), Deleted: true}, false, "gone")
	step("a late word", Change{Entry: entry("a", 10, "p")}, false, "gone")
	f.clock.Step(burial / 2)
	step("still late", Change{Entry: entry("a", 11, "p")}, false, "gone")
	step("a new life", Change{Entry: entry("a", 12, "p")}, true, "12")
	step("a deletion again", Change{Entry: entry("a", 13, "p"), Deleted: true}, true, "gone")
	f.clock.Step(burial + time.Second)
	step("of a forgotten grave", Change{Entry: entry("a", 2, "p")}, true, "2")
	if len(m.graves) != 0 {
		t.Errorf("graves %v", m.graves)
	}
	none := entry("a", 1, "p")
	none.Version = "v7"
	step("no number", Change{Entry: none}, false, "2")
	step("no number, deleted", Change{Entry: none, Deleted: true}, false, "2")
	if !f.logged("no number") {
		t.Error("a version that is none must be logged")
	}
}

func TestRepeatedWordsOfABackend(t *testing.T) {
	f, s := refreshing(t, "a")
	f.backend.mu.Lock()
	f.unordered = true
	f.backend.mu.Unlock()
	f.put("a", "q")
	f.expect(t, "a")
	f.put("b", "p")
	f.remove("a")
	f.expect(t, "a", "b")
	if path(s, "a") != "gone" {
		t.Errorf("a %s", path(s, "a"))
	}
}
