package capability

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// A listener gets the current set and each change until its context ends.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := fakeAPIServer{newDiscovery(Route), newCluster(t)}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		var notified []string
		ctx, unsubscribe := context.WithCancel(t.Context())
		w.OnChange(ctx, func(s Set) { notified = append(notified, s.String()) })
		env.addKind(HTTPRoute)
		env.removeKind(HTTPRoute)
		unsubscribe()
		env.addKind(RayCluster)
		route, both := NewSet(Route).String(), NewSet(Route, HTTPRoute).String()
		if want := []string{route, both, route}; !slices.Equal(notified, want) {
			t.Errorf("got notifications %q, want %q", notified, want)
		}
	})
}

// The last call of a listener has the current set, even with concurrent changes.
func TestOnChangeDuringChanges(t *testing.T) {
	w := New(Options{Discovery: newDiscovery(), Kinds: kinds})
	listeners := make([]*changes, 50)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 200 {
			w.publish(NewSet(kinds[i%len(kinds)]))
		}
	})
	for i := range listeners {
		listeners[i] = &changes{}
		all.Go(func() { w.OnChange(t.Context(), listeners[i].add) })
	}
	all.Wait()
	for i, f := range listeners {
		if got := f.sets[len(f.sets)-1]; !got.Equal(w.Current()) {
			t.Errorf("listener %d got %q last, want %q", i, got, w.Current())
		}
	}
}

// Listeners and watches of ended contexts are removed.
func TestEndedSubscriptionsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := fakeAPIServer{newDiscovery(), newCluster(t)}
		w := New(Options{Discovery: env.d, Metadata: env.cluster, Kinds: kinds})
		run(t, w)
		recorder := &changes{}
		for range 100 {
			ctx, stop := context.WithCancel(t.Context())
			w.Subscribe(ctx, recorder.add)
			w.OnChange(ctx, func(Set) {})
			for _, k := range []schema.GroupVersionKind{Route, HTTPRoute} {
				if err := w.Kind(&fakeCache{}, k, nil, &handler.EnqueueRequestForObject{}).Start(ctx, nil); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			synctest.Wait()
		}
		env.addKind(Route)
		advance(time.Second)
		if w.Len() != 0 || recorder.len() != 0 {
			t.Errorf("got %d listeners, and %d calls after their contexts ended, want none", w.Len(), recorder.len())
		}
	})
}
