// Command demo runs the operator with a real control plane on loopback: the manager as a process with exactly the shipped permissions, and
// the custom resources of config/samples. It waits until they are ready. The manager's Deployment has the settings of the process, and its
// pod is only a placeholder.
//
// On a real node, see package node, the manager and its operands run in pods, and browsers on this machine can open the pages of MLflow
// and Ray.
//
//	demo up           start the demo, which keeps running
//	demo up --real    start the demo on a real node
//	demo up --force   stop a running demo first
//	demo down         stop the demo
//
// Samples of a new component need an entry in the table in kinds.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	instanceName = "demo"
	samplesDir   = "config/samples"
	// forceFlag replaces a running demo.
	forceFlag = "--force"
	// samplesTimeout limits the wait for the samples. Simulated pods start within a second, so a longer wait would not help.
	samplesTimeout = 2 * time.Minute
)

var errUsage = errors.New("usage: demo up [--real] [--force] | demo down")

// demo holds the options of a demo.
type demo struct {
	name    string // name of the instance
	samples string // kustomization of the custom resources, below the root of the checkout
	real    bool   // pods run on a real node
	force   bool   // a running demo is stopped first
	// ephemeral ties the control plane to this process, so it does not outlive a test.
	ephemeral bool
	timeout   time.Duration
	clock     clock.PassiveClock
	// out receives the result, progress all other output.
	out, progress io.Writer
	start         time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	d := &demo{
		name: instanceName, samples: samplesDir, timeout: samplesTimeout, clock: clock.RealClock{}, out: os.Stdout, progress: os.Stderr,
	}
	err := d.run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func (d *demo) run(ctx context.Context, args []string) error {
	d.start = d.clock.Now()
	if slices.Equal(args, []string{"down"}) {
		return d.down(ctx)
	}
	if len(args) == 0 || args[0] != "up" {
		return fmt.Errorf("unknown command %q; %w", args, errUsage)
	}
	for _, flag := range args[1:] {
		switch flag {
		case realFlag:
			d.real, d.timeout = true, max(d.timeout, realSamplesTimeout)
		case forceFlag:
			d.force = true
		default:
			return fmt.Errorf("unknown flag %q; %w", flag, errUsage)
		}
	}
	estimator := &progressEstimator{out: d.progress, clock: d.clock, start: d.start}
	withEstimates := *d
	withEstimates.progress = estimator
	if err := withEstimates.up(ctx); err != nil || d.ephemeral || d.real {
		return err
	}
	return estimator.save()
}

// down stops the control plane and the manager, and deletes their files.
func (d *demo) down(ctx context.Context) error {
	instance, err := cluster.Open(d.name)
	if errors.Is(err, cluster.ErrNotFound) {
		fmt.Fprintln(d.out, "No demo is running.")
		return nil
	}
	if err != nil {
		return err
	}
	running := slices.DeleteFunc(instance.Processes(), func(p *cluster.Process) bool { return !p.Running() })
	if err := instance.Stop(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "The demo is stopped: %d processes ended, and their files are deleted.\n", len(running))
	return nil
}

// stepCount is the number of steps.
const stepCount = 8

func (d *demo) step(number int, format string, args ...any) {
	d.logf("step %d of %d: %s", number, stepCount, fmt.Sprintf(format, args...))
}

func (d *demo) logf(format string, args ...any) {
	fmt.Fprintf(d.progress, format+"\n", args...)
}
