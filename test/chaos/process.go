package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// downTime is the time until a terminated process is restarted.
const downTime = 2 * time.Second

// processes returns faults of the manager's process and of its leader election.
func processes() []scenario {
	return []scenario{
		{name: "kill", run: func(c *campaign, ctx context.Context) error {
			return c.disturb(ctx, disturbance{name: "kill", fault: "kill -9, back after 2 s", injections: []string{"PodKill"}, lasts: downTime, bound: restarted,
				begin: func(ctx context.Context) (func(context.Context) error, error) { return c.restart, c.manager.Kill(ctx) }})
		}},
		{name: "terminate", run: func(c *campaign, ctx context.Context) error {
			return c.disturb(ctx, disturbance{name: "terminate", fault: "SIGTERM, back after 2 s", injections: []string{"PodKill"}, lasts: downTime, bound: restarted,
				begin: func(ctx context.Context) (func(context.Context) error, error) { return c.restart, c.manager.Stop(ctx) }})
		}},
		{name: "killed-leader", run: (*campaign).killedLeader},
		{name: "terminated-leader", run: (*campaign).terminatedLeader},
		{name: "lost-leader", run: (*campaign).lostLeader},
		{name: "frozen-leader", run: (*campaign).frozenLeader},
		{name: "stolen-lease", run: (*campaign).stolenLease},
	}
}

// pair holds two managers that share a Lease; the first uses the proxy.
type pair struct{ first, second *operator.Manager }

func (p pair) stop(ctx context.Context) error {
	var errs []error
	for _, m := range []*operator.Manager{p.first, p.second} {
		if m != nil && m.Process.Running() {
			errs = append(errs, m.Process.Signal(syscall.SIGCONT), m.Kill(ctx))
		}
	}
	return errors.Join(errs...)
}

// elected calls run with managers that use leader election, in place of the default one. The API server calls the webhooks of the
// first.
func (c *campaign) elected(ctx context.Context, replicas int, args []string, run func(pair) error) (err error) {
	if err := c.manager.Stop(ctx); err != nil {
		return err
	}
	c.replaced = true
	defer func() {
		c.replaced = false
		err = errors.Join(err, c.restart(ctx), c.waitIdle(ctx), c.recreatePopulation(ctx, c.damaged))
	}()
	args = append([]string{"--leader-elect"}, args...)
	var p pair
	defer func() { err = errors.Join(err, p.stop(ctx), client.IgnoreNotFound(c.admin.Delete(ctx, lease()))) }()
	if p.first, err = c.startManager(ctx, "leader", append(args, "--kubeconfig="+c.proxiedKubeconfig, fmt.Sprintf("--webhook-port=%d", c.installed.WebhookPort))...); err != nil {
		return err
	}
	if err := c.until(ctx, waitTimeout, func() (string, error) { return c.heldBy(ctx, "leader") }); err != nil {
		return err
	}
	if replicas > 1 {
		if p.second, err = c.startManager(ctx, "follower", args...); err != nil {
			return err
		}
	}
	if err := c.waitIdle(ctx); err != nil {
		return err
	}
	return run(p)
}

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator"}}
}

// heldBy returns "" if want holds the Lease.
func (c *campaign) heldBy(ctx context.Context, want string) (string, error) {
	held := lease()
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
		return "no lease", client.IgnoreNotFound(err)
	}
	if holder := held.Spec.HolderIdentity; holder == nil || *holder != want {
		return "another one leads", nil
	}
	return "", nil
}

// killedLeader kills the leader as if in its pod, with the Lease settings as shipped, and restarts it.
func (c *campaign) killedLeader(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.elected(ctx, 1, nil, func(p pair) error {
		return c.disturb(ctx, disturbance{name: "killed-leader", fault: "kill -9 of the leader, which is started again in its pod; the Lease as shipped",
			injections: []string{"PodKill", "LeaderElectionDisrupt"}, lasts: downTime, bound: restarted,
			begin: func(ctx context.Context) (func(context.Context) error, error) {
				return p.first.Restart, p.first.Kill(ctx)
			}})
	})
}

// openShiftLease sets the Lease of the manifests for OpenShift, whose retry period is longer than a scenario.
var openShiftLease = []string{"--leader-elect-lease-duration=137s", "--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s"}

// terminatedLeader ends the leader in order while another replica watches the Lease.
func (c *campaign) terminatedLeader(ctx context.Context) error {
	return c.succeeded(ctx, disturbance{name: "terminated-leader", fault: "SIGTERM to the leader of two replicas; the Lease of OpenShift", bound: restarted},
		openShiftLease, func(ctx context.Context, leader *operator.Manager) error { return leader.Stop(ctx) })
}

// lostLeader kills the leader while another replica waits, and does not restart it.
func (c *campaign) lostLeader(ctx context.Context) error {
	return c.succeeded(ctx, disturbance{name: "lost-leader", fault: "SIGKILL to the leader of two replicas, as when its node is lost; the Lease of Kubernetes", bound: slow},
		nil, func(ctx context.Context, leader *operator.Manager) error { return leader.Kill(ctx) })
}

// succeeded ends the leader of two replicas, and notes when the other one led.
func (c *campaign) succeeded(ctx context.Context, d disturbance, args []string, end func(context.Context, *operator.Manager) error) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.elected(ctx, 2, args, func(p pair) error {
		var led time.Duration
		d.injections = []string{"PodKill", "LeaderElectionDisrupt"}
		d.begin = func(ctx context.Context) (func(context.Context) error, error) {
			start := c.clock.Now()
			if err := end(ctx, p.first); err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				err := c.until(ctx, waitTimeout, func() (string, error) { return c.heldBy(ctx, "follower") })
				led = c.clock.Since(start)
				return err
			}, nil
		}
		err := c.disturb(ctx, d)
		if err == nil {
			r := &c.report.Rows[len(c.report.Rows)-1]
			r.Remark = fmt.Sprintf("the other one led %s after the signal", seconds(led))
			c.logf("%s: %s", d.name, r.Remark)
		}
		return err
	})
}

// shortLease sets a Lease that expires within a scenario, but not on a slow machine.
var shortLease = []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"}

// frozenLeader stops a leader by SIGSTOP until another one leads, and continues it.
func (c *campaign) frozenLeader(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.elected(ctx, 2, shortLease, func(p pair) error {
		var late int
		var aliveErr error
		err := c.disturb(ctx, disturbance{name: "frozen-leader", fault: "SIGSTOP of the leader until the other one leads, then SIGCONT; a Lease of 15 s",
			injections: []string{"LeaderElectionDisrupt"}, bound: prompt, remark: "children deleted during the stop were back before the leader woke",
			begin: func(context.Context) (func(context.Context) error, error) {
				if err := p.first.Process.Signal(syscall.SIGSTOP); err != nil {
					return nil, err
				}
				return func(ctx context.Context) error {
					if err := c.until(ctx, waitTimeout, func() (string, error) { return c.heldBy(ctx, "follower") }); err != nil {
						return err
					}
					if err := c.until(ctx, waitTimeout, func() (string, error) { return c.broken(ctx) }); err != nil {
						return err
					}
					before := c.proxy.writeCount()
					if err := p.first.Process.Signal(syscall.SIGCONT); err != nil {
						return err
					}
					aliveErr = p.first.Process.Wait(ctx, waitTimeout)
					late = c.proxy.writeCount() - before
					return nil
				}, nil
			}})
		if err != nil {
			return err
		}
		r := &c.report.Rows[len(c.report.Rows)-1]
		if aliveErr != nil {
			r.Deviations, r.Verdict = append(r.Deviations, "the old leader lives on: "+aliveErr.Error()), failed
		}
		if late > 0 { // controller-runtime does not fence leaders; only the resulting state matters
			r.Remark += fmt.Sprintf("; it sent %d writes between its waking and its end", late)
		}
		return nil
	})
}

// stolenLease sets another client as holder of the Lease, and then deletes the Lease.
func (c *campaign) stolenLease(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.elected(ctx, 2, shortLease, func(pair) error {
		return c.disturb(ctx, disturbance{name: "stolen-lease", fault: "another client takes the Lease, which is then deleted; a Lease of 15 s",
			injections: []string{"LeaderElectionDisrupt"}, lasts: downTime, bound: slow,
			begin: func(ctx context.Context) (func(context.Context) error, error) {
				held := lease()
				if err := c.admin.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
					return nil, fmt.Errorf("reading the Lease: %w", err)
				}
				held.Spec.HolderIdentity, held.Spec.RenewTime = new("a-stranger"), &metav1.MicroTime{Time: c.clock.Now()}
				if err := c.admin.Update(ctx, held); err != nil {
					return nil, fmt.Errorf("taking the Lease: %w", err)
				}
				return func(ctx context.Context) error {
					return client.IgnoreNotFound(c.admin.Delete(ctx, lease()))
				}, nil
			}})
	})
}
