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
	if kept, found := s.Get("a"); found || kept != (pair{}) {
		t.Error("Get of an empty map found a value")
	}
	if _, found := s.Delete("a"); found {
		t.Error("Delete of an empty map found a value")
	}
	s.Set("a", pair{text: "x"})
	if before := s.Set("a", pair{text: "y"}); before.text != "x" {
		t.Errorf("before %v", before)
	}
	s.Set("b", pair{text: "z"})
	if kept, found := s.Get("a"); !found || kept.text != "y" {
		t.Errorf("kept %v", kept)
	}
	if gone, found := s.Delete("a"); !found || gone.text != "y" {
		t.Errorf("dropped %v", gone)
	}
	s.Delete("b")
	for key := range s.items.Range {
		t.Errorf("%v is left", key)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			key := fmt.Sprint(i % 3)
			s.Set(key, pair{version: key, text: key})
			if got, _ := s.Get(key); got.version != got.text {
				t.Errorf("half of something: %v", got)
			}
			s.Delete(key)
		})
	}
	all.Wait()
}
