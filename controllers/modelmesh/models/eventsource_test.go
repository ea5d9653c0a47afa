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

func newWakes(t *testing.T) (*eventSource, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	w := &eventSource{states: newStateCache(), sources: map[string]modelSource{"ksp": nil, "isvc": nil}, breakers: &circuitBreakers{}}
	return w, newQueue(t)
}

func TestEventsBeforeStartAreNotLost(t *testing.T) {
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
		t.Errorf("enqueued %q, want %q", got, want)
	}
	for _, key := range []types.NamespacedName{{Namespace: "ksp_ns", Name: "a"}, {Namespace: "ksp_ns", Name: "b"}, {Namespace: "isvc_other", Name: "c"}} {
		if e, known := w.states.get(key); !known || !e.dirty {
			t.Errorf("%s: got state %+v, want it known and dirty", key, e)
		}
	}
}

// A model that waits for a name is woken by what happens to the one that has it.
func TestModelWaitingForNameIsNotified(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	w.states.store(types.NamespacedName{Namespace: "isvc_ns", Name: "a"}, modelState{result: idConflict})
	w.onEtcdEvent("ksp", "ns", "a")
	if got, want := queued(q), []string{"isvc_ns/a", "ksp_ns/a"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
}

func TestMeshAddressChangeNotifiesNamespace(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, key := range []types.NamespacedName{{Namespace: "isvc_ns", Name: "a"}, {Namespace: "ksp_ns", Name: "b"}, {Namespace: "ksp_other", Name: "c"}} {
		w.states.store(key, modelState{result: statusReceived, attempts: 3, nextCall: now, waitingSince: now})
	}
	w.onEndpointsChanged("ns")
	if got, want := queued(q), []string{"isvc_ns/a", "ksp_ns/b"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
	if e, _ := w.states.get(types.NamespacedName{Namespace: "ksp_ns", Name: "b"}); !e.dirty || e.attempts != 0 || e.loadReason != loadReasonPodsChanged || !e.nextCall.IsZero() || !e.waitingSince.IsZero() {
		t.Errorf("got state %+v, want it dirty because of changed pods, without backoff", e)
	}
	w.onSourceReady("isvc")
	if got, want := queued(q), []string{"isvc_ns/a"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
}

func TestKeysIdentifySourceAndNamespace(t *testing.T) {
	for key, want := range map[types.NamespacedName]struct{ source, namespace string }{
		{Namespace: "ksp_ns"}:  {"ksp", "ns"},
		{Namespace: "isvc_ns"}: {"isvc", "ns"},
	} {
		id, name := splitKey(key)
		if id != want.source || name.Namespace != want.namespace {
			t.Errorf("%s: %s in %s", key, id, name.Namespace)
		}
	}
	name := types.NamespacedName{Namespace: "ns", Name: "n"}
	if id, back := splitKey(modelKey("isvc", name)); id != "isvc" || back != name {
		t.Errorf("splitKey returned prefix %s and name %s, want isvc and %s", id, back, name)
	}
}

// The result of a reconcile does not hide events that arrive during the reconcile.
func TestMemoryKeepsEventsDuringReconcile(t *testing.T) {
	m := newStateCache()
	e := m.getAndClearDirty(aPredictor)
	e.result, e.attempts = statusReceived, 3
	m.markDirty(aPredictor)
	m.store(aPredictor, e)
	if got, _ := m.get(aPredictor); !got.dirty || got.attempts != 3 || got.result != statusReceived {
		t.Errorf("got state %+v, want it dirty with 3 attempts and the received status", got)
	}
	if m.deleteIfClean(aPredictor); len(m.entries) != 1 {
		t.Error("deleteIfClean deleted a dirty entry")
	}
	e = m.getAndClearDirty(aPredictor)
	m.markPodsChanged("ns")
	m.store(aPredictor, e)
	if got, _ := m.get(aPredictor); !got.dirty || got.attempts != 0 {
		t.Errorf("got state %+v, want it dirty without attempts", got)
	}
	m.store(aPredictor, m.getAndClearDirty(aPredictor))
	if m.deleteIfClean(aPredictor); len(m.entries) != 0 {
		t.Error("deleteIfClean kept an entry without changes")
	}
	if m.markDirtyIfKnown(aPredictor) || len(m.entries) != 0 {
		t.Error("markDirtyIfKnown created an entry")
	}
}

// An etcd may contain an unlimited number of names.
func TestNamesFromEtcdAreLimited(t *testing.T) {
	w, q := newWakes(t)
	if err := w.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for n := range maxFromEtcd + 100 {
		w.states.markDirty(types.NamespacedName{Namespace: "ksp_ns", Name: strconv.Itoa(n)})
	}
	other := types.NamespacedName{Namespace: "ksp_other", Name: "a"}
	w.states.markDirty(other)
	if len(w.states.entries) != maxFromEtcd+1 {
		t.Errorf("%d entries", len(w.states.entries))
	}
	w.states.delete(other)
	w.states.delete(types.NamespacedName{Namespace: "ksp_ns", Name: "0"})
	w.states.markDirty(types.NamespacedName{Namespace: "ksp_ns", Name: "new"})
	if _, known := w.states.get(types.NamespacedName{Namespace: "ksp_ns", Name: "new"}); !known || len(w.states.fromEtcd) != 1 {
		t.Errorf("unexpected states.fromEtcd: %v", w.states.fromEtcd)
	}
}
