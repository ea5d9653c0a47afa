package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// openShiftLease holds the leader election flags of the manifests for OpenShift.
var openShiftLease = []string{"--leader-elect-lease-duration=137s", "--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s"}

// leaderExit is a way in which a leader exits. replaced is the time with the replaced operators.
type leaderExit struct {
	name, replaced string
	args           []string
	stop           func(context.Context, *operator.Manager) error
	limit          time.Duration
}

// measureLeaderChanges measures the time until another replica leads, and until that replica has repaired a child of the MLflow.
func (b *bench) measureLeaderChanges(ctx context.Context) error {
	if err := b.manager.Stop(ctx); err != nil {
		return err
	}
	terminate := func(_ context.Context, m *operator.Manager) error { return m.Process.Terminate() }
	for _, exit := range []leaderExit{
		{"leader is terminated", "26 to 57 s", nil, terminate, 5 * time.Second},
		{"leader is terminated, Lease of OpenShift", "26 to 57 s", openShiftLease, terminate, 5 * time.Second},
		{"leader is killed", "137 to 194 s", nil, func(ctx context.Context, m *operator.Manager) error { return m.Kill(ctx) }, 30 * time.Second},
	} {
		if err := b.measureLeaderExit(ctx, exit); err != nil {
			return fmt.Errorf("%s: %w", exit.name, err)
		}
	}
	return b.manager.Restart(ctx)
}

// measureLeaderExit stops the leader of two replicas several times, and restarts it each time.
func (b *bench) measureLeaderExit(ctx context.Context, exit leaderExit) (err error) {
	replicas := map[string]*operator.Manager{}
	for _, name := range []string{"replica-a", "replica-b"} {
		options := b.options
		options.Name, options.WebhookPort = name, 0
		options.Args = append(append(slices.Clone(options.Args), "--leader-elect"), exit.args...)
		options.Env = append(slices.Clone(options.Env), "POD_NAME="+name)
		if replicas[name], err = operator.Start(ctx, b.instance, options); err != nil {
			return err
		}
	}
	var changes, repairs []time.Duration
	for range rounds {
		holder, err := b.waitLeader(ctx, "")
		if err != nil {
			return err
		}
		start := b.clock.Now()
		if err := exit.stop(ctx, replicas[holder]); err != nil {
			return err
		}
		if _, err := b.waitLeader(ctx, holder); err != nil {
			return err
		}
		changes = append(changes, b.clock.Since(start))
		if err := b.waitRepair(ctx); err != nil {
			return err
		}
		repairs = append(repairs, b.clock.Since(start))
		if err := replicas[holder].Process.Wait(ctx, time.Minute); err != nil {
			return err
		}
		if err := replicas[holder].Restart(ctx); err != nil {
			return err
		}
	}
	b.addFigure(exit.name+": until another replica leads", fmt.Sprintf("%.2f s, longest %.2f s; until it has repaired a child %.2f s; medians of %d",
		median(changes).Seconds(), slices.Max(changes).Seconds(), median(repairs).Seconds(), rounds), fmt.Sprintf("<= %.0f s", exit.limit.Seconds()), exit.replaced)
	b.addRatio(exit.name, median(changes).Seconds()/exit.limit.Seconds())
	for _, replica := range replicas {
		if err := replica.Stop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitLeader waits until a holder other than the given one has the Lease, and returns it.
func (b *bench) waitLeader(ctx context.Context, previous string) (holder string, err error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-platform-operator"}}
	err = b.waitUntil(ctx, pollInterval, func() (bool, error) {
		if err := b.admin.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return holder != "" && holder != previous, nil
	})
	return holder, err
}

// waitRepair deletes a child of the MLflow and waits until it exists again.
func (b *bench) waitRepair(ctx context.Context) error {
	child := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
	if err := b.admin.Delete(ctx, child); err != nil {
		return fmt.Errorf("deleting a child: %w", err)
	}
	return b.waitUntil(ctx, pollInterval, func() (bool, error) {
		err := b.admin.Get(ctx, client.ObjectKeyFromObject(child), child)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
