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

// collections returns the numbers of garbage collections that the heap caused, and that were forced.
func collections() (automatic, forced uint32) {
	stats := &runtime.MemStats{}
	runtime.ReadMemStats(stats)
	return stats.NumGC - stats.NumForcedGC, stats.NumForcedGC
}

// Memory is returned once after each burst of work, and not while garbage is collected.
func TestReturnMemory(t *testing.T) {
	burst := func() {
		debug.SetGCPercent(10)
		before, _ := collections()
		for now := before; now == before; now, _ = collections() {
			garbage = make([]byte, 1<<20)
		}
		debug.SetGCPercent(-1) // no collection happens until the next burst
	}
	t.Cleanup(func() { debug.SetGCPercent(defaultHeapGrowth) })
	burst()
	ctx, stop := context.WithCancel(t.Context())
	clk, ended := clocktesting.NewFakeClock(time.Time{}), make(chan struct{})
	go func() {
		defer close(ended)
		returnMemory(ctx, clk)
	}()
	await := func() {
		for !clk.HasWaiters() {
			runtime.Gosched()
		}
	}
	period := func(name string, want uint32) {
		t.Helper()
		await()
		_, before := collections()
		clk.Step(idlePeriod)
		await()
		if _, now := collections(); now-before != want {
			t.Errorf("%s: memory was returned %d times, want %d", name, now-before, want)
		}
	}
	period("idle since the first burst", 1)
	period("still idle", 0)
	burst()
	period("garbage was collected again", 0)
	period("idle since then", 1)
	stop()
	<-ended
}
