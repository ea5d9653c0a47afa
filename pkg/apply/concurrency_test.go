package apply

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Many owners apply concurrently. Run with -race.
func TestApplyIsSafeForConcurrentUse(t *testing.T) {
	a := newTestApplier(t)
	const owners, passes = 8, 5
	var group sync.WaitGroup
	for i := range owners {
		owner := a.createOwner(fmt.Sprint("owner-", i), fmt.Sprint("uid-", i))
		group.Go(func() {
			for pass := range passes {
				desired := Desired{newConfigMap(fmt.Sprint("own-", i), fmt.Sprint(pass))}
				if err := a.Apply(t.Context(), owner, desired); err != nil {
					t.Error(err)
				}
				if err := a.Prune(t.Context(), owner, desired, nil, nil); err != nil {
					t.Error(err)
				}
				if pass == passes/2 {
					a.Forget(owner.UID)
				}
			}
		})
	}
	group.Wait()
	for i := range owners {
		if got := a.get(fmt.Sprint("own-", i)).Data["key"]; got != fmt.Sprint(passes-1) {
			t.Errorf("the object of owner %d has value %q, want %d", i, got, passes-1)
		}
	}
}

func TestMetricsCountWritesAndSkips(t *testing.T) {
	a := newTestApplier(t)
	a.Component = t.Name()
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.expectApply(noRequests, newConfigMap("a", "1"))
	a.expectApply(noRequests, newConfigMap("a", "1"))
	a.expectPrune("live=0 list=0 patch=0 delete=1", nil)
	want := map[string]float64{"apply": 1, "delete": 1, "skipped": 2}
	if diff := cmp.Diff(want, requestCounts(t)); diff != "" {
		t.Errorf("metrics of the component (-want +got):\n%s", diff)
	}
}

// requestCounts returns the counters of the component with the name of the test: write requests by verb, and "skipped".
func requestCounts(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			switch {
			case labels["component"] != t.Name() || labels["kind"] != "ConfigMap":
			case family.GetName() == "odh_platform_apply_writes_total":
				found[labels["verb"]] = metric.GetCounter().GetValue()
			case family.GetName() == "odh_platform_apply_skipped_total":
				found["skipped"] = metric.GetCounter().GetValue()
			}
		}
	}
	return found
}

// singleObjectCache is a cache of one object.
type singleObjectCache struct {
	client.Client
	object metav1.PartialObjectMetadata
}

func (s *singleObjectCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if metadata, ok := into.(*metav1.PartialObjectMetadata); ok {
		*metadata = s.object
	}
	return nil
}

// BenchmarkUnchanged measures Apply of an unchanged Deployment, with its read from the cache: the cost of each child object in a reconcile.
func BenchmarkUnchanged(b *testing.B) {
	applier := newTestApplier(&testing.T{})
	object := newDeployment("one")
	if err := applier.Apply(b.Context(), applier.owner, Desired{object}); err != nil {
		b.Fatal(err)
	}
	cache := &singleObjectCache{Client: applier.Client}
	cache.object.SetGroupVersionKind(deploymentKind)
	if err := applier.server.Get(b.Context(), client.ObjectKey{Namespace: "ns", Name: "server"}, &cache.object); err != nil {
		b.Fatal(err)
	}
	if _, err := Transform(us)(&cache.object); err != nil {
		b.Fatal(err)
	}
	applier.Client, applier.FullObjectKinds = cache, nil
	b.ReportAllocs()
	for b.Loop() {
		if err := applier.Apply(b.Context(), applier.owner, Desired{object}); err != nil {
			b.Fatal(err)
		}
	}
	if applier.seen["apply"] != 1 || applier.seen["live"] != 0 {
		b.Fatalf("requests in the steady state: %v", applier.seen)
	}
}
