package reconciler

import (
	"sync"
	"testing"
)

func TestUIDMap(t *testing.T) {
	var m UIDMap[string]
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { m.Set("a", "1") })
		wg.Go(func() { m.Get("a") })
		wg.Go(func() { m.Delete("b") })
	}
	wg.Wait()
	if value, ok := m.Get("a"); !ok || value != "1" {
		t.Errorf("got %q, %t, want 1, true", value, ok)
	}
	m.Delete("a")
	if value, ok := m.Get("a"); ok || value != "" {
		t.Errorf("got %q, %t after Delete", value, ok)
	}
}
