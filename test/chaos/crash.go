package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// phase is a part of the life of a custom resource in which the manager is killed after one of its writes.
type phase struct {
	name  string
	begin func(*plot, context.Context, *world) error
	// wrong says why the phase has not ended.
	wrong func(*plot, context.Context, *world) (string, error)
	skips func(*plot) bool
}

var phases = []phase{
	{name: "creation", begin: (*plot).createAll,
		wrong: func(p *plot, ctx context.Context, w *world) (string, error) { return p.wrong(ctx, w, p.ready) }},
	{name: "change", skips: func(p *plot) bool { return p.change == "" },
		begin: func(p *plot, ctx context.Context, w *world) error { return p.patch(ctx, w, p.change) },
		wrong: func(p *plot, ctx context.Context, w *world) (string, error) {
			if p.changed != "" {
				return p.wrong(ctx, w, p.changed)
			}
			return p.wrong(ctx, w, p.ready)
		}},
	{name: "deletion", begin: (*plot).remove, wrong: (*plot).gone},
}

// crash lets the manager write until each plot has come to the same write, and holds it there.
type crash struct {
	mu     sync.Mutex
	at     int // 0 counts and never holds
	plots  []*plot
	counts map[*plot]int
	latest time.Time
	now    func() time.Time
}

// fault carries the write in question out, answers nothing, and holds back what follows for that plot.
func (k *crash) fault(x *exchange) bool {
	k.mu.Lock()
	i := slices.IndexFunc(k.plots, func(p *plot) bool { return p.owns(x.request) })
	if i < 0 {
		k.mu.Unlock()
		return false
	}
	p := k.plots[i]
	count := k.counts[p]
	if k.at == 0 || count < k.at {
		count++
		k.counts[p], k.latest = count, k.now()
	} else {
		count++ // behind the one that is held
	}
	k.mu.Unlock()
	if k.at == 0 || count < k.at {
		return false
	}
	if count == k.at {
		x.forward(httptest.NewRecorder())
	}
	select {
	case <-x.lifted:
	case <-x.r.Context().Done():
	}
	panic(http.ErrAbortHandler) // its client is dead
}

// reached are the plots that came to the write, and since how long there was no other one.
func (k *crash) reached() (plots []*plot, since time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.plots {
		if k.at > 0 && k.counts[p] >= k.at {
			plots = append(plots, p)
		}
	}
	return plots, k.now().Sub(k.latest)
}

// lull is how long nothing more may be written until what is not held counts as done.
const lull = 1500 * time.Millisecond

// sieve is the campaign of crashes: after Sieve (OSDI 22), with all kinds side by side.
type sieve struct {
	*campaign

	// want are the pictures of undisturbed runs, by phase and subject, and ignore what differs between two of them.
	want   map[string]picture
	ignore map[string]mask
	rows   map[string]*row
	// most are the writes of an undisturbed run.
	most map[string]int
}

// crashes kills the manager after every single write.
func (c *campaign) crashes(ctx context.Context) error {
	s := &sieve{campaign: c, want: map[string]picture{}, ignore: map[string]mask{}, rows: map[string]*row{}, most: map[string]int{}}
	defer s.noteAll() // also of a campaign that is interrupted
	all := subjects
	for round := -2; len(all) > 0; round++ {
		hit, err := s.round(ctx, round, all)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if round > 0 {
			all = slices.DeleteFunc(slices.Clone(all), func(one subject) bool { return !hit[one.name] })
		}
		if round == -1 {
			round = 0 // the first crash is after write 1
		}
	}
	return nil
}

// noteAll adds the rows of all subjects and phases.
func (s *sieve) noteAll() {
	for _, one := range subjects {
		for _, ph := range phases {
			if r := s.rows[one.name+" "+ph.name]; r != nil {
				s.note(*r)
			}
		}
	}
}

// round takes all plots through all phases, with a crash after a write in each; rounds below 1 are undisturbed. It returns which
// subjects had so many writes in any phase.
func (s *sieve) round(ctx context.Context, write int, all []subject) (map[string]bool, error) {
	hit := map[string]bool{}
	var plots []*plot
	for _, one := range all {
		p, err := one.plot(fmt.Sprintf("%s-r%02d", one.name, write+2))
		if err != nil {
			return nil, err
		}
		plots = append(plots, p)
	}
	for _, ph := range phases {
		if err := s.phase(ctx, ph, write, plots, hit); err != nil {
			return nil, fmt.Errorf("%s: %w", ph.name, err)
		}
	}
	s.say("crash after write %d: %d of %d kinds had so many", write, len(hit), len(all))
	return hit, s.sweep(ctx, plots)
}

// phase runs one phase of all plots.
func (s *sieve) phase(ctx context.Context, ph phase, write int, all []*plot, hit map[string]bool) error {
	plots := slices.DeleteFunc(slices.Clone(all), func(p *plot) bool { return ph.skips != nil && ph.skips(p) })
	k := &crash{at: max(write, 0), plots: plots, counts: map[*plot]int{}, now: s.clock.Now, latest: s.clock.Now()}
	lift := s.proxy.with(rule{match: match{writes: true}, fault: k.fault})
	defer lift()
	for _, p := range plots {
		if err := ph.begin(p, ctx, s.world); err != nil {
			return err
		}
	}
	killed, err := s.kill(ctx, ph, k, lift)
	if err != nil {
		return err
	}
	ended := s.clock.Now()
	wrong := s.until(ctx, patience, func() (string, error) { return first(ctx, s.world, ph, plots) })
	took := s.clock.Since(ended)
	if err := s.settle(ctx); err != nil {
		return err
	}
	for _, p := range plots {
		key := p.name + " " + ph.name
		if write <= 0 {
			s.most[key] = k.counts[p]
		}
		if write > 0 && !slices.Contains(killed, p) {
			continue
		}
		hit[p.name] = true
		if err := s.compare(ctx, ph, p, write, took, wrong); err != nil {
			return err
		}
	}
	return nil
}

// first is what the first plot says that has not ended a phase.
func first(ctx context.Context, w *world, ph phase, plots []*plot) (string, error) {
	for _, p := range plots {
		if what, err := ph.wrong(p, ctx, w); what != "" || err != nil {
			return what, err
		}
	}
	return "", nil
}

// kill ends the manager when every plot is held at its write or has ended the phase with fewer, and starts it again.
func (s *sieve) kill(ctx context.Context, ph phase, k *crash, lift func()) ([]*plot, error) {
	if k.at == 0 {
		return nil, nil
	}
	err := s.until(ctx, patience, func() (string, error) {
		held, since := k.reached()
		if len(held) == len(k.plots) {
			return "", nil
		}
		rest := slices.DeleteFunc(slices.Clone(k.plots), func(p *plot) bool { return slices.Contains(held, p) })
		what, err := first(ctx, s.world, ph, rest)
		if what == "" && since < lull {
			what = "it still writes"
		}
		return what, err
	})
	if err != nil && !errors.Is(err, errPatience) {
		return nil, err
	}
	held, _ := k.reached()
	if len(held) == 0 {
		return nil, nil
	}
	if err := s.manager.Kill(ctx); err != nil {
		return nil, err
	}
	lift()
	return held, s.manager.Restart(ctx)
}

// compare holds a plot against an undisturbed run, and notes the outcome in the row of its subject and phase.
func (s *sieve) compare(ctx context.Context, ph phase, p *plot, write int, took time.Duration, wrong error) error {
	key := p.name + " " + ph.name
	now, err := s.picture(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case write == -2:
		s.want[key] = now
		return nil
	case write <= 0:
		s.ignore[key] = unsteady(s.want[key], now)
		return nil
	}
	// The garbage collector may still be at work.
	err = s.until(ctx, 20*time.Second, func() (string, error) {
		if now, err = s.picture(ctx, p); err != nil {
			return "", err
		}
		return shorten(differences(s.want[key], now, s.ignore[key]), 3), nil
	})
	if err != nil && !errors.Is(err, errPatience) {
		return err
	}
	r := s.rows[key]
	if r == nil {
		r = &row{Scenario: "crash-" + strings.ReplaceAll(key, " ", "-"), Injections: []string{"PodKill"}, Bound: patience}
		s.rows[key] = r
	}
	r.Writes++
	r.Fault = fmt.Sprintf("killed after each of %d writes; %d without a crash", r.Writes, s.most[key])
	r.Recovery = max(r.Recovery, took)
	r.Remark = "slowest; writes are crashes"
	for _, d := range differences(s.want[key], now, s.ignore[key]) {
		r.Deviations = append(r.Deviations, fmt.Sprintf("after write %d: %s", write, d))
	}
	if wrong != nil {
		if what, _ := ph.wrong(p, ctx, s.world); what != "" {
			r.Deviations = append(r.Deviations, fmt.Sprintf("after write %d: %s", write, what))
		}
	}
	return nil
}

func (s *sieve) picture(ctx context.Context, p *plot) (picture, error) {
	all, err := s.take(ctx, s.kinds, p.namespace)
	return all.within(p).renamed(p.namespace), err
}

// sweep removes what a round has left, so that the next one begins with nothing. Claims of deleted custom resources are kept by design.
func (s *sieve) sweep(ctx context.Context, plots []*plot) error {
	var errs []error
	for _, p := range plots {
		if p.namespace != own {
			errs = append(errs, s.clear(ctx, p.namespace))
		}
	}
	left, err := s.take(ctx, s.kinds, own)
	if err != nil {
		return err
	}
	for _, p := range plots {
		for key := range left.within(p) {
			errs = append(errs, s.discard(ctx, key))
		}
	}
	return errors.Join(errs...)
}
