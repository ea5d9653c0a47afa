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

// history is a sequence of request errors; after its end all requests succeed.
type history struct {
	faults []error
	calls  int
}

func (h *history) next() error {
	h.calls++
	if h.calls > len(h.faults) {
		return nil
	}
	return h.faults[h.calls-1]
}

func anyFault() *rapid.Generator[error] {
	resource := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "modelregistries"}
	return rapid.SampledFrom([]error{
		nil, nil, nil, errors.New("connection refused"), apierrors.NewConflict(resource, "x", nil), apierrors.NewTooManyRequests("slow down", 1),
		apierrors.NewInternalError(errors.New("conversion webhook failed")), apierrors.NewForbidden(resource, "x", nil), rejection("x"),
		apierrors.NewResourceExpired("the list is too old"), apierrors.NewBadRequest("no"), apierrors.NewServiceUnavailable("later"),
	})
}

// With any failures, the older version is removed from the list only after every object was written, and is removed in the end.
func TestFaultsDoNotTrimTooEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(0, 4).Draw(rt, "registries")
		faults := rapid.SliceOfN(anyFault(), 0, 40).Draw(rt, "faults")
		synctest.Test(t, func(t *testing.T) {
			objects := []client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}
			for i := range count {
				objects = append(objects, registryOf(fmt.Sprintf("r%d", i)))
			}
			w := newTestEnv(t, objects...)
			h := &history{faults: faults}
			written := map[string]bool{}
			w.fails = func(request string) error {
				err := h.next()
				if name, ok := strings.CutPrefix(request, "patch "); ok && err == nil {
					name = strings.TrimPrefix(name, "status of ")
					if name == crdName && len(written) < count {
						t.Errorf("trimmed after %v of %d were written", written, count)
					}
					written[name] = true
				}
				return err
			}
			w.run(w.migration(), 24*time.Hour)
			w.fails = func(string) error { return nil }
			w.mustHave("v1beta1")
			if h.calls < len(faults) {
				return // it was done before the last fault
			}
			before := h.calls
			w.run(w.migration(), 24*time.Hour)
			if h.calls != before {
				t.Error("the migration sent requests after it had finished")
			}
		})
	})
}

// A new replica continues the migration of a stopped one.
func TestNewReplicaContinuesMigration(t *testing.T) {
	for stop := 1; stop <= 4; stop++ {
		synctest.Test(t, func(t *testing.T) {
			w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"), registryOf("c"))
			w.fails = func(request string) error {
				if strings.HasPrefix(request, "patch") && len(w.writes) >= stop {
					return errors.New("killed")
				}
				return nil
			}
			if w.migration().run(t.Context()) == nil {
				t.Fatalf("stopped at write %d: no error", stop)
			}
			if !slices.Contains(w.storedObjects(), "v1alpha1") {
				t.Errorf("stopped at write %d: trimmed", stop)
			}
			w.fails = func(string) error { return nil }
			if err := w.migration().run(t.Context()); err != nil {
				t.Errorf("the next one after write %d: %v", stop, err)
			}
			w.mustHave("v1beta1")
		})
	}
}

// The migration runs on the leader.
func TestMigrationRunsOnTheLeader(t *testing.T) {
	if r, says := any(&Migration{}).(manager.LeaderElectionRunnable); says && !r.NeedLeaderElection() { // others are taken to need it
		t.Error("the migration does not need leader election, so every replica would run it")
	}
}

// Objects rejected by admission with any message are migrated through their status; other rejections keep the older version in the list
// until they end.
func TestRejectionsOfEveryKind(t *testing.T) {
	resource := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "modelregistries"}
	for name, c := range map[string]struct {
		refusal error
		moved   bool // past the refusal
	}{
		"invalid":                   {rejection("a"), true},
		"denied by a webhook":       {apierrors.NewForbidden(resource, "a", errors.New("admission webhook denied the request")), true},
		"bad request":               {apierrors.NewBadRequest("no ModelRegistry"), true},
		"deleted by another client": {apierrors.NewNotFound(resource, "a"), true},
		"conflict":                  {apierrors.NewConflict(resource, "a", errors.New("modified")), false},
		"too many":                  {apierrors.NewTooManyRequests("later", 1), false},
		"no answer":                 {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
				w.fails = func(request string) error {
					if request == "patch a" {
						return c.refusal
					}
					return nil
				}
				m := w.migration()
				w.run(m, time.Minute)
				if got := slices.Contains(w.storedObjects(), "v1alpha1"); got == c.moved {
					t.Errorf("the old version is still listed: %t, wrote %q", got, w.writes)
				}
				if !slices.Contains(w.writes, "patch b") {
					t.Errorf("one object keeps the others: %q", w.writes)
				}
				through := slices.Contains(w.writes, "patch status of a")
				if want := c.moved && !apierrors.IsNotFound(c.refusal); through != want {
					t.Errorf("written through its status: %t", through)
				}
				w.fails = func(string) error { return nil }
				w.run(m, time.Hour)
				w.mustHave("v1beta1")
			})
		})
	}
}
