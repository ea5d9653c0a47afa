package reconciler

import (
	"sync"
	"testing"
)

func TestUIDMap(t *testing.T) {
	var m UIDMap[string]
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { m.Set("a", "1") })
		all.Go(func() { m.Get("a") })
		all.Go(func() { m.Delete("b") })
	}
	all.Wait()
	if value, ok := m.Get("a"); !ok || value != "1" {
		t.Errorf("a is %q, %t", value, ok)
	}
	m.Delete("a")
	if value, ok := m.Get("a"); ok || value != "" {
		t.Errorf("a is %q, %t after it was forgotten", value, ok)
	}
}
