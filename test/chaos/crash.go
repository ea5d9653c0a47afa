package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// phase is a part of the life cycle of a custom resource in which the manager is killed after one of its writes.
type phase struct {
	name  string
	begin func(*plot, context.Context, *testCluster) error
	// wrong returns why the phase has not ended.
	wrong func(*plot, context.Context, *testCluster) (string, error)
	skips func(*plot) bool
}

var phases = []phase{
	{name: "creation", begin: (*plot).createAll,
		wrong: func(p *plot, ctx context.Context, w *testCluster) (string, error) { return p.wrong(ctx, w, p.ready) }},
	{name: "change", skips: func(p *plot) bool { return p.change == "" },
		begin: func(p *plot, ctx context.Context, w *testCluster) error { return p.patch(ctx, w, p.change) },
		wrong: func(p *plot, ctx context.Context, w *testCluster) (string, error) {
			if p.changed != "" {
				return p.wrong(ctx, w, p.changed)
			}
			return p.wrong(ctx, w, p.ready)
		}},
	{name: "deletion", begin: (*plot).remove, wrong: (*plot).stillExists},
}

// crash forwards the writes for each plot up to the number plot.crash. The response of the last one is lost, and later writes are
// reset: a single kill is then a crash after a different write of each plot.
type crash struct {
	mu     sync.Mutex
	plots  []*plot
	counts map[*plot]int
	latest time.Time
	now    func() time.Time
}

// fault counts the writes of each plot.
func (k *crash) fault(x *exchange) bool {
	q := named(x)
	k.mu.Lock()
	i := slices.IndexFunc(k.plots, func(p *plot) bool { return p.owns(q) })
	if i < 0 {
		k.mu.Unlock()
		return false
	}
	p := k.plots[i]
	dead := p.crash > 0 && k.counts[p] >= p.crash
	if !dead {
		k.counts[p]++
		k.latest = k.now()
	}
	last := p.crash > 0 && k.counts[p] == p.crash
	k.mu.Unlock()
	switch {
	case dead:
		return reset(x)
	case last:
		x.forward(httptest.NewRecorder())
		return reset(x)
	}
	return false
}

// named returns a request with the name of the created object in its path, as in requests for existing objects.
func named(x *exchange) request {
	q := x.request
	if q.verb != "create" || q.name != "" || q.namespace != operatorNamespace && q.namespace != "" || x.r.Body == nil {
		return q
	}
	text, err := io.ReadAll(x.r.Body)
	x.r.Body = io.NopCloser(bytes.NewReader(text))
	var head metav1.PartialObjectMetadata
	if err == nil && json.Unmarshal(text, &head) == nil {
		q.path += "/" + head.Name
	}
	return q
}

// plotsAtCrash returns the plots that have reached their crash, and the time since the last forwarded write.
func (k *crash) plotsAtCrash() (plots []*plot, since time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.plots {
		if p.crash > 0 && k.counts[p] >= p.crash {
			plots = append(plots, p)
		}
	}
	return plots, k.now().Sub(k.latest)
}

// lull is the time without forwarded writes after which plots without a crash have ended their phase.
const lull = 1500 * time.Millisecond

// sieve is the campaign of crashes, after Sieve (OSDI 22), with custom resources of all kinds at the same time.
type sieve struct {
	*campaign

	// want holds the snapshots of undisturbed runs by subject and phase, ignore the fields that differ between two of these runs.
	want   map[string]snapshot
	ignore map[string]mask
	rows   map[string]*row
	// most holds the numbers of writes of undisturbed runs.
	most map[string]int
}

// atOnce is the number of crashes per kind in a round, each of another custom resource after another write.
const atOnce = 6

// crashes kills the manager after each single write.
func (c *campaign) crashes(ctx context.Context) error {
	s := &sieve{campaign: c, want: map[string]snapshot{}, ignore: map[string]mask{}, rows: map[string]*row{}, most: map[string]int{}}
	defer s.noteAll() // also after an interrupt
	for _, undisturbed := range []string{"one", "two"} {
		if err := s.round(ctx, undisturbed, func(subject) (from, to int) { return 0, 0 }); err != nil {
			return fmt.Errorf("without a crash: %w", err)
		}
	}
	for i, more := 0, true; more; i++ {
		more = false
		err := s.round(ctx, "", func(one subject) (from, to int) {
			from, to = i*atOnce+1, (i+1)*atOnce
			if one.fixed != "" { // a singleton: one crash per round
				from, to = i+1, i+1
			}
			writes := s.longest(one)
			more = more || to < writes
			return from, min(to, writes)
		})
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	return nil
}

// longest returns the number of writes of the longest phase of a subject.
func (s *sieve) longest(one subject) (most int) {
	for _, ph := range phases {
		most = max(most, s.most[one.name+" "+ph.name])
	}
	return most
}

func (s *sieve) noteAll() {
	for _, one := range s.subjects {
		for _, ph := range phases {
			if r := s.rows[one.name+" "+ph.name]; r != nil {
				s.note(*r)
			}
		}
	}
}

// round runs plots of all subjects through all phases, with a crash after one of the given writes in each phase. A round with a
// title is undisturbed.
func (s *sieve) round(ctx context.Context, title string, writes func(subject) (from, to int)) error {
	var plots []*plot
	for _, one := range s.subjects {
		from, to := writes(one)
		for write := from; write <= to; write++ {
			p, err := one.plot(one.name + "-" + cmp.Or(title, fmt.Sprintf("r%02d", write)))
			if err != nil {
				return err
			}
			p.crash = write
			plots = append(plots, p)
		}
	}
	for _, ph := range phases {
		if err := s.phase(ctx, ph, title, plots); err != nil {
			return fmt.Errorf("%s: %w", ph.name, err)
		}
	}
	return s.deleteLeftovers(ctx, plots)
}

func (s *sieve) phase(ctx context.Context, ph phase, title string, all []*plot) error {
	plots := slices.DeleteFunc(slices.Clone(all), func(p *plot) bool { return ph.skips != nil && ph.skips(p) })
	k := &crash{plots: plots, counts: map[*plot]int{}, now: s.clock.Now, latest: s.clock.Now()}
	removeRule := s.proxy.addRule(rule{match: match{writes: true}, fault: k.fault})
	defer removeRule()
	for _, p := range plots {
		if err := ph.begin(p, ctx, s.testCluster); err != nil {
			return err
		}
	}
	var killed []*plot
	if title == "" {
		var err error
		if killed, err = s.kill(ctx, ph, k, removeRule); err != nil {
			return err
		}
	}
	ended := s.clock.Now()
	wrong := s.until(ctx, waitTimeout, func() (string, error) { return firstUnfinished(ctx, s.testCluster, ph, plots) })
	took := s.clock.Since(ended)
	if err := s.waitIdle(ctx); err != nil {
		return err
	}
	s.logf("%s of %d custom resources: %d crashes", ph.name, len(plots), len(killed))
	if title == "" {
		return s.compare(ctx, ph, killed, took, wrong != nil)
	}
	return s.recordUndisturbed(ctx, ph, plots, k.counts)
}

// recordUndisturbed stores the snapshots of an undisturbed phase, and the fields in which two such runs differ.
func (s *sieve) recordUndisturbed(ctx context.Context, ph phase, plots []*plot, counts map[*plot]int) error {
	snapshots, err := s.snapshots(ctx, plots)
	if err != nil {
		return err
	}
	for _, p := range plots {
		key := p.name + " " + ph.name
		s.most[key] = max(s.most[key], counts[p])
		if s.want[key] == nil {
			s.want[key] = snapshots[p]
		}
		s.ignore[key] = differingFields(s.want[key], snapshots[p])
	}
	return nil
}

// firstUnfinished returns why the first unfinished plot has not ended a phase.
func firstUnfinished(ctx context.Context, w *testCluster, ph phase, plots []*plot) (string, error) {
	for _, p := range plots {
		if problem, err := ph.wrong(p, ctx, w); problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// kill waits until every plot has reached its crash or ended the phase, then restarts the manager.
func (s *sieve) kill(ctx context.Context, ph phase, k *crash, removeRule func()) ([]*plot, error) {
	err := s.until(ctx, waitTimeout, func() (string, error) {
		dead, since := k.plotsAtCrash()
		if len(dead) == len(k.plots) {
			return "", nil
		}
		rest := slices.DeleteFunc(slices.Clone(k.plots), func(p *plot) bool { return slices.Contains(dead, p) })
		problem, err := firstUnfinished(ctx, s.testCluster, ph, rest)
		if problem == "" && since < lull {
			problem = "it still writes"
		}
		return problem, err
	})
	if err != nil && !errors.Is(err, errTimeout) {
		return nil, err
	}
	if err := s.manager.Kill(ctx); err != nil {
		return nil, err
	}
	dead, _ := k.plotsAtCrash()
	removeRule()
	return dead, s.manager.Restart(ctx)
}

// compare compares plots with undisturbed runs, and adds the deviations to the rows of their subjects and phases.
func (s *sieve) compare(ctx context.Context, ph phase, plots []*plot, took time.Duration, late bool) error {
	if len(plots) == 0 {
		return nil
	}
	found := map[*plot][]string{}
	// The garbage collector may still be deleting objects.
	err := s.until(ctx, 20*time.Second, func() (string, error) {
		snapshots, err := s.snapshots(ctx, plots)
		if err != nil {
			return "", err
		}
		longest := ""
		for _, p := range plots {
			key := p.name + " " + ph.name
			found[p] = differences(s.want[key], snapshots[p], s.ignore[key])
			longest = cmp.Or(longest, shorten(found[p], 3))
		}
		return longest, nil
	})
	if err != nil && !errors.Is(err, errTimeout) {
		return err
	}
	for _, p := range plots {
		key := p.name + " " + ph.name
		r := s.rows[key]
		if r == nil {
			r = &row{Scenario: "crash-" + strings.ReplaceAll(key, " ", "-"), Injections: []string{"PodKill"}, Bound: waitTimeout}
			s.rows[key] = r
		}
		r.Writes++
		r.Fault = fmt.Sprintf("killed after each of %d writes; %d without a crash", r.Writes, s.most[key])
		r.Recovery = max(r.Recovery, took)
		r.Remark = "slowest; writes are crashes"
		if late {
			problem, err := ph.wrong(p, ctx, s.testCluster)
			if err != nil {
				return err
			}
			found[p] = append(found[p], slices.DeleteFunc([]string{problem}, func(text string) bool { return text == "" })...)
		}
		for _, d := range found[p] {
			r.Deviations = append(r.Deviations, fmt.Sprintf("after write %d: %s", p.crash, d))
		}
		if len(found[p]) > 0 {
			s.logf("%s after write %d: %s", r.Scenario, p.crash, shorten(found[p], 5))
		}
	}
	return nil
}

// snapshots returns the snapshot of each plot, with a placeholder for its namespace.
func (s *sieve) snapshots(ctx context.Context, plots []*plot) (map[*plot]snapshot, error) {
	var namespaces []string
	for _, p := range plots {
		namespaces = append(namespaces, p.namespace)
	}
	all, err := s.takeSnapshot(ctx, s.kinds, namespaces...)
	snapshots := map[*plot]snapshot{}
	for _, p := range plots {
		snapshots[p] = all.ofPlot(p).renamed(p.namespace)
	}
	return snapshots, err
}

// deleteLeftovers deletes all objects that a round has left. PersistentVolumeClaims of deleted custom resources are kept by design.
func (s *sieve) deleteLeftovers(ctx context.Context, plots []*plot) error {
	var namespaces []string
	for _, p := range plots {
		if p.namespace != operatorNamespace {
			namespaces = append(namespaces, p.namespace)
		}
	}
	errs := []error{s.clear(ctx, namespaces...)}
	left, err := s.takeSnapshot(ctx, s.kinds, operatorNamespace)
	if err != nil {
		return err
	}
	for _, p := range plots {
		for key := range left.ofPlot(p) {
			errs = append(errs, s.deleteAndWait(ctx, key))
		}
	}
	return errors.Join(errs...)
}
