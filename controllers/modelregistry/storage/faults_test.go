package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// faultSequence is a sequence of request errors; after its end all requests succeed.
type faultSequence struct {
	faults []error
	calls  int
}

func (s *faultSequence) next() error {
	s.calls++
	if s.calls > len(s.faults) {
		return nil
	}
	return s.faults[s.calls-1]
}

func anyFault() *rapid.Generator[error] {
	resource := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "modelregistries"}
	return rapid.SampledFrom([]error{
		nil, nil, nil, errors.New("connection refused"), apierrors.NewConflict(resource, "x", nil), apierrors.NewTooManyRequests("slow down", 1),
		apierrors.NewInternalError(errors.New("conversion webhook failed")), apierrors.NewForbidden(resource, "x", nil), rejection("x"),
		apierrors.NewResourceExpired("the list is too old"), apierrors.NewBadRequest("no"), apierrors.NewServiceUnavailable("later"),
	})
}

// Whichever requests fail, the source version is removed from storedVersions after every object was written, and not earlier.
func TestFaultsDoNotTrimTooEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(0, 4).Draw(rt, "registries")
		faults := rapid.SliceOfN(anyFault(), 0, 40).Draw(rt, "faults")
		synctest.Test(t, func(t *testing.T) {
			objects := []client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}
			for i := range count {
				objects = append(objects, registryOf(fmt.Sprintf("r%d", i)))
			}
			env := newTestEnv(t, objects...)
			sequence := &faultSequence{faults: faults}
			written := map[string]bool{}
			env.fails = func(request string) error {
				err := sequence.next()
				if name, ok := strings.CutPrefix(request, "patch "); ok && err == nil {
					name = strings.TrimPrefix(name, "status of ")
					if name == crdName && len(written) < count {
						t.Errorf("storedVersions was changed when only %v of %d objects were written", written, count)
					}
					written[name] = true
				}
				return err
			}
			env.run(env.migration(), 24*time.Hour)
			requests := 0
			env.fails = func(string) error { requests++; return nil }
			env.expectStoredVersions("v1beta1")
			requests = 0
			env.run(env.migration(), 24*time.Hour)
			if requests != 1 {
				t.Errorf("the finished migration sent %d requests, want only one for the CRD", requests)
			}
		})
	})
}

// A new replica continues the migration of a stopped one.
func TestNewReplicaContinuesMigration(t *testing.T) {
	for stop := 1; stop <= 4; stop++ {
		synctest.Test(t, func(t *testing.T) {
			env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"), registryOf("c"))
			env.fails = func(request string) error {
				if strings.HasPrefix(request, "patch") && len(env.writes) >= stop {
					return errors.New("killed")
				}
				return nil
			}
			if env.migration().run(t.Context()) == nil {
				t.Fatalf("stopped at write %d: got no error", stop)
			}
			if !slices.Contains(env.storedVersions(), "v1alpha1") {
				t.Errorf("stopped at write %d: the source version was removed from storedVersions", stop)
			}
			env.fails = func(string) error { return nil }
			if err := env.migration().run(t.Context()); err != nil {
				t.Errorf("new replica after write %d: unexpected error: %v", stop, err)
			}
			env.expectStoredVersions("v1beta1")
		})
	}
}

// The migration runs on the leader.
func TestMigrationRunsOnTheLeader(t *testing.T) {
	if r, ok := any(&Migration{}).(manager.LeaderElectionRunnable); ok && !r.NeedLeaderElection() { // other Runnables need it by default
		t.Error("the migration does not need leader election, so every replica would run it")
	}
}

// Objects rejected by admission are migrated through their status, and deleted ones are skipped. After other errors, the source version
// remains in storedVersions until a retry succeeds.
func TestRejectedPatches(t *testing.T) {
	resource := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "modelregistries"}
	for name, test := range map[string]struct {
		err      error
		migrated bool
	}{
		"invalid":                   {rejection("a"), true},
		"denied by a webhook":       {apierrors.NewForbidden(resource, "a", errors.New("admission webhook denied the request")), true},
		"bad request":               {apierrors.NewBadRequest("no ModelRegistry"), true},
		"deleted by another client": {apierrors.NewNotFound(resource, "a"), true},
		"conflict":                  {apierrors.NewConflict(resource, "a", errors.New("modified")), false},
		"too many":                  {apierrors.NewTooManyRequests("later", 1), false},
		"no answer of a webhook":    {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
				env.fails = func(request string) error {
					if request == "patch a" {
						return test.err
					}
					return nil
				}
				m := env.migration()
				env.run(m, time.Minute)
				if got := slices.Contains(env.storedVersions(), "v1alpha1"); got == test.migrated {
					t.Errorf("the source version is in storedVersions: %t, wrote %q", got, env.writes)
				}
				if !slices.Contains(env.writes, "patch b") {
					t.Errorf("the other object was not written: %q", env.writes)
				}
				got := slices.Contains(env.writes, "patch status of a")
				if want := test.migrated && !apierrors.IsNotFound(test.err); got != want {
					t.Errorf("the object was written through its status: %t, want %t", got, want)
				}
				env.fails = func(string) error { return nil }
				env.run(m, time.Hour)
				env.expectStoredVersions("v1beta1")
			})
		})
	}
}
