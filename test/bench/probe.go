package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// idlePeriod is the time without requests after which the manager counts as idle.
	idlePeriod = 3 * time.Second
	// gcCycles is the number of garbage collections over which the lowest heap size is measured.
	gcCycles = 3
	// maxPrintedBytes is the number of bytes of each request body that -list prints.
	maxPrintedBytes = 2000
	// seriesCount is the key of the number of series in the result of metrics.
	seriesCount = "series"
)

func mebibytes(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }

func (b *bench) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-b.clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitUntil calls done at an interval until it returns true or an error.
func (b *bench) waitUntil(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := b.pause(ctx, every); err != nil {
			return err
		}
	}
}

// waitIdle waits until the manager has sent no counted request for idlePeriod.
func (b *bench) waitIdle(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	seen, since := 0, b.clock.Now()
	return b.waitUntil(ctx, 10*pollInterval, func() (bool, error) {
		entries, err := b.audit.Since(start)
		if now := len(framework.UnexpectedWhenIdle(entries, b.manager.User)); now != seen {
			seen, since = now, b.clock.Now()
		}
		return b.clock.Since(since) >= idlePeriod, err
	})
}

// requests counts the requests of the manager since a position in the log, without leases, events and access reviews.
func (b *bench) requests(since framework.AuditPosition) (reads, writes int, others string, err error) {
	entries, err := b.audit.Since(since)
	sent := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews()
	objects := sent.WithoutDiscovery()
	b.printRequests(objects)
	others = fmt.Sprintf("%d watches, %d of discovery", len(objects.Watches()), len(sent)-len(objects))
	return len(objects.Reads()), len(objects.WithoutEvents().Writes()), others, err
}

// printRequests prints the requests behind a figure, to check that each has a reason.
func (b *bench) printRequests(objects framework.Entries) {
	if !b.verbose {
		return
	}
	for _, e := range append(objects.Reads(), objects.WithoutEvents().Writes()...) {
		fmt.Fprintf(os.Stderr, "%s %s %s\n\t%.*s\n", e.Responded.Format("05.000"), e, e.URI, maxPrintedBytes, e.Request)
	}
}

// residentMemory returns the resident memory of the manager, in bytes.
func (b *bench) residentMemory() (float64, error) { return b.kernelMemory("VmRSS") }

// kernelMemory returns a field of /proc/PID/status of the manager, in bytes.
func (b *bench) kernelMemory(field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.manager.Process.PID))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the manager: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field+":" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no field %s", b.manager.Process.PID, field)
}

// memory measures the resident memory and the live heap of the idle manager after the warm-up.
func (b *bench) memory(ctx context.Context) (rss, heap float64, err error) {
	if err := b.waitIdle(ctx); err != nil {
		return 0, 0, err
	}
	if err := b.pause(ctx, warmUp); err != nil {
		return 0, 0, err
	}
	if rss, err = b.residentMemory(); err != nil {
		return 0, 0, err
	}
	heap = math.Inf(1)
	var cycles []float64
	// Reading the metrics allocates the memory that triggers the next collection.
	err = b.waitUntil(ctx, pollInterval, func() (bool, error) {
		metrics, err := b.metrics(ctx)
		heap = min(heap, metrics["go_memstats_heap_alloc_bytes"])
		cycles = append(cycles, metrics["go_gc_duration_seconds_count"])
		return slices.Max(cycles)-cycles[0] > gcCycles, err
	})
	return rss, heap, err
}

// metrics returns the value of each series of the manager, the sum of each metric over its labels, and the number of series.
func (b *bench) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.managerURL()+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("requesting the metrics: %w", err)
	}
	response, err := b.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("requesting the metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the body has been read
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, text, _ := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(series, "#") {
			continue
		}
		name, labels, labelled := strings.Cut(series, "{")
		if labelled { // label values may contain spaces
			_, text, _ = strings.Cut(labels+" "+text, "} ")
		}
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			sums[seriesCount]++
			sums[name] += value
			if labelled {
				sums[series] += value
			}
		}
	}
	return sums, lines.Err()
}
