package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// stepsPerRound is the number of steps in a round.
	stepsPerRound = 18
	// statusTimeout limits the time from the end of all faults until statuses are true.
	statusTimeout = 10 * time.Second
	// shrinkTries limits the number of tries in the search for a shorter sequence.
	shrinkTries = 12
)

// temporaryFaults are the faults of random steps. Each ends with its step, with a later step, or with the round.
var temporaryFaults = map[string]rule{
	"partition":       {fault: dropPackets, streams: true},
	"resets":          {fault: resetConnection},
	"latency":         {match: match{verbs: notWatch}, fault: delay(time.Second)},
	"throttled":       {share: 0.5, fault: respond(429)},
	"errors":          {share: 0.5, fault: respond(500)},
	"unavailable":     {share: 0.5, fault: respond(503)},
	"conflicts":       {match: match{writes: true}, share: 0.5, fault: respond(409)},
	"done-then-504":   {match: match{writes: true}, share: 0.5, fault: executeThen(respond(504))},
	"done-then-reset": {match: match{writes: true}, share: 0.5, fault: executeThen(resetConnection)},
	"late-watches":    {match: watches(), streams: true},
}

// randomRound is a round of random steps.
type randomRound struct {
	*campaign

	fixtures       map[string]*fixture
	changed        map[string]bool
	queue          *queue
	foreignObjects []foreignObject
	violations     []string
}

// runRandomRounds runs rounds of random steps until the duration has passed.
func (c *campaign) runRandomRounds(ctx context.Context) error {
	if err := c.startKueue(ctx); err != nil {
		return err
	}
	names := make([]string, 0, len(c.subjects))
	for _, s := range c.subjects {
		names = append(names, s.name)
	}
	faults := slices.Sorted(maps.Keys(temporaryFaults))
	r := row{Scenario: "random", Bound: statusTimeout}
	end := c.clock.Now().Add(c.duration)
	rounds, stepCount := 0, 0
	for ; c.clock.Now().Before(end); rounds++ {
		seed := c.seed + uint64(rounds)
		steps := sequence(rand.New(rand.NewPCG(seed, 1)), stepsPerRound, names, faults)
		found, took, err := c.runSteps(ctx, steps, fmt.Sprintf("x%02d", rounds))
		if err != nil {
			return err
		}
		stepCount += len(steps)
		r.Recovery = max(r.Recovery, took)
		c.logf("round %d, seed %d: statuses true after %s %s", rounds, seed, seconds(took), shorten(found, 5))
		if len(found) == 0 {
			continue
		}
		c.logf("seed %d fails: %s", seed, describe(steps))
		tries := 0
		short := shrink(steps, shrinkTries, func(some []step) bool {
			tries++
			again, _, err := c.runSteps(ctx, some, fmt.Sprintf("x%02d-%02d", rounds, tries))
			return err == nil && len(again) > 0
		})
		r.Deviations = append(r.Deviations, fmt.Sprintf("seed %d: %s; shortest sequence found: %s", seed, shorten(found, 2), describe(short)))
		c.logf("shortest sequence found: %s", encode(short))
	}
	r.Fault = fmt.Sprintf("%d rounds of %d random steps each, first seed %d", rounds, stepsPerRound, c.seed)
	r.Remark = "the time is the longest from the end of all faults until all statuses were true"
	r.Writes = stepCount
	c.addRow(r)
	return nil
}

// runSteps runs the steps in new namespaces, checks the invariants, and cleans up.
func (c *campaign) runSteps(ctx context.Context, steps []step, title string) (violations []string, took time.Duration, err error) {
	g := &randomRound{campaign: c, fixtures: map[string]*fixture{}, changed: map[string]bool{}}
	if g.queue, err = c.newQueue(ctx, title); err != nil {
		return nil, 0, err
	}
	for _, s := range c.subjects {
		f, err := s.fixture(s.name + "-" + title)
		if err != nil {
			return nil, 0, err
		}
		if err := c.createNamespace(ctx, f); err != nil {
			return nil, 0, err
		}
		more, err := c.createForeignObjects(ctx, f.namespace)
		if err != nil {
			return nil, 0, err
		}
		g.fixtures[s.name], g.foreignObjects = f, append(g.foreignObjects, more...)
	}
	for _, s := range steps {
		if err := g.runStep(ctx, s); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", s, err)
		}
	}
	if took, err = g.endFaults(ctx); err != nil {
		return nil, took, err
	}
	return g.violations, took, g.cleanUp(ctx)
}

// runStep runs one step. It ignores rejections by the API server or a webhook: the checks cover only existing objects.
func (g *randomRound) runStep(ctx context.Context, s step) error {
	random := rand.New(rand.NewPCG(s.Pick, 0))
	f := g.fixtures[s.On]
	brief := time.Duration(1+random.IntN(3)) * time.Second
	switch s.Do {
	case "create":
		for _, o := range f.objects {
			if g.admin.Create(ctx, o.DeepCopy()) == nil && o == f.resource() {
				g.changed[s.On] = false
			}
		}
	case "change":
		if f.change != "" && f.patch(ctx, g.testCluster, f.change) == nil {
			g.changed[s.On] = true
		}
	case "delete":
		_ = f.remove(ctx, g.testCluster) // a rejection is ignored
	case "deleteChild":
		return g.deleteChild(ctx, f, random)
	case "changeAppWrapper":
		g.queue.changeWrapper(ctx, random)
	case "fault":
		removeRule := g.proxy.addRule(temporaryFaults[s.On])
		if random.IntN(2) == 0 { // otherwise the fault continues during later steps
			defer removeRule()
			return g.pause(ctx, brief)
		}
	case "closeWatches":
		g.proxy.closeWatches(watches())
	case "kill", "terminate":
		return g.restartManager(ctx, s.Do == "kill")
	case "wait":
		g.proxy.removeRules()
		return g.pause(ctx, brief)
	}
	return g.checkQuota(ctx)
}

// restartManager stops the manager and starts it again. All faults end, because the manager needs the API server at its start.
func (g *randomRound) restartManager(ctx context.Context, kill bool) error {
	stop := g.manager.Stop
	if kill {
		stop = g.manager.Kill
	}
	if err := stop(ctx); err != nil {
		return err
	}
	g.proxy.removeRules()
	return g.restart(ctx)
}

// deleteChild deletes a replaceable child of a custom resource. It does nothing for an AppWrapper, or if there is no such child.
func (g *randomRound) deleteChild(ctx context.Context, f *fixture, random *rand.Rand) error {
	if f.resource().GetKind() == "AppWrapper" {
		return nil
	}
	live, err := g.takeSnapshot(ctx, g.kinds, f.namespace)
	if err != nil {
		return err
	}
	var candidates []id
	for key := range live.ofFixture(f) {
		if slices.Contains(replaceable, key.Kind) && !slices.Contains([]string{"of-another-client", "storage-config"}, key.name) {
			candidates = append(candidates, key)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	slices.SortFunc(candidates, compareIDs)
	return client.IgnoreNotFound(g.admin.Delete(ctx, candidates[random.IntN(len(candidates))].object()))
}

// endFaults ends all faults, waits until statuses are true, and checks the invariants.
func (g *randomRound) endFaults(ctx context.Context) (time.Duration, error) {
	g.proxy.removeRules()
	if err := g.restart(ctx); err != nil {
		return 0, err
	}
	waitStart := g.clock.Now()
	err := g.waitUntil(ctx, waitTimeout, func() (string, error) { return g.firstNotReady(ctx) })
	duration := g.clock.Since(waitStart)
	switch {
	case errors.Is(err, errTimeout):
		g.violations = append(g.violations, "a status is not true: "+err.Error())
	case err != nil:
		return duration, err
	case duration > statusTimeout:
		g.violations = append(g.violations, fmt.Sprintf("statuses were true only after %s", seconds(duration)))
	}
	if err := g.waitIdle(ctx); errors.Is(err, errTimeout) {
		g.violations = append(g.violations, "not idle: "+err.Error())
	} else if err != nil {
		return duration, err
	}
	return duration, g.checkInvariants(ctx)
}

// firstNotReady returns why a custom resource is not ready, "" if all are. It skips custom resources that do not exist, or lack a
// dependency.
func (g *randomRound) firstNotReady(ctx context.Context) (string, error) {
	for name, f := range g.fixtures {
		if exists, err := f.existsReason(ctx, g.testCluster); err != nil {
			return "", err
		} else if exists == "" {
			continue
		}
		if missing, err := g.lacksDependency(ctx, f); err != nil {
			return "", err
		} else if missing {
			continue
		}
		ready := f.ready
		if g.changed[name] && f.readyAfterChange != "" {
			ready = f.readyAfterChange
		}
		if problem, err := f.unreadyReason(ctx, g.testCluster, ready); problem != "" || err != nil {
			return problem, client.IgnoreNotFound(err)
		}
	}
	return "", nil
}

// lacksDependency reports whether an object that a user has to create is missing.
func (g *randomRound) lacksDependency(ctx context.Context, f *fixture) (bool, error) {
	for _, o := range f.objects[:len(f.objects)-1] {
		err := g.admin.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err != nil {
			return true, nil
		}
	}
	return false, nil
}

// checkInvariants adds violations: orphans, duplicate Jobs, changed foreign objects, and an exceeded quota.
func (g *randomRound) checkInvariants(ctx context.Context) error {
	for _, f := range g.fixtures {
		if f.namespace == operatorNamespace {
			continue
		}
		orphans, err := g.orphans(ctx, f.namespace)
		if err != nil {
			return err
		}
		g.violations = append(g.violations, orphans...)
		jobs, err := g.countJobs(ctx, f.namespace)
		if err != nil {
			return err
		}
		if jobs > 1 {
			g.violations = append(g.violations, fmt.Sprintf("%d Jobs in %s", jobs, f.namespace))
		}
	}
	changed, err := g.changedObjects(ctx, g.foreignObjects)
	g.violations = append(g.violations, changed...)
	return errors.Join(err, g.checkQuota(ctx))
}

// cleanUp deletes all objects, and adds leftovers and changed foreign objects to the violations.
func (g *randomRound) cleanUp(ctx context.Context) error {
	g.queue.remove(ctx)
	for _, f := range g.fixtures {
		for _, o := range slices.Backward(f.objects) {
			if err := g.admin.Delete(ctx, o.DeepCopy()); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s: %w", f.name, err)
			}
		}
	}
	var fixtures []*fixture
	for _, f := range g.fixtures {
		fixtures = append(fixtures, f)
		err := g.waitUntil(ctx, waitTimeout, func() (string, error) {
			if problem, err := f.existsReason(ctx, g.testCluster); problem != "" || err != nil {
				return problem, err
			}
			left, err := g.leftovers(ctx, f)
			return shorten(left, 3), err
		})
		if errors.Is(err, errTimeout) {
			g.violations = append(g.violations, "after the deletion: "+err.Error())
		} else if err != nil {
			return err
		}
	}
	changed, err := g.changedObjects(ctx, g.foreignObjects)
	g.violations = append(g.violations, changed...)
	s := &sieve{campaign: g.campaign}
	for _, f := range g.foreignObjects {
		err = errors.Join(err, client.IgnoreNotFound(g.admin.Delete(ctx, f.object)))
	}
	return errors.Join(err, s.deleteLeftovers(ctx, fixtures), g.queue.clear(ctx))
}
