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
	begin func(*fixture, context.Context, *testCluster) error
	// unfinished returns why the phase has not ended, "" if it has.
	unfinished func(*fixture, context.Context, *testCluster) (string, error)
	skips      func(*fixture) bool
}

var phases = []phase{
	{name: "creation", begin: (*fixture).createAll,
		unfinished: func(f *fixture, ctx context.Context, c *testCluster) (string, error) {
			return f.unreadyReason(ctx, c, f.ready)
		}},
	{name: "change", skips: func(f *fixture) bool { return f.change == "" },
		begin: func(f *fixture, ctx context.Context, c *testCluster) error { return f.patch(ctx, c, f.change) },
		unfinished: func(f *fixture, ctx context.Context, c *testCluster) (string, error) {
			if f.readyAfterChange != "" {
				return f.unreadyReason(ctx, c, f.readyAfterChange)
			}
			return f.unreadyReason(ctx, c, f.ready)
		}},
	{name: "deletion", begin: (*fixture).remove, unfinished: (*fixture).existsReason},
}

// crash forwards the writes for each fixture up to the number fixture.crash. The last of them gets no response, and later writes are
// reset. Killing the manager once is then a crash after a different write for each fixture.
type crash struct {
	mu       sync.Mutex
	fixtures []*fixture
	counts   map[*fixture]int
	latest   time.Time
	now      func() time.Time
}

// fault counts the writes of each fixture, and resets those from the crash on.
func (k *crash) fault(x *exchange) bool {
	q := requestWithName(x)
	k.mu.Lock()
	i := slices.IndexFunc(k.fixtures, func(f *fixture) bool { return f.owns(q) })
	if i < 0 {
		k.mu.Unlock()
		return false
	}
	f := k.fixtures[i]
	crashed := f.crash > 0 && k.counts[f] >= f.crash
	if !crashed {
		k.counts[f]++
		k.latest = k.now()
	}
	last := f.crash > 0 && k.counts[f] == f.crash
	k.mu.Unlock()
	switch {
	case crashed:
		return resetConnection(x)
	case last:
		x.forward(httptest.NewRecorder())
		return resetConnection(x)
	}
	return false
}

// requestWithName returns the request with the name of a created object in its path, as in requests for existing objects. It changes only
// requests for operatorNamespace and for cluster scope.
func requestWithName(x *exchange) request {
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

// crashedFixtures returns the fixtures that have reached their crash, and the time since the last forwarded write.
func (k *crash) crashedFixtures() (fixtures []*fixture, since time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.fixtures {
		if f.crash > 0 && k.counts[f] >= f.crash {
			fixtures = append(fixtures, f)
		}
	}
	return fixtures, k.now().Sub(k.latest)
}

// phaseIdlePeriod is the time without forwarded writes after which a phase without a crash has ended.
const phaseIdlePeriod = 1500 * time.Millisecond

// sieve is the campaign of crashes, after Sieve (OSDI 22), with custom resources of all kinds at the same time.
type sieve struct {
	*campaign

	// want holds the snapshots of the first undisturbed run by subject and phase. ignore holds the fields that differ in the second.
	want   map[string]snapshot
	ignore map[string]mask
	rows   map[string]*row
	// writes holds the larger number of writes of the two undisturbed runs.
	writes map[string]int
}

// crashesPerRound is the maximum number of custom resources per subject in a round, with a crash after a different write of each.
const crashesPerRound = 6

// runCrashes kills the manager after each single write.
func (c *campaign) runCrashes(ctx context.Context) error {
	s := &sieve{campaign: c, want: map[string]snapshot{}, ignore: map[string]mask{}, rows: map[string]*row{}, writes: map[string]int{}}
	defer s.addRows() // even after an interrupt
	for _, undisturbed := range []string{"one", "two"} {
		if err := s.round(ctx, undisturbed, func(subject) (from, to int) { return 0, 0 }); err != nil {
			return fmt.Errorf("without a crash: %w", err)
		}
	}
	for i, more := 0, true; more; i++ {
		more = false
		err := s.round(ctx, "", func(one subject) (from, to int) {
			from, to = i*crashesPerRound+1, (i+1)*crashesPerRound
			if one.fixedNamespace != "" { // only one custom resource can exist, so only one crash per round
				from, to = i+1, i+1
			}
			writes := s.maxWrites(one)
			more = more || to < writes
			return from, min(to, writes)
		})
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	return nil
}

// maxWrites returns the maximum number of writes in a phase of a subject.
func (s *sieve) maxWrites(one subject) (most int) {
	for _, ph := range phases {
		most = max(most, s.writes[one.name+" "+ph.name])
	}
	return most
}

func (s *sieve) addRows() {
	for _, one := range s.subjects {
		for _, ph := range phases {
			if r := s.rows[one.name+" "+ph.name]; r != nil {
				s.addRow(*r)
			}
		}
	}
}

// round runs fixtures of all subjects through all phases, with a crash after one of the given writes in each phase. A round with a
// title is undisturbed.
func (s *sieve) round(ctx context.Context, title string, writes func(subject) (from, to int)) error {
	var fixtures []*fixture
	for _, one := range s.subjects {
		from, to := writes(one)
		for write := from; write <= to; write++ {
			f, err := one.fixture(one.name + "-" + cmp.Or(title, fmt.Sprintf("r%02d", write)))
			if err != nil {
				return err
			}
			f.crash = write
			fixtures = append(fixtures, f)
		}
	}
	for _, ph := range phases {
		if err := s.phase(ctx, ph, title, fixtures); err != nil {
			return fmt.Errorf("%s: %w", ph.name, err)
		}
	}
	return s.deleteLeftovers(ctx, fixtures)
}

func (s *sieve) phase(ctx context.Context, ph phase, title string, all []*fixture) error {
	fixtures := slices.DeleteFunc(slices.Clone(all), func(f *fixture) bool { return ph.skips != nil && ph.skips(f) })
	k := &crash{fixtures: fixtures, counts: map[*fixture]int{}, now: s.clock.Now, latest: s.clock.Now()}
	removeRule := s.proxy.addRule(rule{match: match{writes: true}, fault: k.fault})
	defer removeRule()
	for _, f := range fixtures {
		if err := ph.begin(f, ctx, s.testCluster); err != nil {
			return err
		}
	}
	var killed []*fixture
	if title == "" {
		var err error
		if killed, err = s.kill(ctx, ph, k, removeRule); err != nil {
			return err
		}
	}
	waitStart := s.clock.Now()
	waitErr := s.waitUntil(ctx, waitTimeout, func() (string, error) { return firstUnfinished(ctx, s.testCluster, ph, fixtures) })
	took := s.clock.Since(waitStart)
	if err := s.waitIdle(ctx); err != nil {
		return err
	}
	s.logf("%s of %d custom resources: %d crashes", ph.name, len(fixtures), len(killed))
	if title == "" {
		return s.compare(ctx, ph, killed, took, waitErr != nil)
	}
	return s.recordUndisturbed(ctx, ph, fixtures, k.counts)
}

// recordUndisturbed stores the snapshots of an undisturbed phase, and the fields in which two such runs differ.
func (s *sieve) recordUndisturbed(ctx context.Context, ph phase, fixtures []*fixture, counts map[*fixture]int) error {
	snapshots, err := s.snapshots(ctx, fixtures)
	if err != nil {
		return err
	}
	for _, f := range fixtures {
		key := f.name + " " + ph.name
		s.writes[key] = max(s.writes[key], counts[f])
		if s.want[key] == nil {
			s.want[key] = snapshots[f]
		}
		s.ignore[key] = differingFields(s.want[key], snapshots[f])
	}
	return nil
}

// firstUnfinished returns why the first unfinished fixture has not ended a phase, "" if all have.
func firstUnfinished(ctx context.Context, c *testCluster, ph phase, fixtures []*fixture) (string, error) {
	for _, f := range fixtures {
		if problem, err := ph.unfinished(f, ctx, c); problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// kill waits until every fixture has reached its crash or ended the phase, and then kills and restarts the manager.
func (s *sieve) kill(ctx context.Context, ph phase, k *crash, removeRule func()) ([]*fixture, error) {
	err := s.waitUntil(ctx, waitTimeout, func() (string, error) {
		crashed, since := k.crashedFixtures()
		if len(crashed) == len(k.fixtures) {
			return "", nil
		}
		rest := slices.DeleteFunc(slices.Clone(k.fixtures), func(f *fixture) bool { return slices.Contains(crashed, f) })
		problem, err := firstUnfinished(ctx, s.testCluster, ph, rest)
		if problem == "" && since < phaseIdlePeriod {
			problem = "the manager still writes"
		}
		return problem, err
	})
	if err != nil && !errors.Is(err, errTimeout) {
		return nil, err
	}
	if err := s.manager.Kill(ctx); err != nil {
		return nil, err
	}
	crashed, _ := k.crashedFixtures()
	removeRule()
	return crashed, s.manager.Restart(ctx)
}

// compare compares fixtures with undisturbed runs, and adds the deviations to the rows of their subjects and phases.
func (s *sieve) compare(ctx context.Context, ph phase, fixtures []*fixture, took time.Duration, late bool) error {
	if len(fixtures) == 0 {
		return nil
	}
	found := map[*fixture][]string{}
	// The garbage collector may still be deleting objects.
	err := s.waitUntil(ctx, 20*time.Second, func() (string, error) {
		snapshots, err := s.snapshots(ctx, fixtures)
		if err != nil {
			return "", err
		}
		first := ""
		for _, f := range fixtures {
			key := f.name + " " + ph.name
			found[f] = differences(s.want[key], snapshots[f], s.ignore[key])
			first = cmp.Or(first, shorten(found[f], 3))
		}
		return first, nil
	})
	if err != nil && !errors.Is(err, errTimeout) {
		return err
	}
	for _, f := range fixtures {
		key := f.name + " " + ph.name
		r := s.rows[key]
		if r == nil {
			r = &row{Scenario: "crash-" + strings.ReplaceAll(key, " ", "-"), Injections: []string{"PodKill"}, Bound: waitTimeout}
			s.rows[key] = r
		}
		r.Writes++
		r.Fault = fmt.Sprintf("killed after each of %d writes; %d without a crash", r.Writes, s.writes[key])
		r.Recovery = max(r.Recovery, took)
		r.Remark = "slowest; writes are crashes"
		if late {
			problem, err := ph.unfinished(f, ctx, s.testCluster)
			if err != nil {
				return err
			}
			found[f] = append(found[f], slices.DeleteFunc([]string{problem}, func(text string) bool { return text == "" })...)
		}
		for _, d := range found[f] {
			r.Deviations = append(r.Deviations, fmt.Sprintf("after write %d: %s", f.crash, d))
		}
		if len(found[f]) > 0 {
			s.logf("%s after write %d: %s", r.Scenario, f.crash, shorten(found[f], 5))
		}
	}
	return nil
}

// snapshots returns the snapshot of each fixture, with a placeholder for its namespace.
func (s *sieve) snapshots(ctx context.Context, fixtures []*fixture) (map[*fixture]snapshot, error) {
	var namespaces []string
	for _, f := range fixtures {
		namespaces = append(namespaces, f.namespace)
	}
	all, err := s.takeSnapshot(ctx, s.kinds, namespaces...)
	snapshots := map[*fixture]snapshot{}
	for _, f := range fixtures {
		snapshots[f] = all.ofFixture(f).renamed(f.namespace)
	}
	return snapshots, err
}

// deleteLeftovers deletes all objects that a round has left behind, such as PersistentVolumeClaims, which are kept by design.
func (s *sieve) deleteLeftovers(ctx context.Context, fixtures []*fixture) error {
	var namespaces []string
	for _, f := range fixtures {
		if f.namespace != operatorNamespace {
			namespaces = append(namespaces, f.namespace)
		}
	}
	errs := []error{s.deleteNamespacesAndWait(ctx, namespaces...)}
	left, err := s.takeSnapshot(ctx, s.kinds, operatorNamespace)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, f := range fixtures {
		for key := range left.ofFixture(f) {
			errs = append(errs, s.deleteAndWait(ctx, key))
		}
	}
	return errors.Join(errs...)
}
