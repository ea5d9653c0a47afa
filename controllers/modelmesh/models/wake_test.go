package models

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// queued returns what is in the queue, sorted.
func queued(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []string {
	out := []string{}
	for q.Len() > 0 {
		item, _ := q.Get()
		q.Done(item)
		out = append(out, item.String())
	}
	slices.Sort(out)
	return out
}

func newWakes(t *testing.T) (*wakes, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	w := &wakes{memory: newMemory(), known: map[string]origin{"ksp": nil, "isvc": nil}, breakers: &breakers{}}
	return w, newQueue(t)
}

func TestWhatIsHeardBeforeTheStartIsNotLost(t *testing.T) {
	w, q := newWakes(t)
	w.onEtcdEvent("ksp", "ns", "a")
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	w.onEtcdEvent("ksp", "ns", "b")
	w.onEtcdEvent("isvc", "other", "c")
	w.onEtcdEvent("isvc", "other", "c")
	w.onEtcdEvent("nobody", "ns", "d")
	if got, want := queued(q), []string{"isvc_other/c", "ksp_ns/a", "ksp_ns/b"}; !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
	for _, key := range []types.NamespacedName{{Namespace: "ksp_ns", Name: "a"}, {Namespace: "ksp_ns", Name: "b"}, {Namespace: "isvc_other", Name: "c"}} {
		if e, known := w.memory.look(key); !known || !e.stale {
			t.Errorf("%s: %+v", key, e)
		}
	}
}

// A model that waits for a name is woken by what happens to the one that has it.
func TestTheOtherOfTheSameName(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	w.memory.put(types.NamespacedName{Namespace: "isvc_ns", Name: "a"}, entry{outcome: taken})
	w.onEtcdEvent("ksp", "ns", "a")
	if got, want := queued(q), []string{"isvc_ns/a", "ksp_ns/a"}; !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
}

func TestAMovedMeshWakesItsNamespace(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, key := range []types.NamespacedName{{Namespace: "isvc_ns", Name: "a"}, {Namespace: "ksp_ns", Name: "b"}, {Namespace: "ksp_other", Name: "c"}} {
		w.memory.put(key, entry{outcome: answered, attempts: 3, again: now, awaited: now})
	}
	w.onEndpointsChanged("ns")
	if got, want := queued(q), []string{"isvc_ns/a", "ksp_ns/b"}; !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
	if e, _ := w.memory.look(types.NamespacedName{Namespace: "ksp_ns", Name: "b"}); !e.stale || e.attempts != 0 || e.order != orderLost || !e.again.IsZero() || !e.awaited.IsZero() {
		t.Errorf("%+v", e)
	}
	w.onSourceReady("isvc")
	if got, want := queued(q), []string{"isvc_ns/a"}; !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
}

func TestKeys(t *testing.T) {
	for key, want := range map[types.NamespacedName]struct{ source, namespace string }{
		{Namespace: "ksp_ns"}:  {"ksp", "ns"},
		{Namespace: "isvc_ns"}: {"isvc", "ns"},
	} {
		id, name := split(key)
		if id != want.source || name.Namespace != want.namespace {
			t.Errorf("%s: %s in %s", key, id, name.Namespace)
		}
	}
	name := types.NamespacedName{Namespace: "ns", Name: "n"}
	if id, back := split(join("isvc", name)); id != "isvc" || back != name {
		t.Errorf("%s %s", id, back)
	}
}

// What is learnt during a reconcile does not cover what happens meanwhile.
func TestMemoryKeepsNews(t *testing.T) {
	m := newMemory()
	e := m.take(aPredictor)
	e.outcome, e.attempts = answered, 3
	m.mark(aPredictor)
	m.put(aPredictor, e)
	if got, _ := m.look(aPredictor); !got.stale || got.attempts != 3 || got.outcome != answered {
		t.Errorf("%+v", got)
	}
	if m.forget(aPredictor); len(m.entries) != 1 {
		t.Error("there are news of it")
	}
	e = m.take(aPredictor)
	m.markNamespaceStale("ns")
	m.put(aPredictor, e)
	if got, _ := m.look(aPredictor); !got.stale || got.attempts != 0 {
		t.Errorf("%+v", got)
	}
	m.put(aPredictor, m.take(aPredictor))
	if m.forget(aPredictor); len(m.entries) != 0 {
		t.Error("it is remembered for ever")
	}
	if m.markIfKnown(aPredictor) || len(m.entries) != 0 {
		t.Error("who is not known is not concerned")
	}
}

// An etcd may tell of endless names.
func TestNamesThatAreOnlyHeardOfAreBounded(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for n := range maxHeardOf + 100 {
		w.memory.mark(types.NamespacedName{Namespace: "ksp_ns", Name: strconv.Itoa(n)})
	}
	other := types.NamespacedName{Namespace: "ksp_other", Name: "a"}
	w.memory.mark(other)
	if len(w.memory.entries) != maxHeardOf+1 {
		t.Errorf("%d entries", len(w.memory.entries))
	}
	w.memory.drop(other)
	w.memory.drop(types.NamespacedName{Namespace: "ksp_ns", Name: "0"})
	w.memory.mark(types.NamespacedName{Namespace: "ksp_ns", Name: "new"})
	if _, known := w.memory.look(types.NamespacedName{Namespace: "ksp_ns", Name: "new"}); !known || len(w.memory.heardOf) != 1 {
		t.Errorf("%v", w.memory.heardOf)
	}
}
