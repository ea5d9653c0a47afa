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

// repetitions is the number of measured rounds of creation and deletion. An additional first round starts informers that keep running.
const repetitions = 5

// processResources are the resources of an idle process. Each informer has several goroutines.
type processResources struct{ heap, goroutines, series float64 }

// measureLeaks creates and deletes a burst of each population repeatedly, and adds the growth of the resources of the process since the
// first round.
func (b *bench) measureLeaks(ctx context.Context, populations []*population) error {
	var before processResources
	for round := range 1 + repetitions {
		for _, p := range populations {
			if err := b.createAndDelete(ctx, p); err != nil {
				return err
			}
		}
		if round == 0 {
			var err error
			if before, err = b.readResources(ctx); err != nil {
				return err
			}
		}
	}
	after, err := b.readResources(ctx)
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("%d rounds of creating and deleting %d of each kind", repetitions, b.burst), fmt.Sprintf("%+.0f of %.0f goroutines, %+.0f of %.0f series, %+.1f MiB of %s live heap",
		after.goroutines-before.goroutines, before.goroutines, after.series-before.series, before.series, (after.heap-before.heap)/(1<<20), mebibytes(before.heap)), "+0", "")
	return nil
}

func (b *bench) readResources(ctx context.Context) (processResources, error) {
	_, heap, err := b.memory(ctx)
	if err != nil {
		return processResources{}, err
	}
	metrics, err := b.metrics(ctx)
	return processResources{heap: heap, goroutines: metrics["go_goroutines"], series: metrics[seriesCount]}, err
}

// createAndDelete creates a burst of a population, and deletes it with all its children.
func (b *bench) createAndDelete(ctx context.Context, p *population) error {
	before, err := b.countChildren(ctx, p)
	if err != nil {
		return err
	}
	if _, _, err := b.create(ctx, p, b.burst); err != nil {
		return err
	}
	object, err := p.object(0)
	if err != nil {
		return err
	}
	if err := b.admin.DeleteAllOf(ctx, object, client.InNamespace(p.namespace)); err != nil {
		return fmt.Errorf("deleting each %s: %w", p.name, err)
	}
	p.size = 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind().GroupVersion().WithKind(p.name + "List"))
	if err := b.waitUntil(ctx, time.Second, func() (bool, error) {
		if err := b.admin.List(ctx, list, client.InNamespace(p.namespace)); err != nil || len(list.Items) > 0 {
			return false, err
		}
		remaining, err := b.countChildren(ctx, p)
		return remaining == before, err
	}); err != nil {
		return err
	}
	return b.waitIdle(ctx)
}

// countChildren counts the managed Secrets, ServiceAccounts and Services and all Jobs in the namespace of a population, as a sample of its
// children.
func (b *bench) countChildren(ctx context.Context, p *population) (int, error) {
	count := 0
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Service"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		var managed client.ListOption = client.HasLabels{names.OperatorLabel}
		if kind.Kind == "Job" {
			managed = client.MatchingLabels{} // wrapped by a user, without the label of the operator
		}
		if err := b.admin.List(ctx, list, client.InNamespace(p.namespace), managed); err != nil {
			return 0, fmt.Errorf("listing each %s: %w", kind.Kind, err)
		}
		count += len(list.Items)
	}
	return count, nil
}
