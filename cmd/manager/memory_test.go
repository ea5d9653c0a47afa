package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// garbage keeps the last allocation of a test.
var garbage []byte

// countCollections returns the numbers of automatic and forced garbage collections.
func countCollections() (automatic, forced uint32) {
	stats := &runtime.MemStats{}
	runtime.ReadMemStats(stats)
	return stats.NumGC - stats.NumForcedGC, stats.NumForcedGC
}

// Memory is returned once after each burst of work, and only after idlePeriod without a garbage collection.
func TestReturnMemory(t *testing.T) {
	burst := func() {
		debug.SetGCPercent(10)
		before, _ := countCollections()
		for now := before; now == before; now, _ = countCollections() {
			garbage = make([]byte, 1<<20)
		}
		debug.SetGCPercent(-1) // no collection happens until the next burst
	}
	t.Cleanup(func() { debug.SetGCPercent(defaultHeapGrowthPercent) })
	burst()
	ctx, stop := context.WithCancel(t.Context())
	clk, ended := clocktesting.NewFakeClock(time.Time{}), make(chan struct{})
	go func() {
		defer close(ended)
		returnMemory(ctx, clk)
	}()
	waitForTimer := func() {
		for !clk.HasWaiters() {
			runtime.Gosched()
		}
	}
	expectReturned := func(name string, want uint32) {
		t.Helper()
		waitForTimer()
		_, before := countCollections()
		clk.Step(idlePeriod)
		waitForTimer()
		if _, now := countCollections(); now-before != want {
			t.Errorf("%s: memory was returned %d times, want %d", name, now-before, want)
		}
	}
	expectReturned("idle since the first burst", 1)
	expectReturned("still idle", 0)
	burst()
	expectReturned("garbage was collected again", 0)
	expectReturned("idle since then", 1)
	stop()
	<-ended
}
