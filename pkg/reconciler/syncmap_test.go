package reconciler

import (
	"fmt"
	"sync"
	"testing"
)

// Keys are independent, and concurrent use is safe.
func TestSyncMap(t *testing.T) {
	type pair struct{ version, text string }
	var s SyncMap[string, pair]
	if got, found := s.Get("a"); found || got != (pair{}) {
		t.Error("Get of an empty map found a value")
	}
	if _, found := s.Delete("a"); found {
		t.Error("Delete of an empty map found a value")
	}
	s.Set("a", pair{text: "x"})
	if before := s.Set("a", pair{text: "y"}); before.text != "x" {
		t.Errorf("got previous value %v, want x", before)
	}
	s.Set("b", pair{text: "z"})
	if got, found := s.Get("a"); !found || got.text != "y" {
		t.Errorf("got %v, want y", got)
	}
	if deleted, found := s.Delete("a"); !found || deleted.text != "y" {
		t.Errorf("got deleted value %v, want y", deleted)
	}
	s.Delete("b")
	for key := range s.items.Range {
		t.Errorf("key %v was not deleted", key)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			key := fmt.Sprint(i % 3)
			s.Set(key, pair{version: key, text: key})
			if got, _ := s.Get(key); got.version != got.text {
				t.Errorf("got %v, want a value that was set", got)
			}
			s.Delete(key)
		})
	}
	wg.Wait()
}
