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
	b := newTestApplier(t)
	const owners, passes = 8, 5
	var group sync.WaitGroup
	for i := range owners {
		owner := b.createOwner(fmt.Sprint("owner-", i), fmt.Sprint("uid-", i))
		group.Go(func() {
			for pass := range passes {
				desired := Desired{settings(fmt.Sprint("own-", i), fmt.Sprint(pass))}
				if err := b.Apply(t.Context(), owner, desired); err != nil {
					t.Error(err)
				}
				if err := b.Prune(t.Context(), owner, desired, nil, nil); err != nil {
					t.Error(err)
				}
				if pass == passes/2 {
					b.Forget(owner.UID)
				}
			}
		})
	}
	group.Wait()
	for i := range owners {
		if got := b.get(fmt.Sprint("own-", i)).Data["key"]; got != fmt.Sprint(passes-1) {
			t.Errorf("the object of owner %d has %q", i, got)
		}
	}
}

func TestMetricsCountWritesAndSkips(t *testing.T) {
	b := newTestApplier(t)
	b.Component = t.Name()
	b.applies(blind, settings("a", "1"))
	b.applies(quiet, settings("a", "1"))
	b.applies(quiet, settings("a", "1"))
	b.prunes("live=0 list=0 patch=0 delete=1", nil)
	want := map[string]float64{"apply": 1, "delete": 1, "skipped": 2}
	if diff := cmp.Diff(want, writeCounts(t)); diff != "" {
		t.Errorf("metrics of the component (-want +got):\n%s", diff)
	}
}

// writeCounts returns the write counters of the component with the name of the test, by verb.
func writeCounts(t *testing.T) map[string]float64 {
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

// BenchmarkUnchanged measures an unchanged Deployment with its cache read: the cost of a child per reconcile.
func BenchmarkUnchanged(b *testing.B) {
	stand := newTestApplier(&testing.T{})
	object := server("one")
	if err := stand.Apply(b.Context(), stand.owner, Desired{object}); err != nil {
		b.Fatal(err)
	}
	cache := &singleObjectCache{Client: stand.Client}
	cache.object.SetGroupVersionKind(deploymentKind)
	if err := stand.server.Get(b.Context(), client.ObjectKey{Namespace: "ns", Name: "server"}, &cache.object); err != nil {
		b.Fatal(err)
	}
	if _, err := Transform(us)(&cache.object); err != nil {
		b.Fatal(err)
	}
	stand.Client, stand.FullObjectKinds = cache, nil
	b.ReportAllocs()
	for b.Loop() {
		if err := stand.Apply(b.Context(), stand.owner, Desired{object}); err != nil {
			b.Fatal(err)
		}
	}
	if stand.seen["apply"] != 1 || stand.seen["live"] != 0 {
		b.Fatalf("requests at rest: %v", stand.seen)
	}
}
