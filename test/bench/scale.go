package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// concurrency is the number of concurrent clients that create objects.
	concurrency = 16
	// maxListedCounts is the maximum number of counts that mostFrequent returns.
	maxListedCounts = 10
	// scrapeInterval is the interval between scrapes of the metrics, which are slow to collect with thousands of series.
	scrapeInterval = time.Second / 2
)

// sizes are numbers of objects of each kind, in increasing order.
type sizes []int

func (s *sizes) String() string { return strings.Trim(fmt.Sprint(*s), "[]") }

// Set parses numbers separated by commas.
func (s *sizes) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(part)
		if err != nil || size <= 0 || len(*s) > 0 && size <= (*s)[len(*s)-1] {
			return fmt.Errorf("%q: must be numbers in increasing order, such as 1000,5000", text)
		}
		*s = append(*s, size)
	}
	return nil
}

// usage is the memory of a process with a number of objects of each kind.
type usage struct {
	objects   int
	rss, heap float64
	// restart is the time until a new process has reconciled all objects.
	restart time.Duration
}

// measureGrowth measures how requests, memory and restart times grow with the number of objects.
func (b *bench) measureGrowth(ctx context.Context) error {
	if b.sizes[0] <= b.burst {
		return fmt.Errorf("-scale: %q: each number must be above %d, the value of -burst", b.sizes.String(), b.burst)
	}
	populations := b.populations()
	for _, p := range populations {
		if err := p.prepare(ctx); err != nil {
			return err
		}
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if b.checkLeaks {
		if err := b.measureLeaks(ctx, populations); err != nil {
			return err
		}
	}
	for _, p := range populations {
		if err := b.compare(ctx, p); err != nil {
			return err
		}
	}
	idle, err := b.measureRestart(ctx, b.burst)
	if err != nil {
		return err
	}
	b.curve = append(b.curve, idle)
	for _, size := range b.sizes {
		for _, p := range populations {
			if err := b.enlarge(ctx, p, size); err != nil {
				return err
			}
		}
		now, err := b.measureRestart(ctx, size)
		if err != nil {
			return err
		}
		before := b.curve[len(b.curve)-1]
		added := float64((now.objects - before.objects) * len(populations))
		b.addFigure(fmt.Sprintf("%d of each: memory of a new process", size), fmt.Sprintf("%s resident, %s live heap", mebibytes(now.rss), mebibytes(now.heap)), "", "")
		b.addFigure("for each further object", fmt.Sprintf("%.1f KiB resident, %.1f KiB live heap", (now.rss-before.rss)/added/1024, (now.heap-before.heap)/added/1024), "<= 20 KiB", "")
		b.curve = append(b.curve, now)
	}
	return b.measureAmongForeignObjects(ctx)
}

// enlarge creates objects until the population has a size.
func (b *bench) enlarge(ctx context.Context, p *population, size int) error {
	fmt.Fprintf(os.Stderr, "%d of %s\n", size, p.name)
	added := size - p.size
	sent, took, err := b.create(ctx, p, size)
	if err != nil {
		return err
	}
	peak, err := b.kernelMemory("VmHWM")
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("%s, %d to %d: until the last child", p.name, size-added, size), took.Round(100*time.Millisecond).String(), "", "")
	b.addFigure("peak of resident memory so far", mebibytes(peak), "", "")
	b.addRequests("requests for each", added, sent, p.target)
	return nil
}

// create creates objects until the population has a size, and waits until they are ready. It returns all requests of that time, and the
// duration from the first creation to the last creation by the manager or, without children, to its last write.
func (b *bench) create(ctx context.Context, p *population, size int) (framework.Entries, time.Duration, error) {
	begin, err := b.audit.Position()
	if err != nil {
		return nil, 0, err
	}
	waitProfiles, err := b.startCPUProfiles(ctx, fmt.Sprintf("%s-%d", p.name, size))
	if err != nil {
		return nil, 0, err
	}
	defer waitProfiles()
	start, first := b.clock.Now(), p.size
	if err := runConcurrently(ctx, size-first, func(i int) error {
		object, err := p.object(first + i)
		if err != nil {
			return err
		}
		return b.admin.Create(ctx, object)
	}); err != nil {
		return nil, 0, fmt.Errorf("creating each %s: %w", p.name, err)
	}
	p.size = size
	if err := b.waitUntil(ctx, 50*pollInterval, func() (bool, error) { return b.allReady(ctx, p) }); err != nil {
		return nil, 0, err
	}
	if err := b.waitIdle(ctx); err != nil {
		return nil, 0, err
	}
	entries, err := b.audit.Since(begin)
	if err != nil {
		return nil, 0, err
	}
	writes := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews().WithoutEvents().Writes()
	if created := writes.Where(isCreation); len(created) > 0 {
		writes = created
	}
	return entries, latestResponse(writes).Sub(start), nil
}

// runConcurrently calls do for each number below n, several at a time.
func runConcurrently(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, concurrency, n, func(i int) { errs[i] = do(i) })
	return errors.Join(errs...)
}

// latestResponse returns the time of the latest response.
func latestResponse(entries framework.Entries) time.Time {
	var last time.Time
	for _, e := range entries {
		if e.Responded.After(last) {
			last = e.Responded
		}
	}
	return last
}

// measureRestart restarts the manager and measures the time until all objects are reconciled, the requests, and the memory in the steady
// state.
func (b *bench) measureRestart(ctx context.Context, objects int) (usage, error) {
	begin, err := b.audit.Position()
	if err != nil {
		return usage{}, err
	}
	before, err := b.processorTime()
	if err != nil {
		return usage{}, err
	}
	delete(before, "manager") // another process
	start := b.clock.Now()
	if err := b.manager.Restart(ctx); err != nil {
		return usage{}, err
	}
	waitForProfiles, err := b.startCPUProfiles(ctx, fmt.Sprintf("restart-%d", objects))
	if err != nil {
		return usage{}, err
	}
	reconciles, err := b.waitReconciled(ctx, objects)
	if err != nil {
		return usage{}, err
	}
	out := usage{objects: objects, restart: b.clock.Since(start)}
	after, err := b.processorTime()
	if err != nil {
		return usage{}, err
	}
	waitForProfiles()
	if out.rss, out.heap, err = b.memory(ctx); err != nil {
		return usage{}, err
	}
	if err := b.profileHeap(ctx, fmt.Sprintf("restart-%d", objects)); err != nil {
		return usage{}, err
	}
	entries, err := b.audit.Since(begin)
	if err != nil {
		return usage{}, err
	}
	sent := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
	b.printRequests(sent)
	reads, writes := sent.Reads(), sent.WithoutEvents().Writes()
	b.addFigure(fmt.Sprintf("restart with %d of each", objects), fmt.Sprintf("%.1f s, %d reads, %d writes", out.restart.Seconds(), len(reads), len(writes)),
		"<= 60 s with 5000, lists only, 0 writes", "")
	b.addFigure("reconciles and processor time of the restart", fmt.Sprintf("%s; %s", reconciles, after.since(before)), "one for each object", "")
	b.addFigure("most frequent requests of the restart", countRequests(append(reads, writes...)), "", "")
	return out, nil
}

// countRequests counts requests by verb and resource, and returns the most frequent.
func countRequests(entries framework.Entries) string {
	count := map[string]int{}
	for _, e := range entries {
		count[e.Verb+" "+path.Join(e.Resource, e.Subresource)]++
	}
	return mostFrequent(count)
}

// mostFrequent returns the largest counts.
func mostFrequent(count map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	texts := make([]string, 0, maxListedCounts)
	for _, kind := range kinds[:min(len(kinds), maxListedCounts)] {
		texts = append(texts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	return strings.Join(texts, ", ")
}

// waitReconciled waits until a new process has run at least as many reconciles as all kinds have objects, given the number of objects of
// each kind, and no reconcile is queued or running. It returns the largest numbers of reconciles by controller and result.
func (b *bench) waitReconciled(ctx context.Context, objects int) (reconciles string, err error) {
	const total = "controller_runtime_reconcile_total"
	counts := map[string]int{}
	err = b.waitUntil(ctx, scrapeInterval, func() (bool, error) {
		metrics, err := b.metrics(ctx)
		if err != nil {
			return false, err
		}
		for name, value := range metrics {
			if labels, found := strings.CutPrefix(name, total+"{"); found && value > 0 {
				counts[strings.NewReplacer(`controller="`, "", `",result="`, " ", `"}`, "").Replace(labels)] = int(value)
			}
		}
		return metrics[total] >= float64(objects*len(b.populations())) && metrics["workqueue_depth"] == 0 && metrics["controller_runtime_active_workers"] == 0, nil
	})
	return mostFrequent(counts), err
}

// measureAmongForeignObjects measures a new process in a cluster with many foreign Secrets and pods.
func (b *bench) measureAmongForeignObjects(ctx context.Context) error {
	if b.secrets == 0 {
		return nil
	}
	const foreignNamespace = "scale-others"
	if err := b.newNamespace(ctx, foreignNamespace); err != nil {
		return err
	}
	if err := runConcurrently(ctx, b.secrets, func(i int) error {
		name := metav1.ObjectMeta{Namespace: foreignNamespace, Name: fmt.Sprintf("other-%d", i)}
		if i%2 == 0 {
			return b.admin.Create(ctx, &corev1.Secret{ObjectMeta: name, Data: map[string][]byte{"release": make([]byte, 1000)}})
		}
		// Unscheduled pods cause no requests of a kubelet, which would distort the measurement.
		return b.admin.Create(ctx, &corev1.Pod{ObjectMeta: name, Spec: corev1.PodSpec{
			SchedulerName: "absent", Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/other:1"}},
		}})
	}); err != nil {
		return fmt.Errorf("creating foreign Secrets and pods: %w", err)
	}
	before := b.curve[len(b.curve)-1]
	now, err := b.measureRestart(ctx, before.objects)
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("%d foreign Secrets and pods", b.secrets), fmt.Sprintf("%+.1f MiB resident, %+.1f MiB live heap", (now.rss-before.rss)/(1<<20), (now.heap-before.heap)/(1<<20)),
		"< 5 MiB more", "")
	return nil
}

// plot returns charts of memory and restart times, for docs/performance.md.
func (b *bench) plot() string {
	line := func(title, unit string, value func(usage) float64) string {
		x, y := make([]string, len(b.curve)), make([]string, len(b.curve))
		for i, u := range b.curve {
			x[i], y[i] = strconv.Itoa(u.objects), strconv.FormatFloat(value(u), 'f', 1, 64)
		}
		return fmt.Sprintf("```mermaid\nxychart-beta\n  title %q\n  x-axis \"objects of each kind\" [%s]\n  y-axis %q\n  line [%s]\n```\n",
			title, strings.Join(x, ", "), unit, strings.Join(y, ", "))
	}
	return line("Resident memory of a new process", "MiB", func(u usage) float64 { return u.rss / (1 << 20) }) +
		line("Restart until everything is reconciled", "s", func(u usage) float64 { return u.restart.Seconds() })
}
