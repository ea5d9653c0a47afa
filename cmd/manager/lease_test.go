package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// The holder of the Lease is the pod name, so that a restarted container leads again immediately.
func TestLeaseIsHeldByPod(t *testing.T) {
	for name, tc := range map[string]struct {
		le   config.LeaderElection
		want string
	}{
		"in a pod":         {config.LeaderElection{Enabled: true, Namespace: "ns", Identity: "manager-1", RenewDeadline: time.Minute}, "manager-1"},
		"outside of a pod": {config.LeaderElection{Enabled: true, Namespace: "ns", RenewDeadline: time.Minute}, "_"},
	} {
		lock, err := leaderLock(tc.le, &rest.Config{Host: "http://127.0.0.1:1"}, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(lock.Identity(), tc.want) || lock.Describe() != "ns/odh-platform-operator" {
			t.Errorf("%s: got lock %s and identity %s, want identity %s", name, lock.Describe(), lock.Identity(), tc.want)
		}
	}
	if lock, err := leaderLock(config.LeaderElection{Namespace: "ns"}, &rest.Config{}, clock.RealClock{}); lock != nil || err != nil {
		t.Errorf("leaderLock without leader election returned %v, error %v, want neither", lock, err)
	}
}

// openShiftElection has the durations that OpenShift recommends.
var openShiftElection = config.LeaderElection{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}

// candidate is a replica in an election. It runs in a synctest bubble, where time advances when all goroutines wait.
type candidate struct {
	leads   chan struct{}
	release context.CancelFunc
	lost    chan struct{}
}

// newLeaseAPI returns a fake clientset that, unlike the default, rejects an update with an outdated resourceVersion.
func newLeaseAPI() *fake.Clientset {
	api := fake.NewClientset()
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	api.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		stored, err := api.Tracker().Get(leases, lease.Namespace, lease.Name)
		if err != nil {
			return true, nil, err
		}
		version := stored.(*coordinationv1.Lease).ResourceVersion
		if version != lease.ResourceVersion {
			return true, nil, apierrors.NewConflict(leases.GroupResource(), lease.Name, errors.New("the Lease has changed"))
		}
		lease.ResourceVersion = version + "1"
		return true, lease, api.Tracker().Update(leases, lease, lease.Namespace)
	})
	return api
}

// elect runs the elector of client-go with a watchedLock, as the manager does.
func elect(t *testing.T, api *fake.Clientset, identity string, le config.LeaderElection) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{leads: make(chan struct{}), release: cancel, lost: make(chan struct{})}
	lock := &watchedLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "ns", Name: names.OperatorName}, Client: api.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		leases: api.CoordinationV1().Leases("ns"), clock: clock.RealClock{}, duration: le.LeaseDuration,
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: le.LeaseDuration, RenewDeadline: le.RenewDeadline, RetryPeriod: le.RetryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(c.leads) }, OnStoppedLeading: func() { close(c.lost) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	return c
}

// expectLeading fails the test unless the candidate becomes leader within the bounds.
func (c *candidate) expectLeading(t *testing.T, atLeast, atMost time.Duration) {
	t.Helper()
	start := time.Now()
	<-c.leads
	if took := time.Since(start); took < atLeast || took > atMost {
		t.Errorf("became leader after %s, want %s to %s", took, atLeast, atMost)
	}
}

func getLease(t *testing.T, api *fake.Clientset) *coordinationv1.Lease {
	t.Helper()
	lease, err := api.CoordinationV1().Leases("ns").Get(t.Context(), names.OperatorName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// A released Lease is acquired immediately, however long the retry period is, and by one replica at a time.
func TestReleasedLeaseIsAcquiredImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		first := elect(t, api, "first", openShiftElection)
		first.expectLeading(t, 0, 0)
		second, third := elect(t, api, "second", openShiftElection), elect(t, api, "third", openShiftElection)
		time.Sleep(time.Hour)
		if got := *getLease(t, api).Spec.HolderIdentity; got != "first" {
			t.Fatalf("%s holds the Lease, want first", got)
		}
		first.release()
		start := time.Now()
		select {
		case <-second.leads:
		case <-third.leads:
			second, third = third, second
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the next replica became leader after %s, want immediately", took)
		}
		synctest.Wait()
		lease := getLease(t, api)
		if !lease.Spec.AcquireTime.Time.Equal(start) || !lease.Spec.RenewTime.Time.Equal(start) || *lease.Spec.LeaseTransitions != 1 || *lease.Spec.LeaseDurationSeconds != 137 {
			t.Errorf("got Lease %v, want it acquired at %s", lease.Spec, start)
		}
		second.release() // before the retry period of the third ended
		third.expectLeading(t, 0, 0)
		third.release()
		<-third.lost
		if got := *getLease(t, api).Spec.HolderIdentity; got != "" {
			t.Errorf("%q holds the released Lease, want no holder", got)
		}
	})
}

// A Lease that is not released is acquired exactly when it expires. An earlier acquisition could interrupt a slow leader.
func TestLeaseIsAcquiredWhenItExpires(t *testing.T) {
	for name, le := range map[string]config.LeaderElection{
		"on OpenShift": openShiftElection,
		"by default":   {LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newLeaseAPI()
				if _, err := api.CoordinationV1().Leases("ns").Create(t.Context(), &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Name: names.OperatorName},
					Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&resourcelock.LeaderElectionRecord{
						HolderIdentity: "lost", LeaseDurationSeconds: int(le.LeaseDuration / time.Second), RenewTime: metav1.Now(), AcquireTime: metav1.Now(), LeaderTransitions: 4}),
				}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				next := elect(t, api, "next", le)
				time.Sleep(le.LeaseDuration / 2)
				lease := getLease(t, api)
				lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()} // the last renewal
				if _, err := api.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				next.expectLeading(t, le.LeaseDuration, le.LeaseDuration)
				if got := *getLease(t, api).Spec.LeaseTransitions; got != 5 {
					t.Errorf("got %d transitions, want 5", got)
				}
				next.release()
				<-next.lost
			})
		})
	}
}

// A deleted Lease is created again, and a Lease with the identity of this process is renewed.
func TestDeletedOrOwnLeaseIsAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		first := elect(t, api, "first", openShiftElection)
		first.expectLeading(t, 0, 0)
		restarted, other := elect(t, api, "first", openShiftElection), elect(t, api, "other", openShiftElection)
		restarted.expectLeading(t, 0, 0)
		synctest.Wait()
		if err := api.CoordinationV1().Leases("ns").Delete(t.Context(), names.OperatorName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		other.expectLeading(t, 0, 0)
		other.release()
		for _, c := range []*candidate{first, restarted, other} {
			c.release()
			<-c.lost
		}
	})
}

// The Lease is polled while the API server is unreachable, and without the permission to watch, as with a Role of an earlier version.
func TestUnwatchableLeaseIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		var reads atomic.Int32
		var responding atomic.Bool
		api.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, errors.New("forbidden") })
		api.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads.Add(1)
			return !responding.Load(), nil, errors.New("unreachable")
		})
		first := elect(t, api, "first", openShiftElection)
		time.Sleep(time.Minute)
		if got := reads.Load(); got < 25 || got > 35 {
			t.Errorf("got %d reads in a minute, want 25 to 35", got)
		}
		responding.Store(true)
		first.expectLeading(t, 0, lockRetryPeriod)
		second := elect(t, api, "second", openShiftElection)
		time.Sleep(time.Minute)
		first.release()
		second.expectLeading(t, 0, lockRetryPeriod)
		second.release()
		<-second.lost
	})
}

// A leader stops leading when another process has acquired its Lease. It does not wait until that process releases the Lease.
func TestLeaderStopsWhenLeaseIsAcquiredByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		var acquired atomic.Bool
		api.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return acquired.Load(), nil, errors.New("conflict")
		})
		first := elect(t, api, "first", openShiftElection)
		first.expectLeading(t, 0, 0)
		lease := getLease(t, api)
		lease.Spec.HolderIdentity = new("other")
		if _, err := api.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		acquired.Store(true)
		start := time.Now()
		<-first.lost
		if took, atMost := time.Since(start), openShiftElection.RenewDeadline+2*openShiftElection.RetryPeriod; took > atMost {
			t.Errorf("stopped leading after %s, want at most %s", took, atMost)
		}
	})
}
