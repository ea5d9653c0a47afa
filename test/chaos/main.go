// Command chaos injects the faults of a cluster into the manager, and prints a table of the results. It starts its own control plane with
// the shipped manifests, and the real program with the shipped permissions behind a proxy that drops, delays, rejects and repeats its
// requests. The verdicts are those of operator-chaos:
//
//	Resilient      everything is restored in time, without loss, duplicates or leftovers, and the manager is idle
//	Degraded       the same, but later than the bound of the scenario
//	Failed         something is lost, duplicated, left over or not repaired
//	Inconclusive   the fault did not occur
//
// `-scenario` selects scenarios by a regular expression, `-list` prints their names. `random` takes random steps for `-duration`; a failure
// prints its seed and the shortest failing sequence of steps. The exit code is 1 if a verdict is Degraded or Failed.
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

var errBad = errors.New("not every verdict is Resilient")

// options are the command-line flags.
type options struct {
	scenario string
	duration time.Duration
	seed     uint64
	out      string
	fields   int
	list     bool
}

func main() {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime logs a warning after 30 seconds
	var o options
	flag.StringVar(&o.scenario, "scenario", "", "regular expression of the scenarios to run; empty: all")
	flag.DurationVar(&o.duration, "duration", 5*time.Minute, "how long the random program runs")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of everything that is drawn; 0 draws one")
	flag.StringVar(&o.out, "out", "bin/chaos", "folder of the report")
	flag.IntVar(&o.fields, "fields", 2, "how many fields of each class are changed in each child")
	flag.BoolVar(&o.list, "list", false, "name the scenarios and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// allScenarios returns all scenarios, those without a population first.
func allScenarios() []scenario {
	crashes := scenario{name: "crash", apart: true, run: (*campaign).crashes}
	random := scenario{name: "random", apart: true, run: (*campaign).runRandomRounds}
	platform := scenario{name: "platform", apart: true, run: (*campaign).platform}
	drift := scenario{name: "drift", run: (*campaign).drift}
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
		return nil, fmt.Errorf("no scenario is called %s; -list names them", expression)
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
	w, err := newTestCluster(ctx, o.seed, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	c := &campaign{
		testCluster: w, seed: o.seed, random: rand.New(rand.NewPCG(o.seed, 0)), duration: o.duration, fields: o.fields, subjects: subjects,
		report: report{Seed: o.seed, Started: clock.RealClock{}.Now()},
	}
	failures := c.runAll(ctx, scenarios)
	c.report.markdown(out)
	if err := errors.Join(c.report.save(o.out), failures); err != nil {
		return err
	}
	if bad := c.report.failures(); len(bad) > 0 {
		return fmt.Errorf("%w: %d of %d rows", errBad, len(bad), len(c.report.Rows))
	}
	return nil
}

// runAll runs scenarios in sequence, and continues after an error.
func (c *campaign) runAll(ctx context.Context, scenarios []scenario) error {
	var errs []error
	for _, s := range scenarios {
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		c.logf("scenario %s", s.name)
		if s.apart {
			if err := c.depopulate(ctx); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		if err := s.run(c, ctx); err != nil {
			c.logf("%s could not be run: %v", s.name, err)
			c.note(row{Scenario: s.name, Verdict: inconclusive, Remark: err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err), c.recover(ctx))
		}
	}
	return errors.Join(errs...)
}

// recover ends all faults and restarts the manager after a failed scenario, and deletes the population, which the next scenario
// recreates.
func (c *campaign) recover(ctx context.Context) error {
	c.proxy.removeRules()
	return errors.Join(c.restart(ctx), c.depopulate(ctx))
}
