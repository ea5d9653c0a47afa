package fakeapi

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scenario is a sequence of reconciles that must result in the same state with every fault.
type Scenario struct {
	// Server returns the server with its initial objects.
	Server func(testing.TB) *Server
	// Start starts a reconciler without state, and returns a function that reconciles once.
	Start func(*Server) func() error
	// Kubernetes simulates the controllers of Kubernetes between reconciles.
	Kubernetes func(*Server)
	// Done reports whether the scenario is complete.
	Done func(*Server) bool
}

// Exhaustive skips a test of all faults under the race detector, because the detector makes it five times slower. `make test-unit` runs the
// packages of these tests without the detector.
func Exhaustive(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("runs without the race detector")
	}
}

// maxReconciles bounds the reconciles of a scenario.
const maxReconciles = 40

// SurvivesFaults runs a scenario without a fault, with a restart of the reconciler after each write, and with each write refused once. All
// runs must result in the same objects.
func (sc Scenario) SurvivesFaults(t *testing.T) {
	t.Helper()
	Exhaustive(t)
	start := sc.Server(t)
	start.Writes = nil
	var snapshots []*Server // after each write
	faultless := start.clone(t)
	faultless.afterWrite = func() { snapshots = append(snapshots, faultless.clone(t)) }
	sc.run(t, faultless)
	want := faultless.Objects()
	for i, write := range faultless.Writes {
		refused := start.clone(t)
		refused.refusedWrite = i + 1
		for fault, server := range map[string]*Server{"restart after": snapshots[i], "refused": refused} {
			t.Run(fmt.Sprintf("%s write %d: %s", fault, i+1, write), func(t *testing.T) {
				sc.run(t, server)
				if server.refusedWrite > 0 {
					t.Fatal("no write was refused")
				}
				if diff := gocmp.Diff(want, server.Objects()); diff != "" {
					t.Errorf("the final objects differ (-without +with the fault):\n%s\nwrites: %v", diff, server.Writes)
				}
			})
		}
	}
}

func (sc Scenario) run(t *testing.T, s *Server) {
	t.Helper()
	s.t = t
	reconcile := sc.Start(s)
	var last error
	for range maxReconciles {
		writeCount := len(s.Writes)
		last = reconcile()
		if last == nil && len(s.Writes) == writeCount && sc.Done(s) {
			return
		}
		sc.Kubernetes(s)
	}
	t.Fatalf("the scenario does not complete: %v\nwrites: %v", last, s.Writes)
}

// Objects returns all objects by kind and name, without the fields that differ between runs.
func (s *Server) Objects() map[string]any {
	s.t.Helper()
	byName := map[string]any{}
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
		byName[fmt.Sprintf("%s %s, creation %d", o.Kind, o.ObjectKey, created)] = found.Object
	}
	return byName
}
