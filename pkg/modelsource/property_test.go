package modelsource

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// listened is a source whose backend and whose mishaps a property draws.
type listened struct {
	*fixture
	source *RefreshAndWatch
	// heard is what a listener would hold that reads each model which it is told of.
	heard map[string]string
	next  int // the first change that was not handed over
}

func newListened(t *testing.T) *listened {
	l := &listened{fixture: newFixture(), heard: map[string]string{}}
	l.source = NewRefreshAndWatch(l.options(), l.backend)
	l.source.Subscribe(t.Context(), func(name types.NamespacedName) {
		delete(l.heard, name.Name)
		if e := l.source.Get(name); e != nil {
			l.heard[name.Name] = e.Version
		}
	})
	if !l.source.refresh(t.Context()) {
		t.Fatal("an empty backend must be listed")
	}
	return l
}

func name(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name") }

func (l *listened) write(t *rapid.T) {
	l.put(name(t), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "path"))
}

func (l *listened) delete(t *rapid.T) {
	if n := name(t); l.entries[n] != nil {
		l.remove(n)
	}
}

// catchUp hands over what happened, with an older word said again in between.
func (l *listened) catchUp(t *rapid.T) {
	for ; l.next < len(l.history); l.next++ {
		l.source.handle(l.history[l.next])
		if rapid.Bool().Draw(t, "again") {
			l.source.handle(l.history[rapid.IntRange(0, l.next).Draw(t, "older")])
		}
	}
	l.verify(t)
}

// relist forgets the place and lists.
func (l *listened) relist(ctx *testing.T) func(*rapid.T) {
	return func(t *rapid.T) {
		if !l.source.refresh(ctx.Context()) {
			t.Fatal("the listing failed")
		}
		l.next = len(l.history)
		l.verify(t)
	}
}

// status writes one, of the present entry or of an outdated one.
func (l *listened) status(ctx *testing.T) func(*rapid.T) {
	return func(t *rapid.T) {
		n := name(t)
		known, present := l.source.Get(inFraud(n)), l.entries[n]
		if known == nil || present == nil || known.Version != present.Version {
			return // a backend refuses these
		}
		stored, err := l.source.UpdateStatus(ctx.Context(), known, loaded())
		if !stored || err != nil || !l.source.Get(inFraud(n)).Status.Available {
			t.Fatalf("stored: %t, %v", stored, err)
		}
		l.heard[n] = l.source.Get(inFraud(n)).Version // whoever writes a status knows it
		if stored, err := l.source.UpdateStatus(ctx.Context(), known, loaded()); stored || err != nil {
			t.Fatalf("an outdated entry was stored: %t, %v", stored, err)
		}
	}
}

// verify holds what is known, and what a listener knows, against the backend.
func (l *listened) verify(t *rapid.T) {
	want := map[string]string{}
	for n, e := range l.entries {
		want[n] = e.Version
	}
	got := map[string]string{}
	for _, e := range l.source.List("fraud", func(*Entry) bool { return true }) {
		got[e.Model.Name] = e.Version
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(l.heard) != fmt.Sprint(want) {
		t.Fatalf("known %v, heard %v, want %v", got, l.heard, want)
	}
}

func TestASourceKnowsWhatItsBackendHas(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newListened(t)
		r.Repeat(map[string]func(*rapid.T){
			"write": l.write, "write more": l.write, "delete": l.delete, "catch up": l.catchUp, "relist": l.relist(t), "status": l.status(t),
		})
		l.catchUp(r)
	})
}
