package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// repetitions is the number of counted rounds of creation and deletion. The first round is not counted: it starts informers that
// keep running.
const repetitions = 5

// holdings are the resources that an idle process holds. Each informer has several goroutines.
type holdings struct{ heap, goroutines, series float64 }

// leaks creates and deletes a burst of each population repeatedly, and notes the growth of the resources of the process since the
// first round.
func (b *bench) leaks(ctx context.Context, populations []*population) error {
	var before holdings
	for round := range 1 + repetitions {
		for _, c := range populations {
			if err := b.createAndDelete(ctx, c); err != nil {
				return err
			}
		}
		if round == 0 {
			var err error
			if before, err = b.holdingsOf(ctx); err != nil {
				return err
			}
		}
	}
	after, err := b.holdingsOf(ctx)
	b.note(fmt.Sprintf("%d times %d of each created and deleted", repetitions, b.burst), fmt.Sprintf("%+.0f of %.0f goroutines, %+.0f of %.0f series, %+.1f MiB of %s live heap",
		after.goroutines-before.goroutines, before.goroutines, after.series-before.series, before.series, (after.heap-before.heap)/(1<<20), mebibytes(before.heap)), "+0", "")
	return err
}

func (b *bench) holdingsOf(ctx context.Context) (holdings, error) {
	_, heap, err := b.memory(ctx)
	if err != nil {
		return holdings{}, err
	}
	metrics, err := b.metrics(ctx)
	return holdings{heap: heap, goroutines: metrics["go_goroutines"], series: metrics[allSeries]}, err
}

// createAndDelete creates a burst of a population, and deletes it with all its children.
func (b *bench) createAndDelete(ctx context.Context, c *population) error {
	others, err := b.countChildren(ctx, c)
	if err != nil {
		return err
	}
	if _, _, err := b.create(ctx, c, b.burst); err != nil {
		return err
	}
	object, err := c.object(0)
	if err != nil {
		return err
	}
	if err := b.admin.DeleteAllOf(ctx, object, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("deleting each %s: %w", c.name, err)
	}
	c.size = 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind().GroupVersion().WithKind(c.name + "List"))
	if err := b.until(ctx, time.Second, func() (bool, error) {
		if err := b.admin.List(ctx, list, client.InNamespace(c.namespace)); err != nil || len(list.Items) > 0 {
			return false, err
		}
		left, err := b.countChildren(ctx, c)
		return left == others, err
	}); err != nil {
		return err
	}
	return b.waitIdle(ctx)
}

// countChildren counts the children in the namespace of a population, of kinds that the garbage collector deletes last.
func (b *bench) countChildren(ctx context.Context, c *population) (int, error) {
	count := 0
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Service"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		var managed client.ListOption = client.HasLabels{names.OperatorLabel}
		if kind.Kind == "Job" {
			managed = client.MatchingLabels{} // wrapped by a user, without our label
		}
		if err := b.admin.List(ctx, list, client.InNamespace(c.namespace), managed); err != nil {
			return 0, fmt.Errorf("listing each %s: %w", kind.Kind, err)
		}
		count += len(list.Items)
	}
	return count, nil
}
