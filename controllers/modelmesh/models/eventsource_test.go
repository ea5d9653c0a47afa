package models

import (
	"slices"
	"strconv"
	"strings"
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

// drain removes all requests from the queue and returns them, sorted.
func drain(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []string {
	requests := []string{}
	for q.Len() > 0 {
		item, _ := q.Get()
		q.Done(item)
		requests = append(requests, item.String())
	}
	slices.Sort(requests)
	return requests
}

func newEventSource(t *testing.T) (*eventSource, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	es := &eventSource{states: newStateCache(), sources: map[string]modelSource{"ksp": nil, "isvc": nil}, breakers: &circuitBreakers{}}
	return es, newQueue(t)
}

func TestEventsBeforeStartAreNotLost(t *testing.T) {
	es, q := newEventSource(t)
	es.onEtcdEvent("ksp", "ns", "a")
	if err := es.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	es.onEtcdEvent("ksp", "ns", "b")
	es.onEtcdEvent("isvc", "other", "c")
	es.onEtcdEvent("isvc", "other", "c")
	es.onEtcdEvent("unknown", "ns", "d")
	if got, want := drain(q), []string{"ns/ksp_a", "ns/ksp_b", "other/isvc_c"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
	for _, key := range []types.NamespacedName{{Namespace: "ns", Name: "ksp_a"}, {Namespace: "ns", Name: "ksp_b"}, {Namespace: "other", Name: "isvc_c"}} {
		if e, known := es.states.get(key); !known || !e.dirty {
			t.Errorf("%s: state %+v, want it known and dirty", key, e)
		}
	}
}

// An event of a model enqueues the model of another source that has an ID conflict with it.
func TestModelWithIDConflictIsEnqueued(t *testing.T) {
	es, q := newEventSource(t)
	if err := es.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	es.states.store(types.NamespacedName{Namespace: "ns", Name: "isvc_a"}, modelState{result: idConflict})
	es.onEtcdEvent("ksp", "ns", "a")
	if got, want := drain(q), []string{"ns/isvc_a", "ns/ksp_a"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
}

func TestOnEndpointsChanged(t *testing.T) {
	es, q := newEventSource(t)
	if err := es.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, key := range []types.NamespacedName{{Namespace: "ns", Name: "isvc_a"}, {Namespace: "ns", Name: "ksp_b"}, {Namespace: "other", Name: "ksp_c"}} {
		es.states.store(key, modelState{result: statusReceived, attempts: 3, nextCall: now, waitingSince: now})
	}
	es.onEndpointsChanged("ns")
	if got, want := drain(q), []string{"ns/isvc_a", "ns/ksp_b"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
	if e, _ := es.states.get(types.NamespacedName{Namespace: "ns", Name: "ksp_b"}); !e.dirty || e.attempts != 0 || e.loadReason != loadReasonPodsChanged || !e.nextCall.IsZero() || !e.waitingSince.IsZero() {
		t.Errorf("state %+v, want it dirty because of changed pods, without backoff", e)
	}
	es.onModelSourceReady("isvc")
	if got, want := drain(q), []string{"ns/isvc_a"}; !slices.Equal(got, want) {
		t.Errorf("enqueued %q, want %q", got, want)
	}
}

// A key in etcd whose name no resource can have gets no state: the mesh may refuse to delete such a model for ever.
func TestEtcdEventOfInvalidNameIsIgnored(t *testing.T) {
	es, q := newEventSource(t)
	if err := es.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "of_etcd", strings.Repeat("a", 254)} {
		es.onEtcdEvent("ksp", "ns", name)
	}
	if got := drain(q); len(got) != 0 || len(es.states.entries) != 0 {
		t.Errorf("enqueued %q with %d states, want none", got, len(es.states.entries))
	}
}

func TestSplitKey(t *testing.T) {
	for _, name := range []types.NamespacedName{{Namespace: "ns", Name: "n"}, {Namespace: "ns", Name: "of_etcd"}} {
		if source, got := splitKey(modelKey("isvc", name)); source != "isvc" || got != name {
			t.Errorf("splitKey returned source %s and name %s, want isvc and %s", source, got, name)
		}
	}
}

// store keeps the events that arrived since getAndClearDirty.
func TestStateCacheKeepsEventsDuringReconcile(t *testing.T) {
	m := newStateCache()
	e := m.getAndClearDirty(predictorKey)
	e.result, e.attempts = statusReceived, 3
	m.markDirty(predictorKey)
	m.store(predictorKey, e)
	if got, _ := m.get(predictorKey); !got.dirty || got.attempts != 3 || got.result != statusReceived {
		t.Errorf("state %+v, want it dirty with 3 attempts and the received status", got)
	}
	if m.deleteIfClean(predictorKey); len(m.entries) != 1 {
		t.Error("deleteIfClean deleted a dirty state")
	}
	e = m.getAndClearDirty(predictorKey)
	m.markPodsChanged("ns")
	m.store(predictorKey, e)
	if got, _ := m.get(predictorKey); !got.dirty || got.attempts != 0 {
		t.Errorf("state %+v, want it dirty without attempts", got)
	}
	m.store(predictorKey, m.getAndClearDirty(predictorKey))
	if m.deleteIfClean(predictorKey); len(m.entries) != 0 {
		t.Error("deleteIfClean kept a clean state")
	}
	if m.markDirtyIfKnown(predictorKey) || len(m.entries) != 0 {
		t.Error("markDirtyIfKnown created a state")
	}
}

// The number of states for keys in etcd is limited per namespace.
func TestStateCacheLimitsStatesFromEtcd(t *testing.T) {
	es, q := newEventSource(t)
	if err := es.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for n := range maxFromEtcd + 100 {
		es.states.markDirty(types.NamespacedName{Namespace: "ns", Name: "ksp_" + strconv.Itoa(n)})
	}
	other := types.NamespacedName{Namespace: "other", Name: "ksp_a"}
	es.states.markDirty(other)
	if len(es.states.entries) != maxFromEtcd+1 {
		t.Errorf("%d states, want the limit plus one of another namespace", len(es.states.entries))
	}
	es.states.delete(other)
	es.states.delete(types.NamespacedName{Namespace: "ns", Name: "ksp_0"})
	es.states.markDirty(types.NamespacedName{Namespace: "ns", Name: "ksp_new"})
	if _, known := es.states.get(types.NamespacedName{Namespace: "ns", Name: "ksp_new"}); !known || len(es.states.fromEtcdCounts) != 1 {
		t.Errorf("the state of a new name was not created; counts %v", es.states.fromEtcdCounts)
	}
}
