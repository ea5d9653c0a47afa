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
			t.Errorf("%s: lock %s of %s", name, lock.Describe(), lock.Identity())
		}
	}
	if lock, err := leaderLock(config.LeaderElection{Namespace: "ns"}, &rest.Config{}, clock.RealClock{}); lock != nil || err != nil {
		t.Errorf("leaderLock without leader election returned %v, error %v, want neither", lock, err)
	}
}

// The durations of OpenShift's convention.
var convention = config.LeaderElection{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}

// candidate is a replica in an election. It runs in a bubble of synctest, where the time advances when all replicas wait.
type candidate struct {
	leads   chan struct{}
	release context.CancelFunc
	lost    chan struct{}
}

// newLeaseAPI returns an API that, unlike the plain fake, refuses an update of an outdated Lease.
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

// waits fails the test unless the candidate starts to lead within the bounds.
func (c *candidate) waits(t *testing.T, atLeast, atMost time.Duration) {
	t.Helper()
	started := time.Now()
	<-c.leads
	if took := time.Since(started); took < atLeast || took > atMost {
		t.Errorf("leads after %s, want %s to %s", took, atLeast, atMost)
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

// A release is noticed immediately, however long the retry period is, and by each of several replicas in turn.
func TestReleasedLeaseIsAcquiredImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		first := elect(t, api, "first", convention)
		first.waits(t, 0, 0)
		second, third := elect(t, api, "second", convention), elect(t, api, "third", convention)
		time.Sleep(time.Hour)
		if got := *getLease(t, api).Spec.HolderIdentity; got != "first" {
			t.Fatalf("%s holds the Lease, want first", got)
		}
		first.release()
		started := time.Now()
		select {
		case <-second.leads:
		case <-third.leads:
			second, third = third, second
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("the next one leads after %s", took)
		}
		synctest.Wait()
		lease := getLease(t, api)
		if !lease.Spec.AcquireTime.Time.Equal(started) || !lease.Spec.RenewTime.Time.Equal(started) || *lease.Spec.LeaseTransitions != 1 || *lease.Spec.LeaseDurationSeconds != 137 {
			t.Errorf("acquired %v at %s", lease.Spec, started)
		}
		second.release() // before the retry period of the third ended
		third.waits(t, 0, 0)
		third.release()
		<-third.lost
		if got := *getLease(t, api).Spec.HolderIdentity; got != "" {
			t.Errorf("%q holds the Lease that was released", got)
		}
	})
}

// A Lease that is not released expires after its duration: not earlier, since the leader may only be slow, and not an attempt later.
func TestLostLeaseIsAcquiredWhenItExpires(t *testing.T) {
	for name, le := range map[string]config.LeaderElection{
		"on OpenShift":     convention,
		"outside of a pod": {LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
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
				lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()} // its last sign of life
				if _, err := api.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				next.waits(t, le.LeaseDuration, le.LeaseDuration)
				if got := *getLease(t, api).Spec.LeaseTransitions; got != 5 {
					t.Errorf("%d transitions", got)
				}
				next.release()
				<-next.lost
			})
		})
	}
}

// A deleted Lease is created again, and one whose holder is this process is renewed.
func TestLeaseThatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		first := elect(t, api, "first", convention)
		first.waits(t, 0, 0)
		restarted, other := elect(t, api, "first", convention), elect(t, api, "other", convention)
		restarted.waits(t, 0, 0)
		synctest.Wait()
		if err := api.CoordinationV1().Leases("ns").Delete(t.Context(), names.OperatorName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		other.waits(t, 0, 0)
		other.release()
		for _, c := range []*candidate{first, restarted, other} {
			c.release()
			<-c.lost
		}
	})
}

// Without the permission to watch, as with a Role of an earlier version, the Lease is read again and again.
func TestLeaseThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		var reads atomic.Int32
		var responding atomic.Bool
		api.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, errors.New("forbidden") })
		api.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads.Add(1)
			return !responding.Load(), nil, errors.New("unreachable")
		})
		first := elect(t, api, "first", convention)
		time.Sleep(time.Minute)
		if got := reads.Load(); got < 25 || got > 35 {
			t.Errorf("%d reads in a minute", got)
		}
		responding.Store(true)
		first.waits(t, 0, lockRetryPeriod)
		second := elect(t, api, "second", convention)
		time.Sleep(time.Minute)
		first.release()
		second.waits(t, 0, lockRetryPeriod)
		second.release()
		<-second.lost
	})
}

// A leader whose Lease was taken gives up, instead of waiting for its release.
func TestLeaseTakenByAnotherIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newLeaseAPI()
		var acquired atomic.Bool
		api.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return acquired.Load(), nil, errors.New("conflict")
		})
		first := elect(t, api, "first", convention)
		first.waits(t, 0, 0)
		lease := getLease(t, api)
		lease.Spec.HolderIdentity = new("stranger")
		if _, err := api.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		acquired.Store(true)
		started := time.Now()
		<-first.lost
		if took := time.Since(started); took > convention.RenewDeadline+2*convention.RetryPeriod {
			t.Errorf("gave up after %s", took)
		}
	})
}
