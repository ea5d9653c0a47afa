package fakeapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scenario is a course of events that must end in the same way whatever goes wrong on the way.
type Scenario struct {
	// Server holds what there is at the beginning.
	Server func(testing.TB) *Server
	// Start starts a reconciler that remembers nothing, and returns one reconciliation of it.
	Start func(*Server) func() error
	// Kubernetes does between reconciliations what other controllers do.
	Kubernetes func(*Server)
	// Done reports that nothing is left to be done.
	Done func(*Server) bool
}

// maxReconciliations is after how many reconciliations a scenario must have ended.
const maxReconciliations = 40

// fault is what happens at one write: the reconciler is cut off after it, or it is refused once.
type fault struct {
	write   int
	refusal bool
	came    *bool
}

func (f fault) refuses(write int) error {
	if !f.refusal || write != f.write || *f.came {
		return nil
	}
	*f.came = true
	return apierrors.NewInternalError(errors.New("refused by the test"))
}

func (f fault) cutsOff(write int) bool {
	if f.refusal || write != f.write {
		return false
	}
	*f.came = true
	return true
}

// SurvivesFaults runs a scenario once without a fault. Then it runs it again with the reconciler cut off after the first write
// and started again, after the second, and so on, and again with each write refused once. All must end with the same objects.
func (sc Scenario) SurvivesFaults(t *testing.T) {
	t.Helper()
	undisturbed := sc.run(t, fault{})
	want := undisturbed.Picture()
	for i, write := range undisturbed.Writes {
		for how, refusal := range map[string]bool{"cut off after": false, "refused": true} {
			t.Run(fmt.Sprintf("%s write %d: %s", how, i+1, write), func(t *testing.T) {
				came := false
				s := sc.run(t, fault{i + 1, refusal, &came})
				if !came {
					t.Fatal("the fault did not come")
				}
				if diff := gocmp.Diff(want, s.Picture()); diff != "" {
					t.Errorf("it ends differently (-without +with the fault):\n%s\nwrites: %v", diff, s.Writes)
				}
			})
		}
	}
}

func (sc Scenario) run(t *testing.T, f fault) *Server {
	t.Helper()
	s := sc.Server(t)
	s.fault, s.Writes = f, nil
	reconcile := sc.Start(s)
	var last error
	for range maxReconciliations {
		before := len(s.Writes)
		last = reconcile()
		if s.cutOff {
			s.cutOff = false
			reconcile = sc.Start(s)
			continue
		}
		if last == nil && len(s.Writes) == before && sc.Done(s) {
			return s
		}
		sc.Kubernetes(s)
	}
	t.Fatalf("it does not end: %v\nwrites: %v", last, s.Writes)
	return nil
}

// Picture is all objects without what differs from run to run.
func (s *Server) Picture() map[string]any {
	s.t.Helper()
	picture := map[string]any{}
	for o, created := range s.objects {
		found := s.find(s.t.Context(), o)
		if found == nil {
			continue
		}
		found.SetManagedFields(nil)
		found.SetResourceVersion("")
		found.SetGeneration(0)
		unstructured.RemoveNestedField(found.Object, "metadata", "creationTimestamp")
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, c := range conditions {
			delete(c.(map[string]any), "lastTransitionTime")
		}
		slices.SortFunc(conditions, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		if len(conditions) > 0 {
			found.Object["status"].(map[string]any)["conditions"] = conditions
		}
		picture[fmt.Sprintf("%s %s, creation %d", o.Kind, o.ObjectKey, created)] = found.Object
	}
	return picture
}
