package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// lockRetryPeriod is the pause after a failed request or the end of a watch, while the Lease is not acquired.
const lockRetryPeriod = 2 * time.Second

// watchedLock is a Lease lock that watches the Lease until it can be acquired. The elector of client-go would read the Lease once in each
// retry period, and notice its release with that delay.
type watchedLock struct {
	resourcelock.Interface

	leases   coordinationclient.LeaseInterface
	clock    clock.Clock
	duration time.Duration
	// acquired stays set, because the process exits when it loses the Lease.
	acquired bool
	// observed is the last record that isHeld received, and observedTime is when it received that record first.
	observed     resourcelock.LeaderElectionRecord
	observedTime time.Time
}

// leaderLock returns a Lease lock with the pod name as identity, or nil without leader election. A restarted container of the same pod still
// holds the Lease and need not wait. Without a pod name, the identity is the hostname and a random UID.
func leaderLock(le config.LeaderElection, restConfig *rest.Config, clk clock.Clock) (resourcelock.Interface, error) {
	if !le.Enabled {
		return nil, nil //nolint:nilnil // the manager needs no lock
	}
	hostname, _ := os.Hostname()
	identity := cmp.Or(le.Identity, hostname+"_"+string(uuid.NewUUID()))
	restConfig = rest.AddUserAgent(restConfig, "leader-election")
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, le.Namespace, names.OperatorName,
		resourcelock.ResourceLockConfig{Identity: identity}, restConfig, le.RenewDeadline)
	// The timeout of the client of the lock would end watches.
	client, clientErr := coordinationclient.NewForConfig(restConfig)
	if err := errors.Join(err, clientErr); err != nil {
		return nil, fmt.Errorf("building the leader election lock: %w", err)
	}
	return &watchedLock{Interface: lock, leases: client.Leases(le.Namespace), clock: clk, duration: le.LeaseDuration}, nil
}

// Get implements resourcelock.Interface. It first waits until this process has acquired the Lease, or ctx ends.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for !l.acquired && ctx.Err() == nil {
		record, _, err := l.Interface.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			err = l.Create(ctx, l.newRecord(0))
		case err != nil:
		case record.HolderIdentity == l.Identity():
			l.acquired = true
		case l.isHeld(record):
			l.wait(ctx)
		default:
			err = l.Update(ctx, l.newRecord(record.LeaderTransitions+1))
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			logr.FromContextOrDiscard(ctx).Info("The Lease cannot be acquired yet", "lock", l.Describe(), "reason", err.Error())
			l.clock.Sleep(lockRetryPeriod)
		}
	}
	return l.Interface.Get(ctx)
}

// Update implements resourcelock.Interface. It sets the renew time again, because the elector read the clock before Get waited.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	record.RenewTime = metav1.NewTime(l.clock.Now())
	return l.Interface.Update(ctx, record)
}

// newRecord returns the record with which this process acquires the Lease.
func (l *watchedLock) newRecord(transitions int) resourcelock.LeaderElectionRecord {
	now := metav1.NewTime(l.clock.Now())
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: l.Identity(), LeaseDurationSeconds: int(l.duration / time.Second), AcquireTime: now, RenewTime: now, LeaderTransitions: transitions,
	}
}

// isHeld reports whether another process holds the Lease. A Lease expires if its record has not changed for the lease duration. Like
// client-go, isHeld does not compare clocks of different nodes.
func (l *watchedLock) isHeld(record *resourcelock.LeaderElectionRecord) bool {
	if *record != l.observed {
		l.observed, l.observedTime = *record, l.clock.Now()
	}
	return record.HolderIdentity != "" && l.remaining() > 0
}

// remaining returns the time until the observed Lease expires.
func (l *watchedLock) remaining() time.Duration {
	return time.Duration(l.observed.LeaseDurationSeconds)*time.Second - l.clock.Since(l.observedTime)
}

// wait returns when the Lease is released, deleted or expired, when ctx ends, or lockRetryPeriod after the watch failed or ended.
func (l *watchedLock) wait(ctx context.Context) {
	watcher, err := l.leases.Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: names.OperatorName}))
	if err != nil {
		l.clock.Sleep(lockRetryPeriod)
		return
	}
	defer watcher.Stop()
	for held := true; held; {
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(l.remaining()):
			return
		case event := <-watcher.ResultChan():
			lease, isLease := event.Object.(*coordinationv1.Lease)
			if !isLease { // an error, or the end of the watch
				l.clock.Sleep(lockRetryPeriod)
				return
			}
			held = event.Type != watch.Deleted && l.isHeld(resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec))
		}
	}
}
