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

// downTime is the time until an exited process is restarted.
const downTime = 2 * time.Second

// processes returns faults of the manager's process and of its leader election.
func processes() []scenario {
	return []scenario{
		{name: "kill", run: func(c *campaign, ctx context.Context) error {
			return c.disturb(ctx, disturbance{name: "kill", fault: "kill -9, back after 2 s", injections: []string{"PodKill"}, duration: downTime, bound: restarted,
				begin: func(ctx context.Context) (func(context.Context) error, error) { return c.restart, c.manager.Kill(ctx) }})
		}},
		{name: "terminate", run: func(c *campaign, ctx context.Context) error {
			return c.disturb(ctx, disturbance{name: "terminate", fault: "SIGTERM, back after 2 s", injections: []string{"PodKill"}, duration: downTime, bound: restarted,
				begin: func(ctx context.Context) (func(context.Context) error, error) { return c.restart, c.manager.Stop(ctx) }})
		}},
		{name: "killed-leader", run: (*campaign).killLeader},
		{name: "terminated-leader", run: (*campaign).terminateLeader},
		{name: "lost-leader", run: (*campaign).loseLeader},
		{name: "frozen-leader", run: (*campaign).freezeLeader},
		{name: "stolen-lease", run: (*campaign).stealLease},
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

// withLeaderElection calls run with managers that use leader election, in place of the default one. The API server calls the webhooks of
// the first manager.
func (c *campaign) withLeaderElection(ctx context.Context, replicas int, args []string, run func(pair) error) (err error) {
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
	if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.checkHolder(ctx, "leader") }); err != nil {
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

// checkHolder returns "" if want holds the Lease, otherwise the problem.
func (c *campaign) checkHolder(ctx context.Context, want string) (string, error) {
	held := lease()
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
		return "no lease", client.IgnoreNotFound(err)
	}
	if holder := held.Spec.HolderIdentity; holder == nil || *holder != want {
		return "another replica leads", nil
	}
	return "", nil
}

// killLeader kills the leader and restarts it, as the kubelet does, with the default Lease settings.
func (c *campaign) killLeader(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.withLeaderElection(ctx, 1, nil, func(p pair) error {
		return c.disturb(ctx, disturbance{name: "killed-leader", fault: "kill -9 of the leader, which is started again in its pod; the Lease as shipped",
			injections: []string{"PodKill", "LeaderElectionDisrupt"}, duration: downTime, bound: restarted,
			begin: func(ctx context.Context) (func(context.Context) error, error) {
				return p.first.Restart, p.first.Kill(ctx)
			}})
	})
}

// openShiftLease holds the leader election flags of the manifests for OpenShift.
var openShiftLease = []string{"--leader-elect-lease-duration=137s", "--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s"}

// terminateLeader terminates the leader while another replica waits for the Lease.
func (c *campaign) terminateLeader(ctx context.Context) error {
	return c.changeLeader(ctx, disturbance{name: "terminated-leader", fault: "SIGTERM to the leader of two replicas; the Lease of OpenShift", bound: restarted},
		openShiftLease, func(ctx context.Context, leader *operator.Manager) error { return leader.Stop(ctx) })
}

// loseLeader kills the leader while another replica waits for the Lease, and does not restart it.
func (c *campaign) loseLeader(ctx context.Context) error {
	return c.changeLeader(ctx, disturbance{name: "lost-leader", fault: "SIGKILL to the leader of two replicas, as when its node is lost; the Lease of Kubernetes", bound: slow},
		nil, func(ctx context.Context, leader *operator.Manager) error { return leader.Kill(ctx) })
}

// changeLeader stops the leader of two replicas, and adds the time until the other replica leads to the row.
func (c *campaign) changeLeader(ctx context.Context, d disturbance, args []string, stop func(context.Context, *operator.Manager) error) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.withLeaderElection(ctx, 2, args, func(p pair) error {
		var failover time.Duration
		d.injections = []string{"PodKill", "LeaderElectionDisrupt"}
		d.begin = func(ctx context.Context) (func(context.Context) error, error) {
			start := c.clock.Now()
			if err := stop(ctx, p.first); err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.checkHolder(ctx, "follower") })
				failover = c.clock.Since(start)
				return err
			}, nil
		}
		err := c.disturb(ctx, d)
		if err == nil {
			r := &c.report.Rows[len(c.report.Rows)-1]
			r.Remark = fmt.Sprintf("the other one led %s after the signal", seconds(failover))
			c.logf("%s: %s", d.name, r.Remark)
		}
		return err
	})
}

// shortLease holds leader election flags for a Lease that expires within a scenario, but not because of a slow machine.
var shortLease = []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"}

// freezeLeader sends SIGSTOP to the leader, and SIGCONT when the other replica leads and has restored the children.
func (c *campaign) freezeLeader(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.withLeaderElection(ctx, 2, shortLease, func(p pair) error {
		var lateWrites int
		var exitErr error
		err := c.disturb(ctx, disturbance{name: "frozen-leader", fault: "SIGSTOP of the leader until the other one leads, then SIGCONT; a Lease of 15 s",
			injections: []string{"LeaderElectionDisrupt"}, bound: prompt, remark: "children deleted during the stop were back before the leader woke",
			begin: func(context.Context) (func(context.Context) error, error) {
				if err := p.first.Process.Signal(syscall.SIGSTOP); err != nil {
					return nil, err
				}
				return func(ctx context.Context) error {
					if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.checkHolder(ctx, "follower") }); err != nil {
						return err
					}
					if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.firstDeviations(ctx) }); err != nil {
						return err
					}
					before := c.proxy.writeCount()
					if err := p.first.Process.Signal(syscall.SIGCONT); err != nil {
						return err
					}
					exitErr = p.first.Process.Wait(ctx, waitTimeout)
					lateWrites = c.proxy.writeCount() - before
					return nil
				}, nil
			}})
		if err != nil {
			return err
		}
		r := &c.report.Rows[len(c.report.Rows)-1]
		if exitErr != nil {
			r.Deviations, r.Verdict = append(r.Deviations, "the previous leader has not exited: "+exitErr.Error()), failed
		}
		if lateWrites > 0 { // controller-runtime does not fence leaders; only the resulting state matters
			r.Remark += fmt.Sprintf("; it sent %d writes between SIGCONT and its exit", lateWrites)
		}
		return nil
	})
}

// stealLease sets another holder in the Lease, and then deletes the Lease.
func (c *campaign) stealLease(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	return c.withLeaderElection(ctx, 2, shortLease, func(pair) error {
		return c.disturb(ctx, disturbance{name: "stolen-lease", fault: "another client takes the Lease, which is then deleted; a Lease of 15 s",
			injections: []string{"LeaderElectionDisrupt"}, duration: downTime, bound: slow,
			begin: func(ctx context.Context) (func(context.Context) error, error) {
				held := lease()
				if err := c.admin.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
					return nil, fmt.Errorf("reading the Lease: %w", err)
				}
				held.Spec.HolderIdentity, held.Spec.RenewTime = new("a-stranger"), &metav1.MicroTime{Time: c.clock.Now()}
				if err := c.admin.Update(ctx, held); err != nil {
					return nil, fmt.Errorf("updating the Lease: %w", err)
				}
				return func(ctx context.Context) error {
					return client.IgnoreNotFound(c.admin.Delete(ctx, lease()))
				}, nil
			}})
	})
}
