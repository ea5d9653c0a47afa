// Command chaos exposes the manager to faults of a cluster, and prints a table of the results. It starts its own control plane with
// the shipped manifests, and the real program with the shipped permissions behind a proxy that drops, delays, resets and rejects its
// requests. The verdicts are those of operator-chaos:
//
//	Resilient      everything is restored in time, without loss, duplicates or leftovers, and the manager is idle
//	Degraded       the same, but later than the bound of the scenario
//	Failed         something is lost, duplicated, left behind or not repaired
//	Inconclusive   the fault did not occur, or the scenario returned an error
//
// `-scenario` selects scenarios by a regular expression, `-list` prints their names. `random` takes random steps for `-duration`; a failure
// prints its seed and the shortest failing sequence of steps that was found. The exit code is 1 if a verdict is Degraded or Failed, or an
// error occurs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var errNotResilient = errors.New("verdicts are Degraded or Failed")

// options are the command-line flags.
type options struct {
	scenario string
	duration time.Duration
	seed     uint64
	out      string
	// changesPerClass is the maximum number of changes of each class that the scenario drift makes to a child.
	changesPerClass int
	list            bool
}

func main() {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime logs a warning after 30 seconds
	var o options
	flag.StringVar(&o.scenario, "scenario", "", "regular expression of the scenarios to run; empty: all")
	flag.DurationVar(&o.duration, "duration", 5*time.Minute, "duration of the scenario random")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of all random choices; 0 means a random seed")
	flag.StringVar(&o.out, "out", "bin/chaos", "folder of the report")
	flag.IntVar(&o.changesPerClass, "changes", 2, "maximum number of changes of each class to each child")
	flag.BoolVar(&o.list, "list", false, "print the names of the scenarios and exit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// allScenarios returns all scenarios. Those without the population are first, except random, which adds Kueue to the cluster.
func allScenarios() []scenario {
	crashes := scenario{name: "crash", standalone: true, run: (*campaign).runCrashes}
	random := scenario{name: "random", standalone: true, run: (*campaign).runRandomRounds}
	platform := scenario{name: "platform", standalone: true, run: (*campaign).runPlatform}
	drift := scenario{name: "drift", run: (*campaign).runDrift}
	return slices.Concat([]scenario{crashes, platform}, stalenessScenarios(), storms(), processes(), surroundings(), certificates(), []scenario{drift, random})
}

// selectScenarios returns the scenarios whose whole name matches a regular expression.
func selectScenarios(expression string) ([]scenario, error) {
	if expression == "" {
		return allScenarios(), nil
	}
	matches, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil, fmt.Errorf("reading -scenario: %w", err)
	}
	some := slices.DeleteFunc(allScenarios(), func(s scenario) bool { return !matches.MatchString(s.name) })
	if len(some) == 0 {
		return nil, fmt.Errorf("no scenario matches %s; -list prints their names", expression)
	}
	return some, nil
}

func (o options) run(ctx context.Context, out, progress io.Writer) (err error) {
	scenarios, err := selectScenarios(o.scenario)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range scenarios {
			fmt.Fprintln(out, s.name)
		}
		return nil
	}
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	fmt.Fprintf(progress, "seed %d\n", o.seed)
	cluster, err := newTestCluster(ctx, o.seed, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.close(context.WithoutCancel(ctx))) }()
	c := &campaign{
		testCluster: cluster, seed: o.seed, random: rand.New(rand.NewPCG(o.seed, 0)), duration: o.duration, changesPerClass: o.changesPerClass, subjects: subjects,
		report: report{Seed: o.seed, Started: clock.RealClock{}.Now()},
	}
	failures := c.runAll(ctx, scenarios)
	c.report.markdown(out)
	if err := errors.Join(c.report.save(o.out), failures); err != nil {
		return err
	}
	if bad := c.report.failures(); len(bad) > 0 {
		return fmt.Errorf("%w: %d of %d rows", errNotResilient, len(bad), len(c.report.Rows))
	}
	return nil
}

// runAll runs scenarios in sequence, and continues after a scenario that returns an error.
func (c *campaign) runAll(ctx context.Context, scenarios []scenario) error {
	var errs []error
	for _, s := range scenarios {
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		c.logf("scenario %s", s.name)
		if s.standalone {
			if err := c.depopulate(ctx); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		if err := s.run(c, ctx); err != nil {
			c.logf("scenario %s returned an error: %v", s.name, err)
			c.addRow(row{Scenario: s.name, Verdict: inconclusive, Remark: err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err), c.recoverCampaign(ctx))
		}
	}
	return errors.Join(errs...)
}

// recoverCampaign removes the rules of the proxy, starts the manager if it has exited, and deletes the population after a scenario that
// returned an error. The next scenario recreates the population if required.
func (c *campaign) recoverCampaign(ctx context.Context) error {
	c.proxy.removeRules()
	return errors.Join(c.restart(ctx), c.depopulate(ctx))
}
