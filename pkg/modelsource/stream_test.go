package modelsource

import (
	"context"
	"errors"
	"testing"
)

func streaming(t *testing.T, names ...string) (*fixture, *Streamed) {
	t.Helper()
	f := newFixture()
	for _, name := range names {
		f.put(name, "p")
	}
	s := NewStreamed(f.options(), f.backend)
	f.start(t, s)
	f.expect(t, names...)
	f.watched(t, 1)
	return f, s
}

func TestAStreamIsKnownAfterSilence(t *testing.T) {
	f, s := streaming(t, "a", "b")
	if path(s, "a") != "p" || path(s, "b") != "p" {
		t.Error("what there is must be known after the start")
	}
	f.put("a", "q")
	f.expect(t, "a")
	f.remove("b")
	f.expect(t, "b")
	if stored, err := s.UpdateStatus(t.Context(), s.Get(inFraud("a")), loaded()); !stored || err != nil || !s.Get(inFraud("a")).Status.Available {
		t.Errorf("%t, %v", stored, err)
	}
	f.put("c", "p")
	f.heard(t, "c")
	f.forgive("a")
	f.expect(t, "c")
}

func TestABrokenStreamIsOpenedAnew(t *testing.T) {
	f, s := streaming(t, "stays", "changes", "goes")
	f.disconnect()
	eventually(t, "the break was noticed", func() bool { return f.logged("opened anew") })
	f.put("changes", "q")
	f.remove("goes")
	f.put("comes", "p")
	f.forget()
	f.expect(t)
	f.reconnect()
	f.resume(t)
	f.watched(t, 2)
	f.expect(t, "changes", "comes")
	if path(s, "goes") != "p" {
		t.Error("before the silence nobody knows what is gone")
	}
	eventually(t, "the silence is waited for", f.clock.HasWaiters)
	f.clock.Step(silence)
	f.expect(t, "goes")
	if path(s, "stays") != "p" || path(s, "goes") != "gone" {
		t.Errorf("stays %s, goes %s", path(s, "stays"), path(s, "goes"))
	}
}

func TestAStreamThatNeverComes(t *testing.T) {
	f := newFixture()
	f.disconnect()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() { started <- NewStreamed(f.options(), f.backend).Start(ctx) }()
	f.resume(t)
	eventually(t, "it was tried again", func() bool { lists, _ := f.counts(); return lists == 2 })
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
